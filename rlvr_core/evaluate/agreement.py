"""How often the members of a verifier that asks others said the same of a completion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from rlvr_core.api.verdicts import Json, Status

BOTH_PASSED, FIRST_PASSED, SECOND_PASSED, BOTH_FAILED = (
    "both_passed",
    "first_passed",
    "second_passed",
    "both_failed",
)
_CELLS = {
    (True, True): BOTH_PASSED,
    (True, False): FIRST_PASSED,
    (False, True): SECOND_PASSED,
    (False, False): BOTH_FAILED,
}
_VOTES = (Status.PASSED.value, Status.FAILED.value)

Counts = dict[str, dict[str, int]]
"""``verifier/first member/second member`` -> how many completions, by what the two said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Two members of one verifier, and the completions that both judged."""

    verifier: str
    first: str
    second: str
    both_passed: int
    first_passed: int
    """The second failed them."""
    second_passed: int
    both_failed: int

    @property
    def judged(self) -> int:
        """Completions that both judged."""
        return self.both_passed + self.first_passed + self.second_passed + self.both_failed

    @property
    def disagreed(self) -> int:
        """Completions that one passed and the other failed."""
        return self.first_passed + self.second_passed

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa; None when chance alone makes them agree everywhere."""
        total = self.judged
        if not total:
            return None
        first = (self.both_passed + self.first_passed) / total
        second = (self.both_passed + self.second_passed) / total
        by_chance = first * second + (1 - first) * (1 - second)
        if by_chance == 1:
            return None
        return (1 - self.disagreed / total - by_chance) / (1 - by_chance)


def count_agreement(verdicts: Iterable[tuple[str, Mapping[str, Json]]]) -> Counts:
    """Count what pairs of members said.

    Args:
        verdicts: Name of a verifier and the diagnostics of its verdict; those without members are
            passed over, and so is a member without a judgement.
    """
    counts: dict[str, Counter[str]] = {}
    for verifier, diagnostics in verdicts:
        for first, second in combinations(_votes(diagnostics.get("members")), 2):
            key = "/".join((verifier, first[0], second[0]))
            counts.setdefault(key, Counter())[_CELLS[first[1], second[1]]] += 1
    return {key: {cell: counts[key][cell] for cell in _CELLS.values()} for key in sorted(counts)}


def summed_agreement(counts: Iterable[Mapping[str, Mapping[str, int]]]) -> list[Agreement]:
    """Return the agreement of each pair over several counts, as ``metrics.jsonl`` holds them."""
    totals: dict[str, Counter[str]] = {}
    for one in counts:
        for key, cells in one.items():
            totals.setdefault(key, Counter()).update(
                {cell: cells[cell] for cell in _CELLS.values() if cell in cells}
            )
    found = []
    for key, cells in totals.items():
        # A member's name holds no slash; that of the verifier that asks may, if it is asked itself.
        verifier, first, second = key.rsplit("/", 2)
        counted = {cell: cells[cell] for cell in _CELLS.values()}
        found.append(Agreement(verifier=verifier, first=first, second=second, **counted))
    return found


def _votes(members: Json) -> Iterator[tuple[str, bool]]:
    """Yield (name, passed) of the members that judged."""
    if not isinstance(members, Mapping):
        return
    for name, said in members.items():
        status = said.get("status") if isinstance(said, Mapping) else None
        if status in _VOTES:
            yield str(name), status == Status.PASSED.value
