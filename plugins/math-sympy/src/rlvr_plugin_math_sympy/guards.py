"""Bounds on what is read and computed, checked before anything large is built."""

from __future__ import annotations

import math
from fractions import Fraction

MAX_ANSWER_CHARACTERS = 2_000
MAX_NESTING = 40
MAX_NODES = 400
MAX_BITS = 60_000
"""Size of an exact integer or fraction: about 18,000 decimal digits."""
MAX_SYMBOLIC_BITS = 2_048
"""Size of an exact number inside an expression that sympy builds."""
MAX_ROOT_BITS = 256
"""Size of a number under a root: sympy looks for perfect powers in it."""
MAX_SYMBOLIC_EXPONENT = 100_000
MAX_EXPONENT_MAGNITUDE = 5.0
"""log10 of the largest exponent that is evaluated numerically."""
MAX_FACTORIAL = 3_000
MAX_SUM_TERMS = 300


class TooCostlyError(Exception):
    """The expression would take too long or too much memory to evaluate."""


class NotMathsError(Exception):
    """The text is no expression that the parser knows."""


def nesting(text: str) -> int:
    """Return the deepest nesting of brackets of any kind in `text`."""
    depth = deepest = 0
    for character in text:
        if character in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in ")]}":
            depth = max(depth - 1, 0)
    return deepest


def is_readable(text: str) -> bool:
    """Return whether `text` is small and shallow enough to be parsed at all."""
    return len(text) <= MAX_ANSWER_CHARACTERS and nesting(text) <= MAX_NESTING


def check_size(value: Fraction) -> Fraction:
    """Return `value`; raise TooCostlyError when it has more than `MAX_BITS` bits."""
    if value.numerator.bit_length() + value.denominator.bit_length() > MAX_BITS:
        raise TooCostlyError("number too large")
    return value


def bounded_power(base: Fraction, exponent: int) -> Fraction:
    """Return ``base ** exponent`` exactly; raise TooCostlyError when the result is too large.

    Raises:
        ZeroDivisionError: for zero to a negative power.
    """
    if base in (0, 1, -1):
        return base ** (exponent if base == 0 else exponent % 2)
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if abs(exponent) * bits > MAX_BITS:
        raise TooCostlyError("power too large")
    return base**exponent


def bounded_factorial(number: int) -> int:
    """Return ``number!``; raise TooCostlyError above `MAX_FACTORIAL` or below zero."""
    if not 0 <= number <= MAX_FACTORIAL:
        raise TooCostlyError("factorial too large")
    return math.factorial(number)


def bounded_binomial(total: int, chosen: int) -> int:
    """Return the binomial coefficient; raise TooCostlyError when it is too large to write out."""
    if total < 0 or chosen < 0:
        raise TooCostlyError("binomial of a negative number")
    smaller = min(chosen, total - chosen)
    if smaller > 0 and smaller * total.bit_length() > MAX_BITS:
        raise TooCostlyError("binomial too large")
    return math.comb(total, chosen)
