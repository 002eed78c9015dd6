"""Watches for steps that nothing can be learnt from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from rlvr_core.api import Action, ActionKind, Plugin, StepEvent, Strict, hookimpl


class DeadGroupsConfig(Strict):
    """Settings of `dead-groups`."""

    warn_after: int = Field(
        default=5, ge=1, description="Warn after this many dead steps in a row."
    )
    stop_after: int = Field(
        default=50, ge=1, description="Stop after this many dead steps in a row."
    )
    warn_clipped_share: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="Warn, once, when a larger share of a step's tokens was clipped: those teach "
        "nothing.",
    )


class DeadGroups(Plugin):
    """Warns, then stops, when many steps in a row had no rollout with an advantage.

    Warns as well of steps in which clipping left most tokens without a gradient, and at the end of
    a run in which not one step had anything to learn from.
    """

    api_version = "1.0"
    Config = DeadGroupsConfig
    config: DeadGroupsConfig

    def __init__(self, config: Any = None, *, name: str = "") -> None:
        """Start with no dead steps."""
        super().__init__(config, name=name)
        self._dead_steps = 0
        self._has_warned_of_clipping = False

    def state(self) -> Mapping[str, Any]:
        """Return the length of the current row of dead steps, and what was warned of."""
        return {
            "dead_steps": self._dead_steps,
            "has_warned_of_clipping": self._has_warned_of_clipping,
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue the row of dead steps."""
        self._dead_steps = state["dead_steps"]
        self._has_warned_of_clipping = state["has_warned_of_clipping"]

    @hookimpl
    def rlvr_step_end(self, event: StepEvent) -> list[Action]:
        """Count, and speak up at the thresholds."""
        # Not by rewards: a plugin may teach groups whose rewards are equal, token by token.
        learnt = any(one.has_advantage for group in event.groups for one in group.rollouts)
        self._dead_steps = 0 if learnt else self._dead_steps + 1
        return [*self._of_dead_steps(event), *self._of_clipping(event)]

    def _of_dead_steps(self, event: StepEvent) -> list[Action]:
        dead, config = self._dead_steps, self.config
        # Of a run that is too short for the first warning.
        is_all = dead == event.step == event.run.total_steps < config.warn_after
        if dead not in (config.warn_after, config.stop_after) and not is_all:
            return []
        rewards = {r.reward for group in event.groups for r in group.rollouts if r.is_valid}
        why = "in each group all rewards were equal" if rewards else "every rollout was masked"
        masked, rollouts = event.metrics["masked"], event.metrics["rollouts"]
        end = "; the run ends with the weights that it began with" if is_all else ""
        reason = (
            f"{dead} steps in a row had no group to learn from: {why} (last step: reward "
            f"{event.metrics.get('reward_mean')}, {masked:.0f} of {rollouts:.0f} rollouts "
            f"masked){end}"
        )
        stops = dead >= config.stop_after
        return [Action(kind=ActionKind.STOP if stops else ActionKind.WARN, reason=reason)]

    def _of_clipping(self, event: StepEvent) -> list[Action]:
        # A token is clipped on one side only, that of its advantage.
        share = event.metrics.get("clip_low", 0.0) + event.metrics.get("clip_high", 0.0)
        if not share > self.config.warn_clipped_share or self._has_warned_of_clipping:
            return []
        self._has_warned_of_clipping = True
        reason = (
            f"step {event.step}: {share:.0%} of the tokens were clipped and taught nothing (limit "
            f"{self.config.warn_clipped_share:.0%}); fewer passes or mini-batches, a smaller "
            "learning rate or a wider clip range keep the policy nearer to the one that sampled"
        )
        return [Action(kind=ActionKind.WARN, reason=reason)]
