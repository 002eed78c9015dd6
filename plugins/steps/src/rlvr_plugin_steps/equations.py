"""The equations in a step, and whether what they claim is true."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from rlvr_plugin_steps.expressions import ExpressionError, Kind, Token, Value, value_of
from rlvr_plugin_steps.lexemes import Chain, chains_in

MAX_EQUATIONS = 32
"""Of one step; any more are not read."""
ROUNDED_DECIMALS = 2
"""A result with at least so many decimals may be a rounded one: 10/3 = 3.33."""

_SPOKEN = {
    "plus": "+", "minus": "-", "times": "*", "equals": "=", "加": "+", "减": "-", "乘": "*",
    "乘以": "*", "除以": "/", "等于": "=",
}  # fmt: skip
_SPOKEN_SIGN = re.compile(
    r"(?<=[\d)%])[ ]?(plus|minus|times|equals|加|减|乘以|乘|除以|等于)[ ]?(?=[-.(]?\d)"
)
_SPOKEN_PHRASE = re.compile(r"(?<=[\d)%])[ ](divided|multiplied) by[ ](?=[.(]?\d)")
_PART_OF = re.compile(r"(?<=[\d)%])[ ]of[ ](?=[.(]?\d)")
_UNIT = re.compile(
    r"(?<=[\d)%])(?:[ ]?/[ ]?[A-Za-z]{2,20}\b|[ ]?(?!(?:and|or|so|is|are|of|than)\b)"
    r"[A-Za-z]{2,20}\b){1,3}[ ]?(?=[-+*/=≈)])"
)


@dataclass(frozen=True, slots=True)
class Equation:
    """What one chain of equals signs says.

    Attributes:
        operands: The numbers of its first side that computes, in order of size; empty if none does.
        results: The number that it arrives at, 25% as 0.25 and as 25; empty if it ends in letters.
        sides: Its first and last side, where letters stand in it; None where it is all numbers.
        is_true: Whether its sides are equal; None where that depends on letters, or on "about".
    """

    operands: tuple[Fraction, ...]
    results: frozenset[Fraction]
    sides: frozenset[Value] | None
    is_true: bool | None


def equations_in(text: str) -> list[Equation]:
    """Return the equations of a step, each once.

    What stands there without words in between is taken at its word, so a false one is wrong. Units
    (``3 eggs * $2/egg = $6``) are read past, and such an equation counts only if it is true: what
    words do to numbers cannot be known.
    """
    if "=" not in text and "≈" not in text and not _SPOKEN_SIGN.search(text):
        return []
    spoken = _PART_OF.sub(" * ", text)
    spoken = _SPOKEN_PHRASE.sub(lambda match: " / " if match[1] == "divided" else " * ", spoken)
    spoken = _SPOKEN_SIGN.sub(lambda match: f" {_SPOKEN[match[1]]} ", spoken)
    found = dict.fromkeys(_equations(spoken))
    without_units = _UNIT.sub(" ", spoken)
    if without_units != spoken:
        found |= dict.fromkeys(one for one in _equations(without_units) if one.is_true)
    return list(found)[:MAX_EQUATIONS]


def _equations(text: str) -> Iterator[Equation]:
    count = 0
    for chain in chains_in(text):
        equation = _equation(chain)
        if equation is not None:
            yield equation
            count += 1
        if count >= MAX_EQUATIONS:
            return


def _equation(chain: Chain) -> Equation | None:
    """Return what a chain says; None when it computes nothing and defines nothing."""
    sides = chain.sides
    computing = [side for side in sides if _computes(side) and not _has_letters(side)]
    letters = any(_has_letters(side) for side in sides)
    if not computing and not letters:
        return None
    said = [
        _is_equal(left, right, about)
        for left, right, about in zip(sides, sides[1:], chain.approximate, strict=False)
    ]
    is_true = False if False in said else (True if True in said else None)
    operands = sorted(t.value for t in computing[0] if t.kind is Kind.NUMBER) if computing else []
    ends = frozenset(_ends(sides)) if letters else None
    results = _results(sides[-1])
    if is_true is None and not ends and not results:
        return None
    return Equation(tuple(operands), results, ends or None, is_true)


def _has_letters(side: Sequence[Token]) -> bool:
    return any(token.kind is Kind.LETTER for token in side)


def _computes(side: Sequence[Token]) -> bool:
    return sum(token.kind in (Kind.NUMBER, Kind.LETTER) for token in side) > 1


def _ends(sides: Sequence[Sequence[Token]]) -> list[Value]:
    """Return what the first and the last side are worth; nothing if either is no expression."""
    try:
        return [value_of(sides[0]), value_of(sides[-1])]
    except (ExpressionError, ZeroDivisionError):
        return []


def _results(side: Sequence[Token]) -> frozenset[Fraction]:
    try:
        return frozenset(_readings(side))
    except ZeroDivisionError:
        return frozenset()


def _readings(side: Sequence[Token]) -> list[Fraction]:
    """Return the values that a side without letters may have; none if it is no expression.

    A percent sign divides by 100, or is a unit: 5/20*100 = 25% is as right as 5/20 = 25%.

    Raises:
        ZeroDivisionError: It divides by zero.
    """
    if _has_letters(side):
        return []
    modes = (True, False) if any(token.is_percent for token in side) else (True,)
    try:
        values = [value_of(side, percent=percent) for percent in modes]
    except ExpressionError:
        return []
    return [value for value in values if isinstance(value, Fraction)]


def _is_equal(left: Sequence[Token], right: Sequence[Token], about: bool) -> bool | None:
    """Return whether two sides are equal; None if that cannot be told, or is not claimed."""
    try:
        lefts, rights = _readings(left), _readings(right)
    except ZeroDivisionError:
        return False
    if not lefts or not rights:
        return None
    if set(lefts) & set(rights):
        return True
    if len(right) == 1 and (about or right[0].decimals >= ROUNDED_DECIMALS):
        step = Fraction(1, 10 ** right[0].decimals)
        if any(abs(one - other) < step for one in lefts for other in rights):
            return True
    return None if about else False
