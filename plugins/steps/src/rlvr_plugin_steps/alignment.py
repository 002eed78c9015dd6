"""Pairs the steps of a solution with those of the reference, in order and one to one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MAX_ALIGNED_STEPS = 200
"""Steps of a solution beyond these are counted and match nothing."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """How two solutions agree.

    Attributes:
        matched: How many steps found a partner.
        recall: Similarity over the reference's weight: what of it was said.
        precision: Similarity over the number of steps: what was said to the point.
    """

    matched: int
    recall: float
    precision: float

    @property
    def f1(self) -> float:
        """Harmonic mean of recall and precision, 0 to 1."""
        total = self.recall + self.precision
        return 2 * self.recall * self.precision / total if total else 0.0


def align(
    similarities: Sequence[Sequence[float]], weights: Sequence[float], steps: int
) -> Alignment:
    """Return the best alignment that crosses nothing and uses no step twice.

    The best is the one with the most weighted similarity; it is found by dynamic programming, as
    for a longest common subsequence. Repeated, shuffled and irrelevant steps match nothing, so they
    lower the precision.

    Args:
        similarities: N rows, one for each step of the solution, of M similarities in 0 to 1, one
            for each step of the reference.
        weights: M weights of the reference's steps, none negative, some positive.
        steps: How many steps the solution has; N or more.
    """
    count = len(weights)
    # Of the best alignment so far: weighted similarity, similarity, and steps matched.
    best = [(0.0, 0.0, 0)] * (count + 1)
    for row in similarities:
        above = best
        best = [above[0]]
        for index in range(count):
            candidates = [above[index + 1], best[index]]
            similarity = row[index]
            if similarity:
                gain, plain, matched = above[index]
                gained = gain + weights[index] * similarity
                candidates.append((gained, plain + similarity, matched + 1))
            best.append(max(candidates))
    gain, plain, matched = best[-1]
    if not matched:
        return Alignment(0, 0.0, 0.0)
    return Alignment(matched, gain / sum(weights), plain / steps)
