"""Precision, recall and F1 of claimed entities, with one-to-one pairing."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rlvr_plugin_f1_extraction.entities import Entity
from rlvr_plugin_f1_extraction.normalise import words

PARTIAL_CREDIT = 0.5


@dataclass(frozen=True, slots=True)
class Score:
    """How well claimed entities meet those that are right.

    Attributes:
        exact: Number of claimed entities that are right.
        partial: Number of further pairs that overlap and have the same type.
        claimed: Number of claimed entities, malformed ones included.
        wanted: Number of entities that are right.
    """

    exact: int
    partial: int
    claimed: int
    wanted: int

    @property
    def credit(self) -> float:
        """What the pairs earn: 1 for an exact one, 0.5 for a partial one."""
        return self.exact + PARTIAL_CREDIT * self.partial

    @property
    def precision(self) -> float:
        """Credit for each claimed entity; 1 where nothing is claimed and nothing wanted."""
        return self.credit / self.claimed if self.claimed else float(not self.wanted)

    @property
    def recall(self) -> float:
        """Credit for each wanted entity; 1 where nothing is claimed and nothing wanted."""
        return self.credit / self.wanted if self.wanted else float(not self.claimed)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 1 where nothing is claimed and nothing wanted."""
        total = self.claimed + self.wanted
        return 2 * self.credit / total if total else 1.0


def score(
    claimed: Sequence[Entity],
    wanted: Sequence[Entity],
    *,
    multiset: bool = False,
    partial: bool = False,
    ungrounded: frozenset[Entity] = frozenset(),
) -> Score:
    """Score claimed entities.

    Args:
        claimed: The entities of an answer.
        wanted: The entities that are right.
        multiset: Repeats count, on both sides; otherwise each side is a set.
        partial: Pairs of one type that overlap earn half, after the exact ones are paired.
        ungrounded: Claimed entities that earn nothing for an overlap.
    """
    left, right = Counter(claimed), Counter(wanted)
    if not multiset:
        left, right = Counter(left.keys()), Counter(right.keys())
    both = left & right
    pairs = 0
    if partial:
        rest = [entity for entity in (left - both).elements() if entity not in ungrounded]
        pairs = _most_pairs(rest, list((right - both).elements()))
    return Score(both.total(), pairs, left.total(), right.total())


def _most_pairs(claimed: Sequence[Entity], wanted: Sequence[Entity]) -> int:
    """Return how many entities can be paired one to one with an overlapping one of their type.

    A maximum matching, so that the order of entities does not matter (augmenting paths, found
    breadth first from each wanted entity).
    """
    neighbours = _neighbours(claimed, wanted)
    pairs = _Pairs({}, {})
    return sum(_augment(index, neighbours, pairs) for index in range(len(wanted)))


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Indices of claimed and wanted entities that are paired, both ways round."""

    wanted_by_claim: dict[int, int]
    claim_by_wanted: dict[int, int]


def _augment(start: int, neighbours: Sequence[Sequence[int]], pairs: _Pairs) -> bool:
    """Pair wanted entity `start`, moving others if need be; return whether that was possible."""
    reached_from: dict[int, int] = {}
    queue = deque([start])
    while queue:
        wanted = queue.popleft()
        for claim in neighbours[wanted]:
            if claim in reached_from:
                continue
            reached_from[claim] = wanted
            if claim not in pairs.wanted_by_claim:
                _shift(claim, reached_from, pairs)
                return True
            queue.append(pairs.wanted_by_claim[claim])
    return False


def _shift(free: int, reached_from: Mapping[int, int], pairs: _Pairs) -> None:
    """Pair `free` with the wanted entity that it was reached from, and so on."""
    claim: int | None = free
    while claim is not None:
        wanted = reached_from[claim]
        released = pairs.claim_by_wanted.get(wanted)
        pairs.wanted_by_claim[claim] = wanted
        pairs.claim_by_wanted[wanted] = claim
        claim = released


def _neighbours(claimed: Sequence[Entity], wanted: Sequence[Entity]) -> list[list[int]]:
    """Return for each wanted entity the claimed ones that overlap with it.

    A list ends at as many as there are wanted entities: one with that many can always be paired.
    """
    found: list[list[int]] = [[] for _ in wanted]
    open_by_key: dict[tuple[str, str], dict[int, None]] = defaultdict(dict)
    for index, entity in enumerate(wanted):
        for key in _keys(entity):
            open_by_key[key][index] = None
    for claim, entity in enumerate(claimed):
        if entity.malformed:
            continue
        near = {
            index: None
            for key in _keys(entity)
            if key in open_by_key
            for index in open_by_key[key]
            if _overlap(entity, wanted[index])
        }
        for index in near:
            found[index].append(claim)
            if len(found[index]) == len(wanted):
                for key in _keys(wanted[index]):
                    del open_by_key[key][index]
    return found


def _keys(entity: Entity) -> Iterable[tuple[str, str]]:
    """Return what two entities that overlap have in common: the type, and a word of the text."""
    if entity.span is not None:
        return [(entity.type, "")]
    return [(entity.type, word) for word in words(entity.text)]


def _overlap(one: Entity, other: Entity) -> bool:
    if one.span is None or other.span is None:
        return True
    return one.span[0] < other.span[1] and other.span[0] < one.span[1]
