"""Small exact arithmetic: what a row of tokens is worth, as a fraction or a ratio of polynomials.

Nothing is evaluated by Python: the reader below knows numbers, single letters, ``+ - * / ^`` and
brackets. Whatever would be costly is refused, so that no text is slow to judge.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TypeAlias

MAX_TOKENS = 200
MAX_SYMBOLIC_TOKENS = 24
MAX_DEPTH = 30
MAX_BITS = 1024
"""Of a numerator or denominator."""
MAX_TERMS = 8
MAX_DEGREE = 12
"""Of a letter."""
MAX_EXPONENT = 64
MAX_DIGITS = 60
"""Of a number as written."""


class Kind(StrEnum):
    """What a token is."""

    NUMBER = "number"
    LETTER = "letter"
    OPERATOR = "operator"
    OPEN = "("
    CLOSE = ")"


@dataclass(frozen=True, slots=True)
class Token:
    """One piece of an expression.

    Attributes:
        kind: What it is.
        text: The letter or the operator.
        value: What a number is worth, its percent sign left out.
        is_percent: Whether a percent sign follows the number.
        decimals: How many decimals the number is written with.
    """

    kind: Kind
    text: str = ""
    value: Fraction = Fraction(0)
    is_percent: bool = False
    decimals: int = 0


Monomial: TypeAlias = tuple[tuple[str, int], ...]
Polynomial: TypeAlias = dict[Monomial, Fraction]
Value: TypeAlias = "Fraction | Ratio"


class ExpressionError(ValueError):
    """A row of tokens is no expression, or costs too much to work out."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """A polynomial divided by another, neither reduced; equal when cross products are."""

    above: Polynomial
    below: Polynomial

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ratio):
            return NotImplemented
        try:
            return _times(self.above, other.below) == _times(other.above, self.below)
        except ExpressionError:
            return False

    def __hash__(self) -> int:
        """Return its value at one point, modulo a prime: equal ratios have equal ones."""
        below = _at_a_point(self.below)
        return _at_a_point(self.above) * pow(below, -1, _PRIME) % _PRIME if below else 0


_PRIME = sys.hash_info.modulus
"""Python's hash of a fraction is the fraction modulo this prime."""


def _at_a_point(polynomial: Polynomial) -> int:
    total = 0
    for term, factor in polynomial.items():
        product = hash(factor)
        for letter, exponent in term:
            product *= pow(ord(letter) * 1_000_003 + 7919, exponent, _PRIME)
        total += product
    return total % _PRIME


_ONE: Polynomial = {(): Fraction(1)}


def value_of(tokens: Sequence[Token], *, percent: bool = True) -> Value:
    """Return what an expression is worth: a fraction, or a ratio if it has letters.

    Args:
        tokens: The expression.
        percent: Whether a percent sign divides by 100; otherwise it is a unit.

    Raises:
        ExpressionError: No expression, or one that costs too much.
        ZeroDivisionError: It divides by zero.
    """
    symbolic = any(token.kind is Kind.LETTER for token in tokens)
    if not tokens or len(tokens) > (MAX_SYMBOLIC_TOKENS if symbolic else MAX_TOKENS):
        raise ExpressionError("empty or too long")
    reader = _Reader(tokens, percent)
    value = reader.sum(0)
    if reader.rest:
        raise ExpressionError("more than one expression")
    return value


