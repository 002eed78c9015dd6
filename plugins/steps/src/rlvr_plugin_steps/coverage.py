"""Whether references can be aligned at all: measured on the reference solutions themselves.

A reference that has one step, or that agrees with half or the reverse of itself as well as with all
of itself, rewards nothing but the answer.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from rlvr_core.api import Json
from rlvr_plugin_steps.alignment import align
from rlvr_plugin_steps.features import Step, similarity
from rlvr_plugin_steps.grading import grade
from rlvr_plugin_steps.truth import Reference, Truth

LEAST_COVERAGE = 0.6
"""Share of usable references below which nothing should be trained on them."""
CLEARLY_LESS = 0.8
"""What a damaged reference may agree with the whole one at most."""

FAULTS = ("one step", "not itself", "order does not matter", "half is as good")
"""What makes a reference unusable, in the order in which it is looked for."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """What can be done with some references.

    Attributes:
        found: For each reference the first fault found, one of `FAULTS`; None where it is usable.
        median_steps: Steps of the median reference.
        checkable: Share of all steps with an equation.
        numeric: Share of all steps with a number and no equation; the rest is compared by words.
    """

    found: tuple[str | None, ...]
    median_steps: float
    checkable: float
    numeric: float

    @property
    def rows(self) -> int:
        """How many references there are."""
        return len(self.found)

    @property
    def usable(self) -> int:
        """How many of them are worth aligning with."""
        return self.found.count(None)

    @property
    def faults(self) -> dict[str, int]:
        """How many are not, by fault."""
        return {name: self.found.count(name) for name in FAULTS if name in self.found}

    @property
    def share(self) -> float:
        """Share of usable references, 0 to 1."""
        return self.usable / self.rows if self.rows else 0.0

    @property
    def is_enough(self) -> bool:
        """Whether the share reaches `LEAST_COVERAGE`."""
        return self.share >= LEAST_COVERAGE

    def to_json(self) -> dict[str, Json]:
        """Return the coverage as plain data."""
        return {
            "rows": self.rows,
            "usable": self.usable,
            "share": round(self.share, 4),
            "least": LEAST_COVERAGE,
            "is_enough": self.is_enough,
            "faults": self.faults,
            "median_steps": self.median_steps,
            "checkable": round(self.checkable, 4),
            "numeric": round(self.numeric, 4),
        }


def measure_coverage(truths: Sequence[Truth]) -> Coverage:
    """Return on how many references alignment can work."""
    found: list[str | None] = []
    counts: list[int] = []
    checkable = numeric = 0
    for truth in truths:
        steps = truth.reference.steps
        found.append(fault_of(truth))
        counts.append(len(steps))
        checkable += sum(bool(step.equations) for step in steps)
        numeric += sum(bool(step.numbers) and not step.equations for step in steps)
    total = sum(counts) or 1
    return Coverage(
        found=tuple(found),
        median_steps=statistics.median(counts) if counts else 0.0,
        checkable=checkable / total,
        numeric=numeric / total,
    )


def fault_of(truth: Truth) -> str | None:
    """Return what keeps a reference from being aligned with, one of `FAULTS`; None if nothing."""
    reference = truth.reference
    steps = reference.steps
    if len(steps) < 2:
        return "one step"
    if grade(truth.solution(), truth).score(0.0) < 1.0:
        return "not itself"
    if _agreement(steps[::-1], reference, truth.step_weights) > CLEARLY_LESS:
        return "order does not matter"
    if _agreement(steps[: len(steps) // 2], reference, truth.step_weights) > CLEARLY_LESS:
        return "half is as good"
    return None


def _agreement(steps: Sequence[Step], reference: Reference, weights: Sequence[float]) -> float:
    similarities = [
        [similarity(step, wanted, reference.forgiven) for wanted in reference.steps]
        for step in steps
    ]
    return align(similarities, weights, len(steps)).f1
