"""What all reward shapers share: a masked rollout stays masked, whatever the formula."""

from __future__ import annotations

from collections.abc import Callable

from rlvr_core.api import Group, Rollout


def with_rewards(group: Group, change: Callable[[Rollout, float], float]) -> list[float | None]:
    """Return `change` of (rollout, reward) for each rollout of a group; None where it is masked."""
    return [
        None if rollout.reward is None else change(rollout, rollout.reward)
        for rollout in group.rollouts
    ]
