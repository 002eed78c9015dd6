"""Intervals and their unions, compared part by part, then as sets of real numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlvr_plugin_math_sympy.guards import NotMathsError, TooCostlyError
from rlvr_plugin_math_sympy.leaves import Ladder
from rlvr_plugin_math_sympy.shapes import Group, Interval, Labelled, Leaf, Operation, Region, Shape

Same = Callable[[Shape, Shape, Ladder], bool]
MAX_PARTS = 12


def as_region(shape: Shape) -> Shape | None:
    """Return `shape` read as a set of real numbers, or None when it cannot be one."""
    if isinstance(shape, Labelled):
        return as_region(shape.value)
    if isinstance(shape, (Interval, Region)):
        return shape
    if not isinstance(shape, Group):
        return None
    if shape.kind in ("tuple", "bracket"):
        closed = shape.kind == "bracket"
        return Interval(*shape.items, closed, closed) if len(shape.items) == 2 else None
    if shape.kind == "set":
        return shape
    parts = [as_region(item) for item in shape.items]
    if not all(isinstance(part, (Interval, Region)) for part in parts) or len(parts) < 2:
        return None
    operation: Operation = "intersection" if shape.joined_by == "and" else "union"
    return Region(operation, tuple(part for part in parts if part is not None))


def same_region(answer: Shape, gold: Shape, ladder: Ladder, same: Same) -> bool:
    """Return whether two shapes, at least one of them an interval or a union, are the same set."""
    first, second = as_region(answer), as_region(gold)
    if first is None or second is None:
        return False
    if isinstance(first, Interval) and isinstance(second, Interval):
        return _same_interval(first, second, ladder, same)
    if (
        isinstance(first, Region)
        and isinstance(second, Region)
        and _same_parts(first, second, ladder, same)
    ):
        return True
    return _same_sets(first, second, ladder)


def _same_interval(answer: Interval, gold: Interval, ladder: Ladder, same: Same) -> bool:
    low_kind = answer.low_closed == gold.low_closed or _infinite(gold.low)
    high_kind = answer.high_closed == gold.high_closed or _infinite(gold.high)
    return (
        low_kind
        and high_kind
        and same(answer.low, gold.low, ladder)
        and same(answer.high, gold.high, ladder)
    )


def _infinite(shape: Shape) -> bool:
    return isinstance(shape, Leaf) and "infty" in shape.text


def _same_parts(answer: Region, gold: Region, ladder: Ladder, same: Same) -> bool:
    if answer.operation != gold.operation or len(answer.items) != len(gold.items):
        return False
    if answer.operation == "difference" or len(gold.items) > MAX_PARTS:
        return False
    left = list(gold.items)
    for item in answer.items:
        region = as_region(item)
        match = None
        for candidate in left:
            other = as_region(candidate)
            if isinstance(region, Interval) and isinstance(other, Interval):
                match = candidate if _same_interval(region, other, ladder, same) else None
            elif region is None and other is None:
                match = candidate if same(item, candidate, ladder) else None
            if match is not None:
                break
        if match is None:
            return False
        left.remove(match)
    return True


def _same_sets(answer: Shape, gold: Shape, ladder: Ladder) -> bool:
    ladder.spend()
    try:
        first, second = _to_set(answer), _to_set(gold)
    except NotMathsError:
        ladder.unreadable.append(str(answer))
        return False
    except (TooCostlyError, RecursionError, OverflowError):
        return False
    return bool(first == second)


def _to_set(shape: Shape) -> Any:
    """Return a sympy set with constant real ends.

    Raises:
        NotMathsError: when an end is no real constant, or the shape no set.
    """
    import sympy

    if isinstance(shape, Interval):
        low, high = _end(shape.low), _end(shape.high)
        return sympy.Interval(low, high, not shape.low_closed, not shape.high_closed)
    if isinstance(shape, Group) and shape.kind == "set" and len(shape.items) <= MAX_PARTS:
        return sympy.FiniteSet(*(_end(item) for item in shape.items))
    if not isinstance(shape, Region) or len(shape.items) > MAX_PARTS:
        raise NotMathsError("no region")
    parts = []
    for item in shape.items:
        region = as_region(item)
        if region is None:
            raise NotMathsError("no region")
        parts.append(_to_set(region))
    if shape.operation == "union":
        return sympy.Union(*parts)
    if shape.operation == "intersection":
        return sympy.Intersection(*parts)
    result = parts[0]
    for part in parts[1:]:
        result = sympy.Complement(result, part)
    return result


def _end(shape: Shape) -> Any:
    from rlvr_plugin_math_sympy.symbolic import to_sympy

    if not isinstance(shape, Leaf):
        raise NotMathsError("no number")
    value = to_sympy(shape.text.replace("+\\infty", "\\infty"))
    if value.free_symbols or not value.is_extended_real:
        raise NotMathsError("no real constant")
    return value
