"""The text of a step as words, numbers and signs, and the rows of signs between words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from rlvr_plugin_steps.expressions import MAX_DIGITS, MAX_TOKENS, Kind, Token

NUMERAL = r"(?:\d{1,3}(?:,\d{3})+(?![\d,])|\d+)(?:\.\d+)?|\.\d+"
_LEXEME = re.compile(
    rf"""(?P<taint>\d+:\d[\d:]*|\\[A-Za-z]+|[√∑∫π_|]|\d+(?:\.\d+){{2,}})
    |(?P<mixed>\d{{1,6}}[ ]\d{{1,3}}/\d{{1,3}}(?![\d./]))
    |(?P<number>{NUMERAL})(?P<percent>[ ]?%)?
    |(?P<word>[^\W\d_]{{2,}}|[^\W\d_A-Za-z])
    |(?P<letter>[A-Za-z])
    |(?P<operator>[-+*/^])
    |(?P<equals>[=≈])
    |(?P<open>\()|(?P<close>\))
    |(?P<blank>[ ]+|\n[ ]?(?=[=≈]))
    |(?P<other>.|\n)""",
    re.X,
)
_CHANGES_NEXT = frozenset(
    [
        "of", "than", "twice", "thrice", "double", "triple", "half", "negative", "的",
        "比",
    ]
)  # fmt: skip
"""A number after one of these words means another number."""
_CHANGES_LAST = frozenset(
    [
        "dozen", "dozens", "hundred", "thousand", "million", "billion", "percent",
        "squared", "cubed", "百", "千", "万", "亿", "倍",
    ]
)  # fmt: skip
"""A number before one of these words means another number."""

# After a number, a letter or a bracket, what begins right here multiplies it: 2x, 3(4), (1)(2).
_MULTIPLIES = {
    (Kind.NUMBER, Kind.LETTER), (Kind.NUMBER, Kind.OPEN), (Kind.CLOSE, Kind.OPEN),
    (Kind.CLOSE, Kind.LETTER),
}  # fmt: skip
_ENDS_OPERAND = frozenset({Kind.NUMBER, Kind.LETTER, Kind.CLOSE})
_BEGINS_OPERAND = frozenset({Kind.NUMBER, Kind.LETTER, Kind.OPEN})


@dataclass(frozen=True, slots=True)
class Lexeme:
    """One piece of a text.

    Attributes:
        kind: The group of the pattern that it belongs to; ``gap`` between two operands.
        text: As written.
        token: What it is in an expression; None for words and other marks.
        is_glued: Whether no blank stands before it.
    """

    kind: str
    text: str
    token: Token | None
    is_glued: bool

    def is_one_of(self, words: frozenset[str]) -> bool:
        """Return whether it is one of some words, or a mark that changes any number beside it."""
        return self.kind == "taint" or self.text.casefold() in words


@dataclass(frozen=True, slots=True)
class Chain:
    """Expressions joined by equals signs.

    Attributes:
        sides: Their tokens; a side that the words around it change is empty.
        approximate: For each sign between two sides, whether it says "about".
    """

    sides: Sequence[Sequence[Token]]
    approximate: Sequence[bool]


def numbers_in(text: str) -> list[Fraction]:
    """Return the numbers of a text, in order, without signs and percent signs."""
    tokens = (_token(match) for match in _LEXEME.finditer(text))
    return [token.value for token in tokens if token is not None and token.kind is Kind.NUMBER]


def whole_expression(text: str) -> list[Token] | None:
    """Return the tokens of a text that is one expression; None when it is anything else."""
    lexemes = list(_lexemes(text.strip()))
    tokens = [lexeme.token for lexeme in lexemes if lexeme.token is not None]
    return tokens if tokens and len(tokens) == len(lexemes) else None


def chains_in(text: str) -> Iterator[Chain]:
    """Yield every row of numbers and signs that holds an equals sign and no words."""
    before: Lexeme | None = None
    row: list[Lexeme] = []
    for lexeme in _lexemes(text):
        if lexeme.token is not None or lexeme.kind == "equals":
            row.append(lexeme)
            continue
        if row:
            yield from _chain(row, before, lexeme)
            row = []
        before = None if lexeme.text == "\n" else lexeme
    if row:
        yield from _chain(row, before, None)


def _lexemes(text: str) -> Iterator[Lexeme]:
    is_glued, last = True, None
    for match in _LEXEME.finditer(text):
        kind = match.lastgroup or ""
        if kind == "blank":
            is_glued = False
            continue
        token = _token(match)
        if last is not None and token is not None:
            pair = (last.kind, token.kind)
            are_two = last.kind in _ENDS_OPERAND and token.kind in _BEGINS_OPERAND
            if are_two and not (is_glued and pair in _MULTIPLIES):
                yield Lexeme("taint" if is_glued else "gap", "", None, is_glued)
        yield Lexeme(kind, match[0], token, is_glued)
        is_glued, last = True, token


def _token(match: re.Match[str]) -> Token | None:
    if match["number"] is not None:
        written = match["number"]
        if len(written) > MAX_DIGITS:
            return None
        decimals = len(written.partition(".")[2])
        value = Fraction(written.replace(",", ""))
        percent = match["percent"] is not None
        return Token(Kind.NUMBER, value=value, is_percent=percent, decimals=decimals)
    if match["mixed"] is not None:
        whole, part = match["mixed"].split(" ")
        above, below = (int(digits) for digits in part.split("/"))
        return Token(Kind.NUMBER, value=int(whole) + Fraction(above, below)) if below else None
    if match["letter"] is not None:
        return Token(Kind.LETTER, match[0])
    if match["operator"] is not None:
        return Token(Kind.OPERATOR, match[0])
    if match["open"] or match["close"]:
        return Token(Kind(match[0]))
    return None


def _chain(row: Sequence[Lexeme], before: Lexeme | None, after: Lexeme | None) -> Iterator[Chain]:
    if len(row) > 2 * MAX_TOKENS:
        return
    sides: list[list[Token]] = [[]]
    approximate = []
    for lexeme in row:
        if lexeme.token is None:
            sides.append([])
            approximate.append(lexeme.text == "≈")
        else:
            sides[-1].append(lexeme.token)
    if not approximate:
        return
    if before is not None and (before.kind == "gap" or before.is_one_of(_CHANGES_NEXT)):
        sides[0] = []
    if _continues(row, before):
        sides[0] = []
    if after is not None and after.is_one_of(_CHANGES_LAST):
        sides[-1] = []
    yield Chain([_without_stray_brackets(side) for side in sides], approximate)


def _continues(row: Sequence[Lexeme], before: Lexeme | None) -> bool:
    """Return whether a row begins with an operator that belongs to what stands before it."""
    first = row[0].token
    if first is None or first.kind is not Kind.OPERATOR:
        return False
    is_sign = first.text == "-" and len(row) > 1 and row[1].is_glued
    return not (is_sign and (before is None or not row[0].is_glued))


def _without_stray_brackets(side: list[Token]) -> list[Token]:
    """Return a side without brackets at its ends that open or close around more than the side."""
    depth = lowest = 0
    for token in side:
        depth += (token.kind is Kind.OPEN) - (token.kind is Kind.CLOSE)
        lowest = min(lowest, depth)
    start, end = 0, len(side)
    for _ in range(depth - lowest):
        if start < end and side[start].kind is Kind.OPEN:
            start += 1
    for _ in range(-lowest):
        if start < end and side[end - 1].kind is Kind.CLOSE:
            end -= 1
    return side[start:end]
