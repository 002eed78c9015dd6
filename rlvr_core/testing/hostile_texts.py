"""Completions made to break a verifier, as hypothesis strategies for tests of any text verifier.

Needs `hypothesis`. A verifier must answer each of them with a verdict, within its deadline.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import strategies as st

MEGABYTE = 1_000_000
"""Characters."""

_BRACKETS = {"(": ")", "[": "]", "{": "}", "<": ">", "\\{": "\\}", '{"a":': "}", "\\boxed{": "}"}
_CHARACTERS = [
    "\x00", "\x07", "\x1b[2J", "\x7f", "\x85", "\r\n", "\n", "\t", " ", "\u2028", "\u3000",
    "\ufeff",
    "\ud800", "\udfff", "\u200b", "\u202e", "\U000e0041", "a\u0300\u0323", "\u0338", "ﷺ", "İ", "ß",
    "½", "√", "９", "你", "或", "百分之", "한", "ह", "😀", "“", "’", "。", "，",
]  # fmt: skip
_MARKS = [
    "<think>", "</think>", "[THINK]", "<answer>", "</answer>", "<!--", "-->", "<|im_end|>", "```",
    "\n```json\n", "~~~\n", "**", "__", "#### ", "The answer is ", "答案是", "\\boxed{", "$", "$$",
]  # fmt: skip
_PARTS = [
    "(", ")", "[", "]", "{", "}", "<<", ">>", '"', "'", "\\", "\\u", "/", "//", "|", "&", "%", "^",
    "^{", "_{", "\\frac{", "\\sqrt[", "\\text{", "\\begin{pmatrix}", "\\\\", ".", "...", ",", ":",
    ";", "-", "+", "*", "=", "!", "~", "null", "true", "NaN", "None", "-1", "0.1", "1e999",
    "9" * 5000, "0x2A", "x", "e", "yes", "word ", "{0.__class__}", "%s", "__import__('os')",
]  # fmt: skip


def hostile_texts(pieces: Sequence[str] = ()) -> st.SearchStrategy[str]:
    """Return a strategy for hostile completions, most of them short.

    Nested and unbalanced brackets, control and look-alike characters, lone surrogates, power
    towers, JSON of any shape, reasoning marks and answer marks in any order, and any text at all.

    Args:
        pieces: Words of the verifier's own format, mixed with the others.
    """
    general = st.sampled_from([*_PARTS, *_MARKS, *_CHARACTERS])
    one = st.one_of(general, st.sampled_from(list(pieces))) if pieces else general
    mixed = st.lists(one, min_size=1, max_size=40).map("".join)
    kinds = [mixed, _nested(), _power_towers(), _json_texts(), _any_texts(), _claims(mixed)]
    return st.one_of(kinds)


def filled(unit: str, characters: int = MEGABYTE) -> str:
    """Return `unit` repeated up to `characters` characters; `unit` must not be empty."""
    return (unit * (characters // len(unit) + 1))[:characters]


def _any_texts() -> st.SearchStrategy[str]:
    return st.text(st.characters(exclude_categories=()), max_size=80)


def _claims(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return texts that reach the comparison: hostile text where an answer is expected."""
    forms = ["The answer is {}", "\\boxed{{{}}}", "<answer>{}</answer>", "```json\n{}\n```", "[{}]"]
    return st.tuples(st.sampled_from(forms), inner).map(lambda pair: pair[0].format(pair[1]))


def _nested() -> st.SearchStrategy[str]:
    """Return brackets nested up to 3,000 deep, closed or left open."""

    def built(parts: tuple[str, int, str, bool]) -> str:
        opening, depth, inside, is_closed = parts
        return opening * depth + inside + _BRACKETS[opening] * (depth if is_closed else 0)

    depths = st.one_of(st.integers(1, 60), st.integers(1, 3_000))
    parts = st.tuples(
        st.sampled_from(list(_BRACKETS)), depths, st.sampled_from("1x"), st.booleans()
    )
    return parts.map(built)


def _power_towers() -> st.SearchStrategy[str]:
    """Return towers such as ``9^{9^{9}}``, ``9**9**9`` and factorials of factorials."""

    def built(parts: tuple[str, list[str]]) -> str:
        operator, numbers = parts
        return operator.join(numbers) + "}" * (operator.count("{") * (len(numbers) - 1))

    operators = st.sampled_from(["^{", "^", "**", "!^{", "e"])
    numbers = st.lists(
        st.sampled_from(["9", "2", "99999", "x", "e", "1e9"]), min_size=2, max_size=30
    )
    return st.tuples(operators, numbers).map(built)


def _json_texts() -> st.SearchStrategy[str]:
    simple = st.none() | st.booleans() | st.integers() | st.floats() | _any_texts()
    values = st.recursive(
        simple,
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(_any_texts(), inner, max_size=4)
        ),
        max_leaves=20,
    )
    return values.map(json.dumps)
