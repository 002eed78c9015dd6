"""How far a judge agrees with labels: counts, an interval, and Cohen's kappa."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from pydantic import Field

from rlvr_core.api import Strict

PROVEN = 0.90
"""Where the interval of the agreement must begin."""
RAREST = 0.25
"""Share of the labelled rows that each of the two labels must have at least: a judge that fails
everything agrees with 95 of 100 rows of which 95 are wrong."""

_Z_95 = 1.959964
_MOST_LABELS = 100_000


class Counts(Strict):
    """Verdicts against labels."""

    passed_right: int = Field(ge=0)
    """Passed by the judge and by the label."""
    passed_wrong: int = Field(ge=0)
    """Passed by the judge alone."""
    failed_right: int = Field(ge=0)
    """Failed by both."""
    failed_wrong: int = Field(ge=0)
    """Failed by the judge alone."""

    @property
    def agreeing(self) -> int:
        """Rows on which both say the same."""
        return self.passed_right + self.failed_right

    @property
    def total(self) -> int:
        """Rows that were judged."""
        return self.agreeing + self.passed_wrong + self.failed_wrong

    @property
    def rarer_label(self) -> int:
        """Rows of the label that is rarer."""
        labelled_passed = self.passed_right + self.failed_wrong
        return min(labelled_passed, self.total - labelled_passed)

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa: agreement beyond that of chance. None when chance alone explains all."""
        if not self.total:
            return None
        labelled, judged = (
            self.passed_right + self.failed_wrong,
            self.passed_right + self.passed_wrong,
        )
        others = (self.total - labelled) * (self.total - judged)
        by_chance = (labelled * judged + others) / self.total**2
        return (
            None if by_chance == 1 else (self.agreeing / self.total - by_chance) / (1 - by_chance)
        )


def counted(pairs: Sequence[tuple[bool, bool]]) -> Counts:
    """Return the counts of (judged passed, labelled passed)."""
    return Counts(
        passed_right=pairs.count((True, True)),
        passed_wrong=pairs.count((True, False)),
        failed_right=pairs.count((False, False)),
        failed_wrong=pairs.count((False, True)),
    )


def wilson(agreeing: int, total: int) -> tuple[float, float]:
    """Return the 95 % Wilson score interval of a share; (0, 1) without rows.

    Source: E. B. Wilson, "Probable inference", JASA 22 (1927).
    """
    if total == 0:
        return 0.0, 1.0
    share, z2 = agreeing / total, _Z_95**2
    centre = (share + z2 / (2 * total)) / (1 + z2 / total)
    half = sqrt(share * (1 - share) / total + z2 / (4 * total * total)) * _Z_95 / (1 + z2 / total)
    return max(0.0, centre - half), min(1.0, centre + half)


def rows_to_prove(share: float) -> int | None:
    """Return how many labelled rows prove that at least `PROVEN` agree, when `share` of them do.

    None when the share is too small to be proven by any number of rows.
    """
    total = 1
    while total <= _MOST_LABELS:
        if wilson(int(share * total), total)[0] >= PROVEN:
            return total
        total += 1 + total // 50
    return None
