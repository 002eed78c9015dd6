"""Watches what the verifiers cannot judge."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from rlvr_core.api import Action, ActionKind, Plugin, Status, StepEvent, Strict, hookimpl


class VerifierHealthConfig(Strict):
    """Settings of `verifier-health`."""

    window_steps: int = Field(default=20, ge=1, description="Steps that are looked at together.")
    warn_error_share: float = Field(
        default=0.01,
        ge=0,
        le=1,
        description="Share of verdicts with status error that is warned of.",
    )
    warn_abstained_share: float = Field(
        default=0.2, ge=0, le=1, description="Share of abstentions that is warned of."
    )


class VerifierHealth(Plugin):
    """Warns, once for each verifier and cause, when errors or abstentions pass their share.

    The hard limit on errors is core's own: ``verification.max_error_rate``.
    """

    api_version = "1.0"
    Config = VerifierHealthConfig
    config: VerifierHealthConfig

    def __init__(self, config: Any = None, *, name: str = "") -> None:
        """Start with an empty window."""
        super().__init__(config, name=name)
        self._window: deque[Counter[tuple[str, Status]]] = deque(maxlen=self.config.window_steps)
        self._warned: set[tuple[str, Status]] = set()

    def state(self) -> Mapping[str, Any]:
        """Return the counts of the window, and what was warned of."""
        return {
            "window": [
                [[verifier, status, count] for (verifier, status), count in sorted(step.items())]
                for step in self._window
            ],
            "warned": sorted(self._warned),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on with the window, and warn of nothing twice."""
        self._window.clear()
        self._window.extend(
            Counter({(verifier, Status(status)): count for verifier, status, count in step})
            for step in state["window"]
        )
        self._warned = {(verifier, Status(status)) for verifier, status in state["warned"]}

    @hookimpl
    def rlvr_step_end(self, event: StepEvent) -> list[Action]:
        """Count verdicts by verifier and status over the window."""
        self._window.append(
            Counter(
                (rollout.verdict.verifier, rollout.verdict.status)
                for group in event.groups
                for rollout in group.rollouts
                if rollout.verdict is not None
            )
        )
        totals: Counter[tuple[str, Status]] = sum(self._window, Counter())
        limits = (
            (Status.ERROR, self.config.warn_error_share),
            (Status.ABSTAINED, self.config.warn_abstained_share),
        )
        actions = []
        for verifier in sorted({verifier for verifier, _ in totals}):
            verdicts = sum(count for (name, _), count in totals.items() if name == verifier)
            for status, limit in limits:
                count = totals[verifier, status]
                if count <= limit * verdicts or (verifier, status) in self._warned:
                    continue
                self._warned.add((verifier, status))
                reason = (
                    f"verifier {verifier!r}: {count} of the last {verdicts} verdicts have status "
                    f"{status.value} (limit {limit:.0%}); these rollouts are masked, not scored 0"
                )
                actions.append(Action(kind=ActionKind.WARN, reason=reason))
        return actions
