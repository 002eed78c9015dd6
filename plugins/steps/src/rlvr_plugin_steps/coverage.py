"""Whether references can be aligned at all: measured on the reference solutions themselves.

A reference that has one step, or that agrees with half or the reverse of itself as well as with all
of itself, rewards nothing but the answer.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
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
        rows: How many there are.
        usable: How many of them are worth aligning with.
        faults: How many are not, by the first fault found; see `FAULTS`.
        median_steps: Steps of the median reference.
        checkable: Share of all steps with an equation.
        numeric: Share of all steps with a number and no equation; the rest is compared by words.
    """

    rows: int
    usable: int
    faults: dict[str, int]
    median_steps: float
    checkable: float
    numeric: float

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


def measure_coverage(truths: Iterable[Truth]) -> Coverage:
    """Return on how many references alignment can work."""
    faults: Counter[str] = Counter()
    counts: list[int] = []
    checkable = numeric = 0
    for truth in truths:
        faults[fault_of(truth) or ""] += 1
        steps = truth.reference.steps
        counts.append(len(steps))
        checkable += sum(bool(step.equations) for step in steps)
        numeric += sum(bool(step.numbers) and not step.equations for step in steps)
    usable = faults.pop("", 0)
    total = sum(counts) or 1
    return Coverage(
        rows=len(counts),
        usable=usable,
        faults={name: faults[name] for name in FAULTS if faults[name]},
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
