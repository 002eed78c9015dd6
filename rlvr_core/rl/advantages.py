"""Advantages of one group, in plain float64 Python.

Sources: GRPO arXiv 2402.03300, Dr.GRPO arXiv 2503.20783.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from rlvr_core.api.rollouts import Group


def centred(rewards: Sequence[float]) -> list[float]:
    """Return ``r_i - mean(r)``, and exact zeros when all rewards are equal.

    Equal as for `Group.is_dead`, by ``max - min``, never by a standard deviation: its rounding
    residue is not zero, and dividing by it makes signal out of noise.
    """
    if not rewards or max(rewards) - min(rewards) <= Group.TOLERANCE:
        return [0.0] * len(rewards)
    mean = fmean(rewards)
    return [reward - mean for reward in rewards]


def standardised(
    rewards: Sequence[float], *, ddof: int = 1, epsilon: float = 1e-4, std_floor: float = 0.0
) -> list[float]:
    """Return ``(r_i - mean(r)) / (max(std(r), std_floor) + epsilon)``, zeros when all are equal.

    Args:
        rewards: The rewards of one group, invalid rollouts left out.
        ddof: 1 divides squared deviations by n - 1 (the sample standard deviation), 0 by n.
        epsilon: Added to the standard deviation.
        std_floor: Keeps tiny differences, as partial credit makes them, from becoming +-1.
    """
    deviations = centred(rewards)
    if not any(deviations):
        return deviations
    variance = sum(deviation**2 for deviation in deviations) / (len(deviations) - ddof)
    scale = max(variance**0.5, std_floor) + epsilon
    return [deviation / scale for deviation in deviations]
