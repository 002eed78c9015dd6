"""What the checks of a plugin found, counted: as objects, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rlvr_core.api.verdicts import Json

if TYPE_CHECKING:
    from rich.console import Console


class Outcome(StrEnum):
    """How one check ended."""

    PASSED = "passed"
    FAILED = "failed"
    EXPECTED = "expected"
    """It failed, and the plugin says that it will, and why."""
    NOT_APPLICABLE = "not applicable"
    """The plugin lacks what the check is about."""
    SKIPPED = "skipped"
    """It would have applied, but could not be made: a check before it failed."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of one plugin."""

    number: str
    """Such as ``R20``; a check keeps its number for ever."""
    sentence: str
    """What must hold."""
    outcome: Outcome
    detail: str
    """What was found."""

    def to_json(self) -> dict[str, Json]:
        """Return the result as a JSON object."""
        return {
            "number": self.number,
            "sentence": self.sentence,
            "outcome": self.outcome.value,
            "detail": self.detail,
        }


@dataclass(frozen=True, slots=True)
class CheckReport:
    """All checks of one plugin, in the order of their numbers."""

    plugin: str
    blame: str
    """Distribution and version."""
    family: str
    level: str
    """``basic`` or ``listed``."""
    results: tuple[CheckResult, ...]

    def with_outcome(self, outcome: Outcome) -> tuple[CheckResult, ...]:
        """Return the results that ended so."""
        return tuple(result for result in self.results if result.outcome is outcome)

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """Return the checks that failed."""
        return self.with_outcome(Outcome.FAILED)

    @property
    def is_passed(self) -> bool:
        """True when nothing failed and every check that applies was made.

        A run that made no check at all, or lost some on the way, is no passed one.
        """
        counts = self.counts
        return counts["failed"] == 0 and counts["run"] == counts["applicable"] > 0

    @property
    def counts(self) -> Mapping[str, int]:
        """How many checks there are of each kind; ``run`` is applicable less skipped."""
        counted = Counter(result.outcome for result in self.results)
        applicable = len(self.results) - counted[Outcome.NOT_APPLICABLE]
        return {
            "applicable": applicable,
            "run": applicable - counted[Outcome.SKIPPED],
            "passed": counted[Outcome.PASSED],
            "expected": counted[Outcome.EXPECTED],
            "failed": counted[Outcome.FAILED],
            "skipped": counted[Outcome.SKIPPED],
            "not_applicable": counted[Outcome.NOT_APPLICABLE],
        }

    @property
    def summary(self) -> str:
        """The counts in one line."""
        counts = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        return f"{self.plugin} ({self.blame}), level {self.level}: {counts}".replace("_", " ")

    def to_json(self) -> dict[str, Json]:
        """Return the report as a JSON object."""
        return {
            "plugin": self.plugin,
            "distribution": self.blame,
            "family": self.family,
            "level": self.level,
            "passed": self.is_passed,
            "counts": dict(self.counts),
            "checks": [result.to_json() for result in self.results],
        }

    def render(self, console: Console) -> None:
        """Print a table of all checks, what failed once more below it, and the counts."""
        from rich.table import Table
        from rich.text import Text

        colours = {
            Outcome.PASSED: "green",
            Outcome.FAILED: "bold red",
            Outcome.EXPECTED: "yellow",
            Outcome.NOT_APPLICABLE: "dim",
            Outcome.SKIPPED: "magenta",
        }
        table = Table()
        for column in ("check", "outcome", "what must hold", "found"):
            table.add_column(column, overflow="fold")
        for result in self.results:
            table.add_row(
                result.number,
                Text(result.outcome.value, style=colours[result.outcome]),
                Text(result.sentence),
                Text(result.detail),
            )
        console.print(table)
        for result in self.failed:
            console.print(Text(f"{result.number} failed: {result.detail}"))
        console.print(Text(self.summary))

    def to_text(self) -> str:
        """Return the summary, and a line for each check that failed or was lost."""
        shown = [*self.failed, *self.with_outcome(Outcome.SKIPPED)]
        lines = [
            f"  {one.number} {one.outcome.value}: {one.sentence} Found: {one.detail}"
            for one in shown
        ]
        return "\n".join([self.summary, *lines])
