"""Whether an answer is a plain number as it is written, not a calculation that yields one."""

from __future__ import annotations

import re

from rlvr_plugin_math_sympy.exact import exact_value
from rlvr_plugin_math_sympy.guards import NotMathsError, TooCostlyError
from rlvr_plugin_math_sympy.labels import is_quantity
from rlvr_plugin_math_sympy.numbers import literal
from rlvr_plugin_math_sympy.plain import parse
from rlvr_plugin_math_sympy.shapes import Based, Equation, Group, Labelled, Leaf, Shape
from rlvr_plugin_math_sympy.splitting import enclosed
from rlvr_plugin_math_sympy.units import split_unit

_INTEGER = r"(?:\{\s*[-+]?\d+\s*\}|\d)"
_FRACTION = re.compile(
    rf"[-+]?\s*(?:(?:\d+\s*)?\\frac\s*{_INTEGER}\s*{_INTEGER}|(?:\d+\s+)?\d+\s*/\s*\d+)"
)
_SCALED = re.compile(r"\((?P<number>[^()]*)\)\*(?P<factor>\d+)")
_LEADING_TEXT = re.compile(r"\\text\{[^{}]*\}\s*")
_COUNTED = re.compile(r"(?i)\bdozens?\b")


def is_plain_number(shape: Shape) -> bool:
    """Return whether an answer of this shape is a number, or several, written out.

    A label (``x = 42``), a unit and a currency are allowed; of a chain, the shape holds the last
    member. A fraction is a number unless its value is an integer: 84/2 is a division left undone.
    """
    if isinstance(shape, Labelled):
        return is_plain_number(shape.value)
    if isinstance(shape, Equation):
        return is_quantity(shape.left) and _is_numeral(shape.right, whole_fractions=False)
    if isinstance(shape, Group):
        return bool(shape.items) and all(is_plain_number(item) for item in shape.items)
    if isinstance(shape, Based):
        return True
    return isinstance(shape, Leaf) and _is_numeral(shape.text, whole_fractions=False)


def wants_number(gold: Shape) -> bool:
    """Return whether a ground truth is one plain number; here 84/2 is one too."""
    if isinstance(gold, Labelled):
        return wants_number(gold.value)
    return isinstance(gold, Leaf) and _is_numeral(gold.text, whole_fractions=True)


def _is_numeral(text: str, *, whole_fractions: bool) -> bool:
    text = _bare(_LEADING_TEXT.sub("", text, count=1) if text.startswith("\\text") else text)
    if literal(text) is not None:
        return True
    measured = split_unit(text, bare_letters=True)
    value = measured.value
    scaled = None if text.startswith(value) else _SCALED.fullmatch(value)
    if scaled is not None:
        # 3 dozen is what a question asks for; 3 million is how the number is written.
        return literal(scaled["number"].strip()) is not None and not _COUNTED.search(text)
    value = _bare(value)
    return literal(value) is not None or _is_fraction(value, whole_fractions=whole_fractions)


def _bare(text: str) -> str:
    for _ in range(3):
        inner = enclosed(text.strip(), "(", ")")
        if inner is None:
            break
        text = inner
    return text.strip()


def _is_fraction(text: str, *, whole_fractions: bool) -> bool:
    text = text.removesuffix("%").rstrip()
    if not _FRACTION.fullmatch(text):
        return False
    try:
        value = exact_value(parse(text))
    except (NotMathsError, TooCostlyError):
        return False
    return value is not None and (whole_fractions or value.denominator != 1)