class _Reader:
    """Recursive descent: sums of products of signed powers."""

    def __init__(self, tokens: Sequence[Token], percent: bool) -> None:
        self.rest = list(reversed(tokens))
        self._percent = percent

    def _next_is(self, operators: str) -> bool:
        if not self.rest or self.rest[-1].kind is not Kind.OPERATOR:
            return False
        return self.rest[-1].text in operators

    def sum(self, depth: int) -> Value:
        value = self._product(depth)
        while self._next_is("+-"):
            value = _combined(self.rest.pop().text, value, self._product(depth))
        return value

    def _product(self, depth: int) -> Value:
        value = self._signed(depth)
        while self.rest and self.rest[-1].kind is not Kind.CLOSE and not self._next_is("+-"):
            # A bracket or a letter right after a factor multiplies it.
            operator = self.rest.pop().text if self._next_is("*/") else "*"
            value = _combined(operator, value, self._signed(depth))
        return value

    def _signed(self, depth: int) -> Value:
        negative = False
        while self._next_is("+-"):
            negative ^= self.rest.pop().text == "-"
        value = self._power(depth)
        return _combined("*", Fraction(-1), value) if negative else value

    def _power(self, depth: int) -> Value:
        base = self._atom(depth)
        if not self._next_is("^"):
            return base
        self.rest.pop()
        if depth >= MAX_DEPTH:
            raise ExpressionError("nested too deeply")
        return _raised(base, self._signed(depth + 1))

    def _atom(self, depth: int) -> Value:
        if not self.rest or depth >= MAX_DEPTH:
            raise ExpressionError("incomplete, or nested too deeply")
        token = self.rest.pop()
        if token.kind is Kind.NUMBER:
            return token.value / 100 if token.is_percent and self._percent else token.value
        if token.kind is Kind.LETTER:
            return Ratio({((token.text, 1),): Fraction(1)}, _ONE)
        if token.kind is not Kind.OPEN:
            raise ExpressionError("an operator without an operand")
        value = self.sum(depth + 1)
        if not self.rest or self.rest.pop().kind is not Kind.CLOSE:
            raise ExpressionError("a bracket is left open")
        return value


def _raised(base: Value, exponent: Value) -> Value:
    if not isinstance(exponent, Fraction) or exponent.denominator != 1:
        raise ExpressionError("only whole exponents are worked out")
    power = int(exponent)
    if abs(power) > MAX_EXPONENT:
        raise ExpressionError("the exponent is too large")
    value: Value = Fraction(1)
    for _ in range(abs(power)):
        value = _combined("*", value, base)
    return _combined("/", Fraction(1), value) if power < 0 else value


def _combined(operator: str, left: Value, right: Value) -> Value:
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return _sized(_of_fractions(operator, left, right))
    a, b = _ratio(left), _ratio(right)
    if operator in "+-":
        sign = Fraction(1 if operator == "+" else -1)
        above = _plus(_times(a.above, b.below), _times(b.above, a.below), sign)
        return Ratio(above, _times(a.below, b.below))
    if operator == "*":
        return Ratio(_times(a.above, b.above), _times(a.below, b.below))
    if not b.above:
        raise ZeroDivisionError
    return Ratio(_times(a.above, b.below), _times(a.below, b.above))


def _of_fractions(operator: str, left: Fraction, right: Fraction) -> Fraction:
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    return left * right if operator == "*" else left / right


def _ratio(value: Value) -> Ratio:
    if isinstance(value, Ratio):
        return value
    return Ratio({(): value} if value else {}, _ONE)


def _plus(left: Polynomial, right: Polynomial, sign: Fraction) -> Polynomial:
    total = dict(left)
    for term, factor in right.items():
        total[term] = _sized(total.get(term, Fraction(0)) + sign * factor)
    return _trimmed(total)


def _times(left: Polynomial, right: Polynomial) -> Polynomial:
    total: Polynomial = {}
    for one, factor in left.items():
        for other, second in right.items():
            exponents = dict(one)
            for letter, exponent in other:
                exponents[letter] = exponents.get(letter, 0) + exponent
                if exponents[letter] > MAX_DEGREE:
                    raise ExpressionError("the degree is too large")
            term = tuple(sorted(exponents.items()))
            total[term] = _sized(total.get(term, Fraction(0)) + factor * second)
    return _trimmed(total)


def _trimmed(polynomial: Polynomial) -> Polynomial:
    kept = {term: factor for term, factor in polynomial.items() if factor}
    if len(kept) > MAX_TERMS:
        raise ExpressionError("too many terms")
    return kept


def _sized(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise ExpressionError("a number grows too large")
    return value
