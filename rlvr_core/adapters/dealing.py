"""Deal the problems of other libraries out to splits that share none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from rlvr_core.data.splits import stable_hash

Item = TypeVar("Item")

SHARES: Mapping[str, float] = {"train": 0.8, "dev": 0.1, "gate": 0.1}
"""How the problems are dealt out, whatever sizes are asked for."""


def deal(problems: Iterable[tuple[str, Item]], sizes: Mapping[str, int]) -> dict[str, list[Item]]:
    """Return the problems of each split, at most as many as its size, in the order they come.

    Which split a problem belongs to follows from its text alone. A problem that comes twice is
    taken once. Stops to ask for problems when every split is full.

    Args:
        problems: The text that tells a problem from others, and the problem.
        sizes: The most problems of each split, which are those of `SHARES`.
    """
    dealt: dict[str, list[Item]] = {split: [] for split in SHARES}
    seen: set[str] = set()
    for text, problem in problems:
        split = _split(text)
        if text not in seen and len(dealt[split]) < sizes[split]:
            seen.add(text)
            dealt[split].append(problem)
            if all(len(dealt[split]) == sizes[split] for split in SHARES):
                break
    return dealt


def _split(text: str) -> str:
    place = int(stable_hash("split", text)[:13], 16) / 16**13
    for split, share in SHARES.items():
        place -= share
        if place < 0:
            return split
    return list(SHARES)[-1]
