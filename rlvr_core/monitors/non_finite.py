"""Watches for steps whose gradient is not a number."""

from __future__ import annotations

from pydantic import Field

from rlvr_core.api import Action, ActionKind, Plugin, StepEvent, Strict, hookimpl


class NonFiniteConfig(Strict):
    """Settings of `non-finite`."""

    tolerated: int = Field(
        default=0,
        ge=0,
        description="Skipped updates that a step may have before the run is stopped.",
    )


class NonFinite(Plugin):
    """Stops the run at the first step whose update core had to leave out."""

    api_version = "1.0"
    Config = NonFiniteConfig
    config: NonFiniteConfig

    @hookimpl
    def rlvr_step_end(self, event: StepEvent) -> Action | None:
        """Say what the rewards were when the gradient broke."""
        skipped = event.metrics["skipped_updates"]
        if skipped <= self.config.tolerated:
            return None
        rewards = [
            r.reward for group in event.groups for r in group.rollouts if r.reward is not None
        ]
        span = (
            f"rewards from {min(rewards):g} to {max(rewards):g}" if rewards else "no valid reward"
        )
        return Action(
            kind=ActionKind.STOP,
            reason=(
                f"step {event.step}: {skipped:.0f} update(s) had a gradient that is not finite and "
                f"were left out, so the weights are unharmed ({span}); lower the learning rate or "
                "the scale of the rewards"
            ),
        )
