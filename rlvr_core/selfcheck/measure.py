"""What an update does to a policy, measured so that two of them can be compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rlvr_core.api.rollouts import Group
from rlvr_core.selfcheck.bench import Bench, probe_of
from rlvr_core.selfcheck.made_up import Key, key_of
from rlvr_core.train.runtime import Runtime
from rlvr_core.train.step import learn, trainable
from rlvr_core.train.update import needs_forward, update

TOLERANCE = 1e-4
"""Largest difference that rounding in float32 may make, relative to the largest entry."""
EVERYTHING = 10**9
"""A budget of tokens that all rollouts fit into."""

Arrange = Callable[[list[Group]], list[Group]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One update of the same weights on the same rollouts."""

    advantages: Mapping[Key, Sequence[float]]
    gradients: Mapping[str, Tensor]
    """By parameter, first on policy (ratio 1), then with rollouts of another policy."""
    is_finite: bool
    micro_batches: int
    tokens: int
    ratio_error: float
    """Largest |ratio - 1| on policy."""

    @property
    def has_signal(self) -> bool:
        """True when some gradient is not 0."""
        return any(bool(gradient.any()) for gradient in self.gradients.values())


def measure(
    bench: Bench,
    arrange: Arrange = lambda groups: groups,
    *,
    micro_batch_tokens: int = EVERYTHING,
    layout: str = "shared",
) -> Measured:
    """Learn once from made-up rollouts, on policy and off, and return what that would move.

    Args:
        bench: Whose plugins estimate, weigh and give the loss.
        arrange: Changes the groups first.
        micro_batch_tokens: Of the stack's ``train`` section.
        layout: Of the stack's ``train`` section.
    """
    material = bench.material
    with bench.open(
        micro_batch_tokens=micro_batch_tokens,
        layout=layout,
        passes=1,
        mini_batches=1,
        max_grad_norm=None,
    ) as opened:
        runtime, session = opened.runtime, opened.session
        kept = _keep_gradients(runtime)
        groups = arrange(material.groups())
        result = learn(runtime, session, groups)
        ratio_error = max(probe_of(runtime).ratio_errors, default=0.0)
        result += update(runtime, session, groups, material.old_logps(groups))
        rollouts = [one for one in trainable(groups) if needs_forward(runtime, one)]
        return Measured(
            advantages={
                key_of(rollout): rollout.token_advantages
                for group in groups
                for rollout in group.valid
            },
            gradients={
                f"{name} ({number})": gradient
                for number, step in enumerate(kept)
                for name, gradient in step.items()
            },
            is_finite=not result.skipped_updates,
            micro_batches=len(list(runtime.micro_batches(rollouts))),
            tokens=sum(rollout.length for rollout in rollouts),
            ratio_error=ratio_error,
        )


def _keep_gradients(runtime: Runtime) -> list[dict[str, Tensor]]:
    """Let updates move nothing, and return the list that their gradients will be added to."""
    model = runtime.policy.model
    kept: list[dict[str, Tensor]] = []

    def keep(*_: object) -> None:
        kept.append(
            {
                name: torch.zeros_like(one) if one.grad is None else one.grad.clone()
                for name, one in model.named_parameters()
            }
        )

    runtime.optimizer = torch.optim.SGD(model.parameters())
    runtime.optimizer.register_step_pre_hook(keep)
    runtime.controls.learning_rate = 0.0
    return kept


def plain(bench: Bench) -> Measured:
    """Return the update that others are compared with: prompts shared, all in one micro-batch."""
    if "plain update" not in bench.kept:
        bench.kept["plain update"] = measure(bench)
    measured: Measured = bench.kept["plain update"]
    return measured


def gradient_difference(first: Measured, second: Measured) -> float:
    """Return the largest difference of two updates, relative to the first's largest entry."""
    if first.gradients.keys() != second.gradients.keys():
        return float("inf")
    largest = max(float(gradient.abs().max()) for gradient in first.gradients.values())
    differences = [
        float((gradient - second.gradients[name]).abs().max())
        for name, gradient in first.gradients.items()
    ]
    return max(differences) / largest


def advantage_difference(first: Measured, second: Measured) -> float:
    """Return the largest difference of advantages, relative to the largest."""
    if first.advantages.keys() != second.advantages.keys():
        return float("inf")
    pairs = [
        pair
        for key, of_first in first.advantages.items()
        for pair in zip(of_first, second.advantages[key], strict=True)
    ]
    largest = max((abs(one) for one, _ in pairs), default=0.0)
    apart = max((abs(one - other) for one, other in pairs), default=0.0)
    return apart / largest if largest else apart
