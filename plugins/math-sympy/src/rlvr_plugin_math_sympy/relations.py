"""Equations, inequalities and labelled values."""

from __future__ import annotations

from collections.abc import Callable

from rlvr_plugin_math_sympy.guards import NotMathsError, TooCostlyError
from rlvr_plugin_math_sympy.labels import has_variables, is_variable
from rlvr_plugin_math_sympy.leaves import Ladder
from rlvr_plugin_math_sympy.shapes import Equation, Group, Inequality, Labelled, Shape

Same = Callable[[Shape, Shape, Ladder], bool]


def same_labelled(answer: Shape, gold: Shape, ladder: Ladder, same: Same) -> bool:
    """Compare where at least one side carries a label; two different variables never agree."""
    if isinstance(answer, Labelled) and isinstance(gold, Labelled):
        return _both_labelled(answer, gold, ladder, same)
    labelled, other = (answer, gold) if isinstance(answer, Labelled) else (gold, answer)
    if not isinstance(labelled, Labelled):
        return False
    if isinstance(other, Equation):
        if not has_variables(labelled.right):
            return False
        return same_equation((labelled.label, labelled.right), (other.left, other.right), ladder)
    unzipped = _unzipped(labelled, other)
    if unzipped is not None:
        return (
            same(unzipped, other, ladder) if labelled is answer else same(other, unzipped, ladder)
        )
    if labelled is answer:
        return same(labelled.value, gold, ladder)
    return same(answer, labelled.value, ladder)


def _both_labelled(answer: Labelled, gold: Labelled, ladder: Ladder, same: Same) -> bool:
    names = (answer.label, gold.label)
    hard = all(is_variable(name) or name.startswith("(") for name in names)
    if not hard or names[0] == names[1]:
        return same(answer.value, gold.value, ladder)
    if has_variables(answer.right) and has_variables(gold.right):
        return same_equation((answer.label, answer.right), (gold.label, gold.right), ladder)
    return False


def _unzipped(labelled: Labelled, other: Shape) -> Group | None:
    """Return ``(x, y) = (1, 2)`` as the list ``x = 1, y = 2`` when `other` is such a list."""
    value = labelled.value
    if not (isinstance(other, Group) and other.kind == "list" and isinstance(value, Group)):
        return None
    names = labelled.label.strip("()").split(",")
    if value.kind != "tuple" or len(names) != len(value.items) or len(names) < 2:
        return None
    if not all(isinstance(item, Labelled) for item in other.items):
        return None
    items = tuple(Labelled(name, item, "") for name, item in zip(names, value.items, strict=True))
    return Group("list", items)


def same_equation(answer: tuple[str, str], gold: tuple[str, str], ladder: Ladder) -> bool:
    """Return whether two equations differ by a constant factor other than zero."""
    factor = _factor(f"({answer[0]})-({answer[1]})", f"({gold[0]})-({gold[1]})", ladder)
    return factor is not None and factor != 0


def same_inequality(answer: Inequality, gold: Inequality, ladder: Ladder) -> bool:
    """Return whether two inequalities differ by a positive constant factor."""
    if answer.strict != gold.strict:
        return False
    first = f"({answer.larger})-({answer.smaller})"
    second = f"({gold.larger})-({gold.smaller})"
    factor = _factor(first, second, ladder)
    return factor is not None and factor > 0


def _factor(first: str, second: str, ladder: Ladder) -> float | None:
    """Return the constant ratio of two expressions in the same symbols, or None."""
    ladder.spend()
    from rlvr_plugin_math_sympy.symbolic import constant_ratio

    try:
        return constant_ratio(first, second)
    except NotMathsError:
        ladder.unreadable.append(first)
        return None
    except (TooCostlyError, RecursionError, OverflowError):
        return None
