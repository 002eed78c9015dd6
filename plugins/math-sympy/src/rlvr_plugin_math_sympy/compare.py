"""The ladder: string, exact number, structure, sympy within bounds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from rlvr_plugin_math_sympy.exact import exact_value
from rlvr_plugin_math_sympy.guards import (
    MAX_ANSWER_CHARACTERS,
    NotMathsError,
    TooCostlyError,
    is_readable,
)
from rlvr_plugin_math_sympy.labels import is_named, is_quantity
from rlvr_plugin_math_sympy.leaves import Ladder, same_leaf
from rlvr_plugin_math_sympy.normalise import canonical, tidy
from rlvr_plugin_math_sympy.numbers import literal, same_number
from rlvr_plugin_math_sympy.plain import parse
from rlvr_plugin_math_sympy.relations import same_equation, same_inequality, same_labelled
from rlvr_plugin_math_sympy.shapes import (
    Based,
    Equation,
    Group,
    Inequality,
    Labelled,
    Leaf,
    Matrix,
    Ratio,
    Shape,
    is_region,
)
from rlvr_plugin_math_sympy.structure import read

_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")


@lru_cache(maxsize=1024)
def prepared(text: str) -> str:
    """Return the tidied text, from a cache: a group shares its gold."""
    return tidy(text)


@lru_cache(maxsize=1024)
def shape_of(tidied: str) -> Shape:
    """Return the shape of tidied text, from a cache."""
    return read(tidied) if is_readable(tidied) else Leaf(tidied)


def same_answer(parts: Sequence[str], gold: str, ladder: Ladder) -> bool:
    """Return whether the claimed answer equals `gold`; `ladder` learns which rung decided.

    Args:
        parts: One answer text, or several that together form a set.
        gold: The ground truth as written.
        ladder: Tolerance in, rung out.
    """
    tidied_gold = prepared(gold)
    tidied = [tidy(part[: MAX_ANSWER_CHARACTERS * 20]) for part in parts]
    if len(tidied) == 1:
        if canonical(tidied[0]) == canonical(tidied_gold):
            return True
        first, second = literal(tidied[0]), literal(tidied_gold)
        if first is not None and second is not None:
            ladder.reach("number")
            return same_number(first, second, ladder.tolerance)
    if not all(is_readable(part) for part in tidied):
        ladder.unreadable.append(tidied[0])
        return False
    shapes = [shape_of(part) for part in tidied]
    answer = shapes[0] if len(shapes) == 1 else Group("set", tuple(_flat(shapes)))
    try:
        return same_shape(answer, shape_of(tidied_gold), ladder)
    except (TooCostlyError, RecursionError):
        return False


def _flat(shapes: Sequence[Shape]) -> list[Shape]:
    flat: list[Shape] = []
    for shape in shapes:
        flat.extend(
            shape.items if isinstance(shape, Group) and shape.kind in ("list", "set") else (shape,)
        )
    return flat


def same_shape(answer: Shape, gold: Shape, ladder: Ladder) -> bool:
    """Return whether two shapes are the same answer."""
    if isinstance(answer, Leaf) and isinstance(gold, Leaf):
        return same_leaf(answer.text, gold.text, ladder)
    ladder.reach("structure")
    if isinstance(answer, Labelled) or isinstance(gold, Labelled):
        return same_labelled(answer, gold, ladder, same_shape)
    if is_region(answer) or is_region(gold):
        from rlvr_plugin_math_sympy.regions import same_region

        return same_region(answer, gold, ladder, same_shape)
    stated = _stated(answer, gold)
    if stated is not None:
        return same_shape(*stated, ladder)
    if isinstance(answer, Group) or isinstance(gold, Group):
        return _same_groups(answer, gold, ladder)
    if isinstance(answer, Ratio) or isinstance(gold, Ratio):
        return _same_ratio(answer, gold, ladder)
    if isinstance(answer, Based) or isinstance(gold, Based):
        return _same_based(answer, gold)
    if isinstance(answer, Matrix) and isinstance(gold, Matrix):
        return _same_matrix(answer, gold, ladder)
    if isinstance(answer, Equation) and isinstance(gold, Equation):
        return same_equation((answer.left, answer.right), (gold.left, gold.right), ladder)
    if isinstance(answer, Inequality) and isinstance(gold, Inequality):
        return same_inequality(answer, gold, ladder)
    return False


def _stated(answer: Shape, gold: Shape) -> tuple[Shape, Shape] | None:
    """Return the two values where one side states its own as ``f(3) = 42`` or ``x + y = 42``."""
    if isinstance(answer, Equation) and isinstance(gold, Leaf) and is_quantity(answer.left):
        return shape_of(answer.right), gold
    # A ground truth such as x + y = 0 may be the equation that is asked for.
    if isinstance(gold, Equation) and isinstance(answer, Leaf) and is_named(gold.left):
        return answer, shape_of(gold.right)
    return None


# -- groups ----------------------------------------------------------------------------------------


def _same_groups(answer: Shape, gold: Shape, ladder: Ladder) -> bool:
    if not (isinstance(answer, Group) and isinstance(gold, Group)):
        return _group_against_single(answer, gold, ladder)
    free = [group.kind in ("list", "set") for group in (answer, gold)]
    if all(free):
        as_sets = "set" in (answer.kind, gold.kind)
        return _same_collection(answer.items, gold.items, ladder, as_sets=as_sets)
    if not any(free):
        if answer.kind != gold.kind and len(gold.items) == 2:
            return False
        return _same_sequence(answer.items, gold.items, ladder)
    ordered, loose = (gold, answer) if free[0] else (answer, gold)
    if ordered.kind == "bracket" and len(ordered.items) > 2:
        return _same_collection(answer.items, gold.items, ladder, as_sets=loose.kind == "set")
    if len(loose.items) == 1:
        (only,) = loose.items
        return (
            same_shape(only, gold, ladder) if loose is answer else same_shape(answer, only, ladder)
        )
    if loose.kind == "list" and _alphabetical(loose):
        return _same_sequence(answer.items, gold.items, ladder)
    return False


def _alphabetical(group: Group) -> bool:
    """Return whether all items are labelled with different names, in alphabetical order."""
    labels = [item.label for item in group.items if isinstance(item, Labelled)]
    return len(labels) == len(group.items) and labels == sorted(set(labels))


def _same_sequence(answer: Sequence[Shape], gold: Sequence[Shape], ladder: Ladder) -> bool:
    return len(answer) == len(gold) and all(
        same_shape(a, g, ladder) for a, g in zip(answer, gold, strict=True)
    )


def _same_collection(
    answer: Sequence[Shape], gold: Sequence[Shape], ladder: Ladder, *, as_sets: bool
) -> bool:
    """Compare without order: as sets, repeats do not count; as lists, each item is used once."""
    if not as_sets and len(answer) != len(gold):
        return False
    if bool(answer) != bool(gold):
        return False
    left = list(gold)
    for item in answer:
        match = next((g for g in (gold if as_sets else left) if same_shape(item, g, ladder)), None)
        if match is None:
            return False
        if match in left:
            left.remove(match)
    return (
        all(any(same_shape(item, g, ladder) for item in answer) for g in left) if as_sets else True
    )


def _group_against_single(answer: Shape, gold: Shape, ladder: Ladder) -> bool:
    group, single = (answer, gold) if isinstance(answer, Group) else (gold, answer)
    if not isinstance(group, Group) or group.kind in ("tuple", "bracket"):
        return False
    if isinstance(single, Leaf):
        letters = [item.text for item in group.items if isinstance(item, Leaf)]
        if re.fullmatch(r"[A-J]{2,}", single.text) and len(letters) == len(group.items) > 1:
            return sorted(set(single.text)) == sorted({letter.strip("()") for letter in letters})
        if _THOUSANDS.fullmatch(single.text) and len(group.items) > 1:
            items = tuple(Leaf(part) for part in single.text.split(","))
            other = Group("list", items)
            return (
                _same_groups(other, gold, ladder)
                if single is answer
                else _same_groups(answer, other, ladder)
            )
    if not group.items:
        return False
    if group is answer:
        return all(same_shape(item, gold, ladder) for item in group.items)
    return all(same_shape(answer, item, ladder) for item in group.items)


# -- other shapes ----------------------------------------------------------------------------------


def _same_matrix(answer: Matrix, gold: Matrix, ladder: Ladder) -> bool:
    if [len(row) for row in answer.rows] != [len(row) for row in gold.rows]:
        return False
    pairs = zip(_cells(answer), _cells(gold), strict=True)
    return all(same_leaf(a, g, ladder) for a, g in pairs)


def _cells(matrix: Matrix) -> list[str]:
    factor = "-1" if matrix.factor == "-" else matrix.factor
    return [f"({factor})({cell})" if factor else cell for row in matrix.rows for cell in row]


def _same_ratio(answer: Shape, gold: Shape, ladder: Ladder) -> bool:
    if isinstance(answer, Ratio) and isinstance(gold, Ratio):
        if answer.clock and gold.clock:
            suffixes = {answer.suffix, gold.suffix} - {""}
            return answer.parts == gold.parts and len(suffixes) < 2
        if answer.suffix or gold.suffix or len(answer.parts) != len(gold.parts):
            return False
        pairs = list(zip(answer.parts, gold.parts, strict=True))
        (first, second), *rest = pairs
        if any(_is_zero(part) for part in (first, second)):
            return all(same_leaf(a, g, ladder) for a, g in pairs)
        return all(same_leaf(f"({first})*({g})", f"({second})*({a})", ladder) for a, g in rest)
    ratio, other = (answer, gold) if isinstance(answer, Ratio) else (gold, answer)
    if not isinstance(ratio, Ratio) or not isinstance(other, Leaf):
        return False
    clock = ratio.suffix or (ratio.clock and ratio.parts[1].startswith("0"))
    if clock or len(ratio.parts) != 2 or _is_zero(ratio.parts[1]):
        return False
    share = f"({ratio.parts[0]})/({ratio.parts[1]})"
    return (
        same_leaf(share, other.text, ladder)
        if ratio is answer
        else same_leaf(other.text, share, ladder)
    )


def _is_zero(text: str) -> bool:
    return _rational(text) == 0


def _rational(text: str) -> Fraction | None:
    try:
        return exact_value(parse(text))
    except (NotMathsError, TooCostlyError):
        return None


def _same_based(answer: Shape, gold: Shape) -> bool:
    if isinstance(answer, Based) and isinstance(gold, Based):
        if answer.base == gold.base:
            return answer.digits.casefold() == gold.digits.casefold()
        return answer.value is not None and answer.value == gold.value
    based, other = (answer, gold) if isinstance(answer, Based) else (gold, answer)
    if not isinstance(based, Based) or not isinstance(other, Leaf):
        return False
    digits = re.sub(r"[\s,()]", "", other.text)
    return (digits.lstrip("0") or "0").casefold() == based.digits.casefold()
