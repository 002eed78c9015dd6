"""What a check says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rlvr_core.api.verdicts import Json


class Outcome(StrEnum):
    """How a check came out."""

    OK = "ok"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"
    """There was nothing to compare: it says neither that the stack is sound nor that it is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one check found on one stack."""

    outcome: Outcome
    detail: str
    """What was compared and how it came out, or why there was nothing to compare."""
    difference: float | None = None
    """The largest one that was seen; None where equality is not a matter of numbers."""
    tolerance: float | None = None
    """The largest difference that is allowed."""
    culprit: str | None = None
    """The plugin at fault, where the check itself can tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """One line of the report."""

    name: str
    invariant: str
    """What must hold, as a sentence."""
    found: Found
    suspects: tuple[str, ...] = ()
    """Instance names of plugins to suspect of a failure, the only one that mends it first."""
    why_suspected: str = ""
    fix: str = ""
    """What to do next; empty unless the check failed."""
    is_plugin_fault: bool = False
    """A plugin raised, or returned something that it may not return."""
    duration_s: float = 0.0

    def to_json(self) -> dict[str, Json]:
        """Return the line as a JSON object."""
        return {
            "name": self.name,
            "invariant": self.invariant,
            "outcome": self.found.outcome.value,
            "detail": self.found.detail,
            "difference": self.found.difference,
            "tolerance": self.found.tolerance,
            "suspects": list(self.suspects),
            "why_suspected": self.why_suspected,
            "fix": self.fix,
            "is_plugin_fault": self.is_plugin_fault,
            "duration_s": round(self.duration_s, 3),
        }


def not_applicable(why: str) -> Found:
    """Return the finding that there was nothing to compare."""
    return Found(outcome=Outcome.NOT_APPLICABLE, detail=why)


def ok(detail: str, difference: float | None = None, tolerance: float | None = None) -> Found:
    """Return the finding that the invariant holds."""
    return Found(outcome=Outcome.OK, detail=detail, difference=difference, tolerance=tolerance)


def failed(
    detail: str,
    difference: float | None = None,
    tolerance: float | None = None,
    culprit: str | None = None,
) -> Found:
    """Return the finding that the invariant does not hold."""
    return Found(
        outcome=Outcome.FAILED,
        detail=detail,
        difference=difference,
        tolerance=tolerance,
        culprit=culprit,
    )
