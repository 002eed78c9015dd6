"""Chains of equalities: every number in one must agree with the last."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction

from rlvr_plugin_math_sympy.exact import exact_value
from rlvr_plugin_math_sympy.guards import NotMathsError, TooCostlyError
from rlvr_plugin_math_sympy.lexicon import Node
from rlvr_plugin_math_sympy.numbers import literal, rounded
from rlvr_plugin_math_sympy.plain import parse
from rlvr_plugin_math_sympy.units import split_unit

_WHOLE_TEXT = re.compile(r"^\s*\\text\{([^{}]*)\}\s*$")
MAX_MEMBERS = 40
MAX_IRRATIONAL = 4
"""How many members of one chain are evaluated with sympy."""


def disagreeing_member(sides: list[str], *, loosely: bool) -> str | None:
    """Return the first member of a chain that is a number and not the last one, or None.

    A member may be a finer form of a decimal (``10/3 = 3.33``), as people write.

    Args:
        sides: The members.
        loosely: Whether ``≈`` stands between them, so that an integer may be a rounding as well.
    """
    last, budget = _member(sides[-1]), MAX_IRRATIONAL
    if last.value is None and len(sides) > 2 and _is_constant(sides[-1]):
        last = replace(last, value=_irrational(sides[-1]))
    if last.value is None:
        return None
    for side in sides[:-1][:MAX_MEMBERS]:
        member = _member(side)
        if last.unit and member.unit and last.unit != member.unit:
            continue
        if member.value is None and budget and _is_constant(side):
            budget -= 1
            member = replace(member, value=_irrational(side))
        if side != sides[-1] and not _agree(member, last, loosely):
            return side
    return None


@dataclass(frozen=True, slots=True)
class _Member:
    """One side: its unit, its value where it is a number, and how that is written."""

    unit: str
    value: Fraction | None
    decimals: int = 0
    percent: bool = False


def _member(side: str) -> _Member:
    measured = split_unit(_WHOLE_TEXT.sub(r"\1", side), bare_letters=True)
    number = literal(measured.value)
    if number is not None:
        return _Member(measured.unit, number.value, number.decimals or 0, number.percent)
    try:
        return _Member(measured.unit, exact_value(parse(measured.value)))
    except (NotMathsError, TooCostlyError):
        return _Member(measured.unit, None)


def _agree(member: _Member, last: _Member, loosely: bool) -> bool:
    if member.value is None or last.value is None:
        return True
    places = None if last.decimals == 0 and not loosely else last.decimals
    if member.percent == last.percent:
        return _close(member.value, last.value, places)
    # A percent sign may be missing on either side (U1).
    share = member.value / 100 if member.percent else member.value * 100
    return any(_close(value, last.value, places) for value in (member.value, share))


def _close(value: Fraction, last: Fraction, places: int | None) -> bool:
    """Return whether `last` is `value` or a rounding of it, which None refuses to an integer."""
    if value == last:
        return True
    if last.denominator == 1 and (places is None or value.denominator == 1):
        return False
    return abs(value - last) <= abs(value) / 100 or rounded(value, places or 0) == last


def _is_constant(side: str) -> bool:
    """Return whether a member is an expression without variables that sympy may evaluate."""
    try:
        return not _has_symbol(parse(side))
    except NotMathsError:
        return False


def _has_symbol(node: Node) -> bool:
    if node.op in ("sum", "prod") or (node.op == "sym" and node.value not in ("pi", "e", "i")):
        return True
    return any(_has_symbol(argument) for argument in node.args)


def _irrational(side: str) -> Fraction | None:
    from rlvr_plugin_math_sympy.symbolic import numeric_value

    try:
        return numeric_value(side)
    except (NotMathsError, TooCostlyError, RecursionError, OverflowError):
        return None
