"""Made-up groups and a session, without a model and without torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from rlvr_core.api.events import EvalEvent, RunInfo, StepEvent
from rlvr_core.api.rollouts import FinishReason, Group, Prompt, Rollout, Row, Segment
from rlvr_core.api.verdicts import FailureCategory, Status, Verdict

GROUP_SIZE = 4
REWARDS: Sequence[Sequence[float | None]] = (
    (1.0, 0.0, 0.5, 0.0),
    (0.0, 1.0, 1.0),
    (0.0, 0.0, 0.0, 0.0),
    (1.0, None, 0.25, 0.0),
    (None, 1.0),
)
"""Uneven groups: with a spread, dead, and with masked rollouts."""
_SEED = 7
_VERIFIER = "exact-match"


def made_up_rows(count: int) -> list[Row]:
    """Return data rows."""
    return [
        Row(
            id=f"row-{number}",
            prompt=f"Question {number}" + " and more" * (number % 3),
            verifier=_VERIFIER,
            ground_truth={"answer": str(number)},
            metadata={"difficulty": number % 2},
        )
        for number in range(count)
    ]


def made_up_groups(rewards: Sequence[Sequence[float | None]] = REWARDS) -> list[Group]:
    """Return one group a line of rewards; None masks a rollout."""
    rows = made_up_rows(len(rewards))
    return [
        Group(
            row=row,
            rollouts=[made_up_rollout(row, index, reward) for index, reward in enumerate(line)],
        )
        for row, line in zip(rows, rewards, strict=True)
    ]


def made_up_rollout(
    row: Row, index: int, reward: float | None = 0.0, context: Prompt | None = None
) -> Rollout:
    """Return a verified rollout; its length depends on its index."""
    draw = Random(f"{row.id}/{index}")
    length = 1 + (3 * index + len(row.id)) % 7
    return Rollout(
        row=row,
        sample_index=index,
        completion=f"answer {index}",
        segments=[
            Segment(
                token_ids=[draw.randrange(3, 250) for _ in range(length)],
                logps=[-draw.random() for _ in range(length)],
            )
        ],
        finish_reason=FinishReason.STOP,
        weights_version=0,
        sampled_under=context or row.prompt,
        trained_under=row.prompt,
        entropy=1.0,
        verdict=_verdict(reward),
        reward=reward,
    )


def _verdict(reward: float | None) -> Verdict:
    if reward is None:
        return Verdict(
            status=Status.ABSTAINED, failure=FailureCategory.NOT_APPLICABLE, verifier=_VERIFIER
        )
    passed = reward >= 1.0
    return Verdict(
        status=Status.PASSED if passed else Status.FAILED,
        score=reward,
        failure=None if passed else FailureCategory.WRONG_ANSWER,
        verifier=_VERIFIER,
    )


class MadeUpSession:
    """A `Session` that samples made-up rollouts."""

    step = 1
    seed = _SEED
    group_size = GROUP_SIZE
    prompts_drawn = 0
    temperature = 1.0

    def __init__(self) -> None:
        self._sampled: dict[str, int] = {}

    def sample(
        self,
        rows: Sequence[Row],
        n: int | Sequence[int],
        contexts: Sequence[Prompt] | None = None,
    ) -> list[list[Rollout]]:
        """Return made-up rollouts, numbered on from those of earlier calls."""
        counts = [n] * len(rows) if isinstance(n, int) else list(n)
        found = []
        for place, (row, count) in enumerate(zip(rows, counts, strict=True)):
            first = self._sampled.get(row.id, 0)
            self._sampled[row.id] = first + count
            context = contexts[place] if contexts is not None else None
            found.append(
                [
                    made_up_rollout(row, index, float(index % 2), context)
                    for index in range(first, first + count)
                ]
            )
        return found

    def verdicts(self, rollouts: Sequence[Rollout], verifier: str | None = None) -> list[Verdict]:
        """Return the verdicts that the rollouts carry."""
        return [rollout.verdict or _verdict(0.0) for rollout in rollouts]

    def logps(
        self, rollouts: Sequence[Rollout], contexts: Sequence[Prompt] | None = None
    ) -> list[list[float]]:
        """Return the sampler's own log-probabilities."""
        return [
            [logp for segment in rollout.segments for logp in segment.logps] for rollout in rollouts
        ]

    def encode(self, prompt: Prompt) -> Sequence[int]:
        """Return bytes as token ids."""
        text = prompt if isinstance(prompt, str) else "\n".join(one.content for one in prompt)
        return list(text.encode("utf-8"))

    def random(self, purpose: str, *key: object) -> Random:
        """Return a generator of this step."""
        return Random(f"{self.seed}/{self.step}/{purpose}/{key}")

    def run_random(self, purpose: str, *key: object) -> Random:
        """Return a generator of the run."""
        return Random(f"{self.seed}/{purpose}/{key}")

    def sum_over_ranks(self, values: Sequence[float]) -> list[float]:
        """Return the values: there is one process."""
        return [float(value) for value in values]


def snapshot(groups: Sequence[Group]) -> str:
    """Return all that training reads of groups, as text that can be compared."""
    return repr(
        [
            (
                group.row.id,
                group.weight,
                [
                    (
                        one.sample_index,
                        one.reward,
                        one.advantage,
                        one.loss_weight,
                        one.completion,
                        [(list(each.token_ids), list(each.logps)) for each in one.segments],
                        one.sampled_under,
                        one.trained_under,
                        None if one.verdict is None else one.verdict.to_json(),
                    )
                    for one in group.rollouts
                ],
            )
            for group in groups
        ]
    )


def made_up_run(folder: Path) -> RunInfo:
    """Return the facts of a run."""
    return RunInfo(folder=folder, total_steps=10, seed=_SEED, manifest={"name": "made-up"})


def step_event(run: RunInfo, step: int, groups: Sequence[Group]) -> StepEvent:
    """Return a finished step."""
    rollouts = [one for group in groups for one in group.rollouts]
    metrics: dict[str, Any] = {
        "step": step,
        "epoch": 0.0,
        "reward_mean": 0.4,
        "pass_rate": 0.3,
        "groups": len(groups),
        "useful_groups": len(groups) - 1,
        "kept_groups": len(groups),
        "rollouts": len(rollouts),
        "masked": sum(one.reward is None for one in rollouts),
        "errors": 0,
        "length_mean": 3.0,
        "truncated_rate": 0.0,
        "entropy": 1.0,
        "loss": 0.01,
        "grad_norm": 0.5,
        "updates": 1,
        "skipped_updates": 0,
        "learning_rate": 1e-6,
        "tokens": sum(one.length for one in rollouts),
    }
    return StepEvent(run=run, step=step, groups=groups, metrics=metrics)


def eval_event(run: RunInfo, step: int, groups: Sequence[Group]) -> EvalEvent:
    """Return a finished evaluation."""
    rollouts = [one for group in groups for one in group.rollouts]
    metrics = {"split": "dev", "step": step, "pass_rate": 0.3, "reward_mean": 0.4}
    return EvalEvent(run=run, step=step, split="dev", rollouts=rollouts, metrics=metrics)
