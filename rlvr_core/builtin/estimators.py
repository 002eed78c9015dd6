"""The group-relative advantage estimators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from pydantic import Field

from rlvr_core.api import Aggregation, Group, Plugin, Strict, hookimpl
from rlvr_core.rl.advantages import centred, standardised


class GrpoConfig(Strict):
    """Settings of `grpo`."""

    scale: Literal["std", "none"] = Field(
        default="std", description="Divide by the group's standard deviation, or only centre."
    )
    ddof: Literal[0, 1] = Field(
        default=1, description="1: sample standard deviation; 0: population standard deviation."
    )
    epsilon: float = Field(
        default=1e-4, gt=0, description="Added to the standard deviation before dividing."
    )
    std_floor: float = Field(
        default=0.0, ge=0, description="Smallest standard deviation that is divided by."
    )


class Grpo(Plugin):
    """``A_i = (r_i - mean(r)) / (max(std(r), std_floor) + epsilon)`` over a group's valid rollouts.

    Source: DeepSeekMath, arXiv 2402.03300. Default aggregation: sequence-mean, as in the paper.
    """

    api_version = "1.0"
    Config = GrpoConfig
    aggregation = Aggregation.SEQUENCE_MEAN
    config: GrpoConfig

    @hookimpl
    def rlvr_estimate_advantages(self, groups: Sequence[Group]) -> list[list[float]]:
        """Return [N][G] advantages."""
        config = self.config
        if config.scale == "none":
            return [_of_valid(group, centred) for group in groups]

        def estimate(rewards: Sequence[float]) -> list[float]:
            return standardised(
                rewards, ddof=config.ddof, epsilon=config.epsilon, std_floor=config.std_floor
            )

        return [_of_valid(group, estimate) for group in groups]


class DrGrpo(Plugin):
    """``A_i = r_i - mean(r)``: neither divided by a standard deviation nor by a length.

    Source: Dr.GRPO, arXiv 2503.20783. Default aggregation: constant-length, the paper's second
    half.
    """

    api_version = "1.0"
    aggregation = Aggregation.CONSTANT_LENGTH

    @hookimpl
    def rlvr_estimate_advantages(self, groups: Sequence[Group]) -> list[list[float]]:
        """Return [N][G] advantages."""
        return [_of_valid(group, centred) for group in groups]


def _of_valid(group: Group, estimate: Callable[[Sequence[float]], Any]) -> list[float]:
    """Return `estimate` of the rewards that are there, and 0 for masked rollouts."""
    rewards = [rollout.reward for rollout in group.rollouts if rollout.reward is not None]
    estimates = iter(estimate(rewards))
    return [next(estimates) if rollout.is_valid else 0.0 for rollout in group.rollouts]
