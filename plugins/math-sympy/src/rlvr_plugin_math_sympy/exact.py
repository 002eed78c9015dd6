"""Exact rational value of an expression, without sympy and within bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from rlvr_plugin_math_sympy.guards import (
    MAX_FACTORIAL,
    MAX_SUM_TERMS,
    TooCostlyError,
    bounded_binomial,
    bounded_factorial,
    bounded_power,
    check_size,
)
from rlvr_plugin_math_sympy.lexicon import Node

Values = dict[str, Fraction]


def exact_value(node: Node, values: Values | None = None) -> Fraction | None:
    """Return the exact rational value, or None when it is irrational, symbolic or undefined.

    Args:
        node: The expression.
        values: Values of bound variables.

    Raises:
        TooCostlyError: when a number in it is too large to write out.
    """
    if node.op == "num":
        return node.value if isinstance(node.value, Fraction) else None
    if node.op == "sym":
        return (values or {}).get(str(node.value))
    if node.op in ("sum", "prod"):
        return _ranged(node, values or {})
    rule = _RULES.get(node.op)
    if rule is None:
        return None
    operands = []
    for argument in node.args:
        value = exact_value(argument, values)
        if value is None:
            return None
        operands.append(value)
    try:
        result = rule(operands)
    except (ZeroDivisionError, ValueError):
        return None
    return None if result is None else check_size(result)


def _ranged(node: Node, values: Values) -> Fraction | None:
    low, high = (exact_value(argument, values) for argument in node.args[:2])
    if low is None or high is None or low.denominator != 1 or high.denominator != 1:
        return None
    if high - low > MAX_SUM_TERMS:
        return None
    total = Fraction(0 if node.op == "sum" else 1)
    for index in range(int(low), int(high) + 1):
        term = exact_value(node.args[2], {**values, str(node.value): Fraction(index)})
        if term is None:
            return None
        total = check_size(total + term if node.op == "sum" else total * term)
    return total


def _add(operands: list[Fraction]) -> Fraction:
    total = Fraction(0)
    for operand in operands:
        total = check_size(total + operand)
    return total


def _mul(operands: list[Fraction]) -> Fraction:
    product = Fraction(1)
    for operand in operands:
        product = check_size(product * operand)
    return product


def _pow(operands: list[Fraction]) -> Fraction | None:
    base, exponent = operands
    if exponent.denominator == 1:
        if base == 0 and exponent <= 0:
            return None
        return bounded_power(base, exponent.numerator)
    root = _root([base, Fraction(exponent.denominator)])
    return None if root is None else bounded_power(root, exponent.numerator)


def _root(operands: list[Fraction]) -> Fraction | None:
    """Return the rational n-th root if there is one; odd roots of negatives are negative."""
    base, index = operands
    if index.denominator != 1 or not 2 <= index <= 100:
        return None
    degree = index.numerator
    if base < 0:
        positive = _root([-base, index]) if degree % 2 else None
        return None if positive is None else -positive
    above = _integer_root(base.numerator, degree)
    below = _integer_root(base.denominator, degree)
    return None if above is None or below is None else Fraction(above, below)


def _integer_root(number: int, degree: int) -> int | None:
    if degree == 2:
        candidate = math.isqrt(number)
    else:
        low, high = 0, 1 << (number.bit_length() // degree + 1)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if middle**degree <= number else (low, middle - 1)
        candidate = low
    return candidate if candidate**degree == number else None


def _factorial(operands: list[Fraction]) -> Fraction | None:
    number = operands[0]
    if number.denominator != 1 or number < 0:
        return None
    if number > MAX_FACTORIAL:
        raise TooCostlyError("factorial too large")
    return Fraction(bounded_factorial(number.numerator))


def _binomial(operands: list[Fraction]) -> Fraction | None:
    total, chosen = operands
    if total.denominator != 1 or chosen.denominator != 1 or total < 0 or chosen < 0:
        return None
    return Fraction(bounded_binomial(total.numerator, chosen.numerator))


def _integers(operands: list[Fraction]) -> list[int]:
    if any(operand.denominator != 1 for operand in operands):
        raise ValueError("integers only")
    return [operand.numerator for operand in operands]


_RULES: dict[str, Callable[[list[Fraction]], Fraction | None]] = {
    "add": _add,
    "mul": _mul,
    "neg": lambda operands: -operands[0],
    "div": lambda operands: operands[0] / operands[1],
    "pow": _pow,
    "root": _root,
    "cbrt": lambda operands: _root([operands[0], Fraction(3)]),
    "fact": _factorial,
    "binom": _binomial,
    "abs": lambda operands: abs(operands[0]),
    "floor": lambda operands: Fraction(math.floor(operands[0])),
    "ceil": lambda operands: Fraction(math.ceil(operands[0])),
    "gcd": lambda operands: Fraction(math.gcd(*_integers(operands))),
    "lcm": lambda operands: Fraction(math.lcm(*_integers(operands))),
    "max": max,
    "min": min,
}
