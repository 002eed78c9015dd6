"""Intervals and paired tests for evaluations: is a difference real, or chance?

Standard library only. Accuracies are shares in [0, 1]; differences are shares too, and become
percentage points only where people read them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, sqrt

Z_95 = 1.959964
"""Two-sided 95 % quantile of the normal distribution."""
SIGNIFICANCE = 0.05
"""Largest p-value that separates a difference from chance."""
RESAMPLES = 2000
"""Of the bootstrap."""
_POWER_FACTOR = (1.96 + 0.84) ** 2
"""Squared sum of the quantiles for a two-sided 5 % test that finds an effect four times in five."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """What two evaluations of the same prompts say about each other."""

    prompts: int
    """Prompts judged in both; the others are left out."""
    difference: float
    """Mean of after - before, in [-1, 1]."""
    low: float
    """Lower end of the 95 % paired bootstrap interval."""
    high: float
    gained: int
    """Prompts that did better after than before."""
    lost: int
    p_value: float
    """Exact McNemar test on the prompts that changed."""
    separated: bool
    """True when the interval leaves out 0 and the test says p < 0.05."""
    resolvable: float
    """The smallest difference that this many prompts would show four times in five."""


def wilson(passed: float, total: float, z: float = Z_95) -> tuple[float, float]:
    """Return the Wilson score interval of a share.

    Args:
        passed: Successes, 0 to `total`.
        total: Trials; with 0 nothing is known and the interval is (0, 1).
        z: Normal quantile of the confidence level.

    Raises:
        ValueError: When `passed` is not between 0 and `total`.
    """
    if not 0 <= passed <= total:
        raise ValueError(f"passed must lie between 0 and total, got {passed} of {total}")
    if total == 0:
        return 0.0, 1.0
    share = passed / total
    scale = 1 + z * z / total
    centre = (share + z * z / (2 * total)) / scale
    half = z * sqrt(share * (1 - share) / total + z * z / (4 * total * total)) / scale
    # Rounding must not put the share itself, 0 or 1 above all, outside of its interval.
    return min(share, max(0.0, centre - half)), max(share, min(1.0, centre + half))


def mcnemar(gained: int, lost: int) -> float:
    """Return the exact two-sided p-value of `gained` against `lost` discordant pairs.

    Raises:
        ValueError: When a count is negative.
    """
    if gained < 0 or lost < 0:
        raise ValueError(f"counts must not be negative, got {gained} and {lost}")
    total = gained + lost
    tail = sum(comb(total, count) for count in range(min(gained, lost) + 1))
    p_value: float = 2 * tail / 2**total
    return min(1.0, p_value)


def paired_difference(
    before: Sequence[float | None], after: Sequence[float | None]
) -> PairedDifference | None:
    """Compare two evaluations of the same prompts.

    Args:
        before: One share of passed samples a prompt (0 or 1 with one sample), None when masked.
        after: The same prompts in the same order.

    Returns:
        The comparison, the same for the same input; None when no prompt was judged in both.

    Raises:
        ValueError: When the two differ in length.
    """
    changes = [
        new - old
        for old, new in zip(before, after, strict=True)
        if old is not None and new is not None
    ]
    if not changes:
        return None
    low, high = bootstrap_mean(changes)
    gained = sum(change > 0 for change in changes)
    lost = sum(change < 0 for change in changes)
    p_value = mcnemar(gained, lost)
    count = len(changes)
    discordant = max(gained + lost, 1) / count
    return PairedDifference(
        prompts=count,
        difference=sum(changes) / count,
        low=low,
        high=high,
        gained=gained,
        lost=lost,
        p_value=p_value,
        separated=(low > 0 or high < 0) and p_value < SIGNIFICANCE,
        resolvable=sqrt(_POWER_FACTOR * discordant / (count + _POWER_FACTOR)),
    )


def bootstrap_mean(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of the mean of `values` (at least one).

    The generator's seed is fixed: equal values in equal order give an equal interval.
    """
    generator = random.Random(0)
    count = len(values)
    means = sorted(sum(generator.choices(values, k=count)) / count for _ in range(RESAMPLES))
    edge = int(0.025 * RESAMPLES)
    return means[edge], means[RESAMPLES - 1 - edge]
