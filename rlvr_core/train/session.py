"""The services of one step: what `Session` promises to plugins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from random import Random

from rlvr_core.api.errors import PluginError
from rlvr_core.api.rollouts import Group, Prompt, Rollout, Row
from rlvr_core.api.verdicts import Verdict
from rlvr_core.rl.keyed_random import keyed_generator
from rlvr_core.rollout.sampling import Draw, SamplingSettings, sample_rollouts
from rlvr_core.train.prompt_check import prompt_limit
from rlvr_core.train.replay import ReplayingEngine
from rlvr_core.train.runtime import Runtime


@dataclass(slots=True, eq=False)
class StepSession:
    """Implements `Session` for one step on one process."""

    runtime: Runtime
    step: int
    weights_version: int
    prompts_drawn: int
    samples_taken: Counter[str] = field(default_factory=Counter)
    """Samples drawn so far in this step, by row id."""
    _owners: dict[str, int] = field(default_factory=dict)
    """The process that samples a row in this step, by row id."""

    def __post_init__(self) -> None:
        self.runtime.judge.begin(f"step {self.step}")

    @property
    def seed(self) -> int:
        """The run's seed."""
        return self.runtime.stack.seed

    @property
    def group_size(self) -> int:
        """Rollouts a prompt that the stack asks for."""
        return self.runtime.stack.rollout.group_size

    @property
    def temperature(self) -> float:
        """Of the sampling distribution."""
        return self.runtime.stack.rollout.temperature

    @property
    def max_completion_tokens(self) -> int:
        """Tokens at which a completion is cut off."""
        return self.runtime.stack.rollout.max_completion_tokens

    def share(self, rows: Sequence[Row]) -> list[Row]:
        """Return this process's part of the prompts of a step, in order.

        All copies of a row go to one process, which numbers their samples: each has a random number
        of its own, the same one whatever the number of processes.
        """
        new = [
            row_id for row_id in dict.fromkeys(row.id for row in rows) if row_id not in self._owners
        ]
        processes = self.runtime.accelerator.num_processes
        for place, row_id in enumerate(new):
            self._owners[row_id] = place * processes // len(new)
        rank = self.runtime.accelerator.process_index
        return [row for row in rows if self._owners[row.id] == rank]

    def sample(
        self,
        rows: Sequence[Row],
        n: int | Sequence[int],
        contexts: Sequence[Prompt] | None = None,
    ) -> list[list[Rollout]]:
        """Sample completions for each row; see `Session.sample`."""
        counts = [n] * len(rows) if isinstance(n, int) else list(n)
        draws = []
        for index, (row, count) in enumerate(zip(rows, counts, strict=True)):
            prompt = self.runtime.dispatcher.wrap_prompt(row.prompt, row, self)
            context = contexts[index] if contexts else prompt
            self._require_room(row, {prompt, context})
            for _ in range(count):
                draws.append(
                    Draw(
                        row=row,
                        sample_index=self.samples_taken[row.id],
                        sampled_under=context,
                        trained_under=prompt,
                    )
                )
                self.samples_taken[row.id] += 1
        rollout = self.runtime.stack.rollout
        rollouts = iter(
            sample_rollouts(
                ReplayingEngine(self.runtime.engine, self.runtime.tape),
                self.runtime.tokenizer,
                draws,
                SamplingSettings(
                    key=(self.seed, "rollout", self.step),
                    max_tokens=rollout.max_completion_tokens,
                    temperature=rollout.temperature,
                    weights_version=self.weights_version,
                ),
                on_rollout=self.runtime.judge.submit,
            )
        )
        return [[next(rollouts) for _ in range(count)] for count in counts]

    def _require_room(self, row: Row, prompts: Set[Prompt]) -> None:
        """Refuse what plugins made of a prompt when a completion has no room after it.

        The row's own prompt was looked at before step 0.

        Raises:
            PluginError: RLVR-P106.
        """
        model = self.runtime.policy.model
        limit, reason = prompt_limit(self.runtime.stack.rollout, model.config)
        for prompt in prompts - {row.prompt}:
            length = len(self.runtime.tokenizer.encode(prompt))
            if length > limit:
                raise PluginError(
                    "RLVR-P106",
                    f"a plugin made a prompt of row {row.id!r} that takes {length} tokens; it may "
                    f"take {limit} ({reason})",
                    fix="let the plugin add less, or lower rollout.max_completion_tokens",
                )

    def verdicts(self, rollouts: Sequence[Rollout], verifier: str | None = None) -> list[Verdict]:
        """Return one verdict a rollout; see `Session.verdicts`. A row's own is asked for once."""
        if verifier is not None:
            return self.runtime.judge.verdicts(rollouts, verifier)
        open_rollouts = [rollout for rollout in rollouts if rollout.verdict is None]
        for rollout, verdict in zip(
            open_rollouts, self.runtime.judge.verdicts(open_rollouts), strict=True
        ):
            rollout.verdict = verdict
        return [rollout.verdict for rollout in rollouts if rollout.verdict is not None]

    def logps(
        self, rollouts: Sequence[Rollout], contexts: Sequence[Prompt] | None = None
    ) -> list[list[float]]:
        """Score rollouts under the current weights; see `Session.logps`."""
        placed = list(rollouts)
        if contexts is not None:
            pairs = zip(rollouts, contexts, strict=True)
            placed = [replace(rollout, trained_under=context) for rollout, context in pairs]
        found = self.runtime.policy_logps(placed)
        return [found[id(rollout)].tolist() for rollout in placed]

    def encode(self, prompt: Prompt) -> tuple[int, ...]:
        """Return the ids of a prompt; see `Session.encode`."""
        return self.runtime.encode(prompt)

    def score(self, groups: Sequence[Group]) -> None:
        """Give every rollout its verdict, and its score as the reward; no judgement masks it."""
        rollouts = [rollout for group in groups for rollout in group.rollouts]
        for rollout, verdict in zip(rollouts, self.verdicts(rollouts), strict=True):
            weight = self.runtime.reward_weights[rollout.row.verifier]
            rollout.reward = None if verdict.score is None else weight * verdict.score

    def random(self, purpose: str, *key: object) -> Random:
        """Return a generator for this step; see `Session.random`."""
        return keyed_generator(self.seed, "plugin", self.step, purpose, *key)

    def run_random(self, purpose: str, *key: object) -> Random:
        """Return a generator for the whole run; see `Session.run_random`."""
        return keyed_generator(self.seed, "plugin", purpose, *key)

    def sum_over_ranks(self, values: Sequence[float]) -> list[float]:
        """Add up each value over all processes."""
        return self.runtime.sum_over_ranks(values)
