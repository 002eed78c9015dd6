"""``length-penalty``: among the completions of one prompt, the shorter ones are worth more."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from rlvr_core.api import Group, Plugin, Rollout, Session, Status, Strict, hookimpl
from rlvr_core.builtin.shaping import with_rewards


class LengthPenaltyConfig(Strict):
    """Settings of `length-penalty`."""

    coefficient: float = Field(
        default=0.2, gt=0, le=1e6, description="Multiplies the length reward, of -0.5 to 0.5."
    )


class LengthPenalty(Plugin):
    """Adds ``coefficient`` times the length reward of Kimi k1.5 to every reward that is there.

    Lengths are compared within a group, so that a hard prompt may take more tokens than an easy
    one. A failed completion can only lose: brevity alone never pays. Source: arXiv 2501.12599,
    section 2.3.3.
    """

    api_version = "1.0"
    Config = LengthPenaltyConfig
    config: LengthPenaltyConfig

    @hookimpl
    def rlvr_shape_rewards(
        self, session: Session, groups: Sequence[Group]
    ) -> list[list[float | None]]:
        """Add to each reward what its completion's place among the lengths is worth."""
        return [self._shaped(group) for group in groups]

    def _shaped(self, group: Group) -> list[float | None]:
        lengths = [rollout.length for rollout in group.valid]

        def change(rollout: Rollout, reward: float) -> float:
            passed = rollout.verdict is not None and rollout.verdict.status is Status.PASSED
            found = length_reward(rollout.length, min(lengths), max(lengths), passed=passed)
            return reward + self.config.coefficient * found

        return with_rewards(group, change)


def length_reward(length: int, shortest: int, longest: int, *, passed: bool) -> float:
    """Return the length reward of one completion, between -0.5 and 0.5.

    ``lambda = 0.5 - (length - shortest) / (longest - shortest)``; a passed completion gets lambda,
    a failed one ``min(0, lambda)``; all get 0 where the lengths are equal.

    Args:
        length: Sampled tokens of the completion.
        shortest: The fewest tokens of its group.
        longest: The most.
        passed: Its verdict.
    """
    if longest == shortest:
        return 0.0
    found = 0.5 - (length - shortest) / (longest - shortest)
    return found if passed else min(0.0, found)
