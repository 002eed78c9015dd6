"""Watches for steps that nothing can be learnt from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from rlvr_core.api import Action, ActionKind, Plugin, Rollout, StepEvent, Strict, hookimpl


class DeadGroupsConfig(Strict):
    """Settings of `dead-groups`."""

    warn_after: int = Field(
        default=5, ge=1, description="Warn after this many dead steps in a row."
    )
    stop_after: int = Field(
        default=50, ge=1, description="Stop after this many dead steps in a row."
    )


class DeadGroups(Plugin):
    """Warns, then stops, when many steps in a row had no rollout with an advantage."""

    api_version = "1.0"
    Config = DeadGroupsConfig
    config: DeadGroupsConfig

    def __init__(self, config: Any = None, *, name: str = "") -> None:
        """Start with no dead steps."""
        super().__init__(config, name=name)
        self._dead_steps = 0

    def state(self) -> Mapping[str, Any]:
        """Return the length of the current row of dead steps."""
        return {"dead_steps": self._dead_steps}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue the row of dead steps."""
        self._dead_steps = state["dead_steps"]

    @hookimpl
    def rlvr_step_end(self, event: StepEvent) -> Action | None:
        """Count, and speak up at the two thresholds."""
        # Not by rewards: a plugin may teach groups whose rewards are equal, token by token.
        learnt = any(_teaches(rollout) for group in event.groups for rollout in group.rollouts)
        self._dead_steps = 0 if learnt else self._dead_steps + 1
        if self._dead_steps not in (self.config.warn_after, self.config.stop_after):
            return None
        rewards = {r.reward for group in event.groups for r in group.rollouts if r.is_valid}
        all_masked = not rewards
        reason = (
            f"{self._dead_steps} steps in a row had no group to learn from: "
            + (
                "every rollout was masked"
                if all_masked
                else "within each group all rewards were equal"
            )
            + f" (last step: reward {event.metrics.get('reward_mean')}, "
            f"{event.metrics['masked']:.0f} of {event.metrics['rollouts']:.0f} rollouts masked)"
        )
        stops = self._dead_steps >= self.config.stop_after
        return Action(kind=ActionKind.STOP if stops else ActionKind.WARN, reason=reason)


def _teaches(rollout: Rollout) -> bool:
    advantage = rollout.advantage
    return any(advantage) if isinstance(advantage, Sequence) else advantage != 0
