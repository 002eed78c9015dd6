"""What stands on the left of an equality: a name for its value, or something to solve."""

from __future__ import annotations

import re

from rlvr_plugin_math_sympy.guards import NotMathsError
from rlvr_plugin_math_sympy.lexicon import Node
from rlvr_plugin_math_sympy.plain import parse
from rlvr_plugin_math_sympy.splitting import enclosed

_LETTER = re.compile(r"(?:[A-Za-z]|\\(?!infty|pi|frac|sqrt|text)[A-Za-z]+)'*(?:_(?:\{\w+\}|\w))?")
_HEAD = re.compile(r"[A-Za-z]{1,3}'*(?:_\w)?(?:\^\{-1\})?\s*\(\s*[A-Za-z\\][A-Za-z, ]*\)")
_WORDS = re.compile(
    r"(?:\\text\{[^{}]*\}|[A-Za-z\u4e00-\u9fff][A-Za-z\u4e00-\u9fff ]+"
    r"|[|\\a-zA-Z{} ]*\\angle[ A-Za-z]+)"
)
_SUBSCRIPT = r"(?:_\{[^{}]{1,40}\}|_\w)?"
_LETTER_RATIO = re.compile(rf"[A-Za-z]{{1,2}}{_SUBSCRIPT}(?::[A-Za-z]{{1,2}}{_SUBSCRIPT}){{1,5}}")
_SUBSCRIPTED = re.compile(rf"[A-Za-z]{_SUBSCRIPT}")
_DERIVATIVE = re.compile(r"\\frac\{d[^{}]{0,9}\}\{d[A-Za-z](?:\^\{?\d\}?)?\}")
_CALL = re.compile(
    r"(?!x)(?:[A-Za-z]|[A-Z][a-z]{1,3}|\\mathbb\{[A-Z]\})'*(?:_\w|_\{\w+\})?(?=[(\[])"
)
_FUNCTION = re.compile(
    r"\\?(?:arc)?(?:sin|cos|tan|cot|sec|csc|log|ln|lg|max|min|gcd|lcm|det|dim|arg)(?![a-z])"
)
_LENGTH = re.compile(r"\|(?:[^|]*[A-Z][^|]*|\\(?:vec|overline|overrightarrow|mathbf)[^|]*|[zw])\|")
_LENGTHS = re.compile(r"\\frac\{[A-Z]{2,3}\}\{[A-Z]{2,3}\}|[A-Z]{2,3}\s*/\s*[A-Z]{2,3}")
_CONSTANTS = frozenset({"pi", "e", "i"})


def is_label(side: str) -> bool:
    """Return whether the left side of an equality only names the value on its right."""
    compact = side.replace(" ", "")
    named = (_HEAD, _LETTER, _LETTER_RATIO, _SUBSCRIPTED, _DERIVATIVE)
    if any(pattern.fullmatch(compact) for pattern in named) or _WORDS.fullmatch(side.strip()):
        return True
    inner = enclosed(side, "(", ")")
    return inner is not None and all(_LETTER.fullmatch(part.strip()) for part in inner.split(","))


def is_variable(label: str) -> bool:
    """Return whether a label is one variable, such as ``x`` or ``x_1``."""
    return _LETTER.fullmatch(label.replace(" ", "")) is not None


def has_variables(text: str) -> bool:
    """Return whether an expression holds a symbol other than pi, e and i."""
    bare = re.sub(
        r"\\text\{[^{}]*\}|\\[A-Za-z]*(?:frac|sqrt|pi|cdot|times|infty|sin|cos|tan|ln|log)",
        "",
        text,
    )
    return bool(
        re.search(
            r"(?<![A-Za-z])(?![ei](?![A-Za-z]))[A-Za-z]", re.sub(r"\bsqrt\b|\bpi\b", "", bare)
        )
    )


def is_quantity(side: str) -> bool:
    r"""Return whether an equation whose left is `side` states a value, and is not one to solve.

    Named values and expressions in several variables are asked for as they are; what holds a single
    variable, such as ``2x``, is to be solved for it.
    """
    if is_named(side):
        return True
    try:
        return len(_symbols(parse(side))) > 1
    except NotMathsError:
        return False


def is_named(side: str) -> bool:
    r"""Return whether `side` is a named value: ``f(3)``, ``P(X = 2)``, ``|AB|``, ``\cos A``."""
    side = side.strip()
    call = _CALL.match(side)
    if call is not None:
        rest = side[call.end() :]
        return enclosed(rest, rest[0], {"(": ")", "[": "]"}[rest[0]]) is not None
    return bool(_FUNCTION.match(side) or _LENGTH.fullmatch(side) or _LENGTHS.fullmatch(side))


def _symbols(node: Node) -> set[str]:
    found = {str(node.value)} - _CONSTANTS if node.op == "sym" else set()
    return found.union(*map(_symbols, node.args))
