"""The parts of a run that every step uses, built once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object

from rlvr_core.api.rollouts import Prompt, Rollout, Row
from rlvr_core.api.session import Aggregation
from rlvr_core.config.models import Stack
from rlvr_core.plugins.dispatch import Dispatcher
from rlvr_core.rollout.engine import Engine
from rlvr_core.rollout.tokens import PromptTokenizer
from rlvr_core.train.packing import MicroBatch, micro_batches
from rlvr_core.train.place import Place
from rlvr_core.train.policy import Policy
from rlvr_core.train.replay import Tape
from rlvr_core.verification.judge import Judge

Item = TypeVar("Item")


@dataclass(slots=True)
class Controls:
    """What monitors may change while the run goes on. Saved with every checkpoint."""

    learning_rate: float
    kl_coefficient: float | None = None
    """None: the loss plugin's own."""


@dataclass(slots=True, kw_only=True, eq=False)
class Runtime:
    """Everything that a step needs and that outlives it."""

    stack: Stack
    accelerator: Accelerator
    dispatcher: Dispatcher
    judge: Judge
    engine: Engine
    tokenizer: PromptTokenizer
    policy: Policy
    reference: Policy | None
    """The frozen policy; only there when a plugin needs its log-probabilities."""
    optimizer: torch.optim.Optimizer
    train_rows: Sequence[Row]
    reward_weights: Mapping[str, float]
    """Weight of each verifier's scores, by instance name."""
    aggregation: Aggregation
    loss_acts_without_advantage: bool
    controls: Controls
    tape: Tape
    """What was said by the engine and the verifiers in this step, and when it was made before."""
    place: Place = field(default_factory=Place)
    """Where this process is."""
    _encoded: dict[Prompt, tuple[int, ...]] = field(default_factory=dict)

    @property
    def trained_parameters(self) -> list[torch.nn.Parameter]:
        """The parameters that the optimiser moves."""
        return [one for group in self.optimizer.param_groups for one in group["params"]]

    def learning_rate(self, step: int) -> float:
        """Return the learning rate of a 1-based step: a linear rise, then constant."""
        warmup = self.stack.train.warmup_steps
        return self.controls.learning_rate * (min(1.0, step / warmup) if warmup else 1.0)

    def share_of_rank(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Return this process's part of the prompts, in order, sizes differing by one at most."""
        rank, processes = self.accelerator.process_index, self.accelerator.num_processes
        return rows[len(rows) * rank // processes : len(rows) * (rank + 1) // processes]

    def sum_over_ranks(self, values: Sequence[float]) -> list[float]:
        """Add up each value over all processes, in float64."""
        if self.accelerator.num_processes == 1:
            return [float(value) for value in values]
        by_rank = self.gather([list(values)])
        return [float(sum(column)) for column in zip(*by_rank, strict=True)]

    def gather(self, items: list[Item]) -> list[Item]:
        """Return the items of all processes, in rank order, on every process."""
        if self.accelerator.num_processes == 1:
            return items
        with self.place.meeting():
            gathered: list[Item] = gather_object(items)
        return gathered

    def encode(self, prompt: Prompt) -> tuple[int, ...]:
        """Return the ids of a prompt that is trained under; each is encoded once."""
        if prompt not in self._encoded:
            self._encoded[prompt] = self.tokenizer.encode(prompt)
        return self._encoded[prompt]

    def micro_batches(self, rollouts: Sequence[Rollout]) -> Iterator[MicroBatch]:
        """Pack rollouts for forward passes, as the stack and the model's layout say."""
        return micro_batches(
            rollouts,
            self.encode,
            share_prompts=self.policy.layout.share_prompts,
            token_budget=self.stack.train.micro_batch_tokens,
            device=self.accelerator.device,
        )

    @torch.no_grad()
    def policy_logps(self, rollouts: Sequence[Rollout]) -> dict[int, torch.Tensor]:
        """Return the policy's log-probabilities [T_i] of each rollout's tokens, by its id()."""
        found: dict[int, torch.Tensor] = {}
        for batch in self.micro_batches(rollouts):
            logp_T, _ = self.policy.logps(batch)
            lengths = [rollout.length for rollout in batch.rollouts]
            for rollout, logps in zip(batch.rollouts, logp_T.split(lengths), strict=True):
                found[id(rollout)] = logps
        return found
