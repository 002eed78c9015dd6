"""What a step says, and how much of it another step says as well."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

from rlvr_plugin_steps.equations import Equation, equations_in
from rlvr_plugin_steps.lexemes import NUMERAL, numbers_in

LEAST_SIMILARITY = 0.5
"""Below it, two steps are two steps."""
SAME_RESULT = 0.8
"""What another computation of the same result is worth, if it shares a number with the first."""
SAME_RESULT_ALONE = 0.5
"""What it is worth if it shares none."""

_TOKEN = re.compile(rf"(?P<number>{NUMERAL})|[^\W\d_]+")
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]")
_EMPTY_WORDS = frozenset(
    [
        "a", "an", "the", "of", "to", "in", "on", "at", "by", "for", "from", "with",
        "and", "or", "so", "then", "thus", "therefore", "hence", "that", "this",
        "these", "those", "it", "its", "is", "are", "was", "were", "be", "been",
        "has", "have", "had", "we", "he", "she", "they", "his", "her", "their",
        "there", "will", "now", "total", "step", "first", "second", "third", "next",
        "finally", "的", "了", "是", "在", "有", "和", "就", "也", "所", "以", "因", "此", "这",
        "那",
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """What one step says.

    Attributes:
        equations: What it computes or defines.
        numbers: Every number in it, without signs.
        results: The number that it arrives at, without its sign, as in an equation; empty if it has
            none.
        words: Its words and numbers, without those that every text has, and how often.
    """

    equations: tuple[Equation, ...]
    numbers: frozenset[Fraction]
    results: frozenset[Fraction]
    words: Counter[str]

    @property
    def wrong(self) -> frozenset[Equation]:
        """Equations that are false."""
        return frozenset(equation for equation in self.equations if equation.is_true is False)


def read_step(text: str) -> Step:
    """Read one step, given in the spelling of `plain`."""
    equations = tuple(equations_in(text))
    numbers = numbers_in(text)
    reached = [one.results for one in equations if one.results]
    results = reached[-1] if reached else numbers[-1:]
    return Step(equations, frozenset(numbers), frozenset(map(abs, results)), _words(text))


def _words(text: str) -> Counter[str]:
    found: list[str] = []
    for match in _TOKEN.finditer(text):
        if match["number"]:
            written = match["number"].replace(",", "")
            found.append(written.rstrip("0").rstrip(".") if "." in written else written)
        elif _HAN.search(match[0]):
            # Chinese has no blanks, so each of its characters is a word.
            found.extend(match[0])
        else:
            found.append(match[0].casefold())
    telling = [word for word in found if word not in _EMPTY_WORDS]
    return Counter(telling or found)


def similarity(step: Step, reference: Step, forgiven: frozenset[Equation] = frozenset()) -> float:
    """Return how much of a reference step another step says: 0, or `LEAST_SIMILARITY` to 1.

    Args:
        step: The step to judge. With a false equation it is worth nothing.
        reference: The step that is right.
        forgiven: False equations that the reference solution has itself.
    """
    if step.wrong - forgiven:
        return 0.0
    # Equations that differ are not made up for by the words around them.
    both_compute = bool(step.equations) and bool(reference.equations)
    best = (by_equations if both_compute else by_words)(step, reference)
    return best if best >= LEAST_SIMILARITY else 0.0


def by_equations(step: Step, reference: Step) -> float:
    """Return the F1 of equations: 1 if both steps have the same ones and no others."""
    here, there = list(step.equations), list(reference.equations)
    shared = 0.0
    for credit in (1.0, SAME_RESULT, SAME_RESULT_ALONE):
        for wanted in there[:]:
            found = next((one for one in here if _credit(one, wanted) == credit), None)
            if found is not None:
                here.remove(found)
                there.remove(wanted)
                shared += credit
    return 2 * shared / (len(step.equations) + len(reference.equations))


def _credit(one: Equation, wanted: Equation) -> float:
    """Return what an equation is worth in place of another."""
    same_result = bool(one.results & wanted.results)
    if one.sides is not None or wanted.sides is not None:
        is_same = one.sides == wanted.sides
    else:
        is_same = same_result and one.operands == wanted.operands
    if is_same or one == wanted:
        return 1.0
    # 18 + 0 = 18 derives nothing: the result goes in.
    if not same_result or not one.is_true or one.results & set(one.operands):
        return 0.0
    return SAME_RESULT if set(one.operands) & set(wanted.operands) else SAME_RESULT_ALONE


def by_words(step: Step, reference: Step) -> float:
    """Return the F1 of words and numbers; 0 where the number that the reference reaches is missing.

    So a title repeated without its number, or with another, is worth nothing.
    """
    if reference.results and not reference.results & step.numbers:
        return 0.0
    few, many = sorted((step.words, reference.words), key=len)
    shared = sum(min(count, many[word]) for word, count in few.items())
    total = step.words.total() + reference.words.total()
    return 2 * shared / total if total else 0.0
