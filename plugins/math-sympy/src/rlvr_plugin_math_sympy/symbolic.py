"""The last rung: sympy objects, compared by structure and by values at fixed points."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache
from typing import Any

from rlvr_plugin_math_sympy.exact import exact_value
from rlvr_plugin_math_sympy.guards import (
    MAX_EXPONENT_MAGNITUDE,
    MAX_ROOT_BITS,
    MAX_SYMBOLIC_BITS,
    MAX_SYMBOLIC_EXPONENT,
    NotMathsError,
    TooCostlyError,
)
from rlvr_plugin_math_sympy.latex import latex_to_sympy
from rlvr_plugin_math_sympy.lexicon import Node
from rlvr_plugin_math_sympy.plain import parse

DIGITS = 50
AGREEING_DIGITS = 35
POINTS = 6
MIN_POINTS = 3
MAX_SYMBOLS = 12
MAX_SUMMED_DEGREE = 8


def to_sympy(text: str) -> Any:
    """Return the sympy expression that `text` spells.

    Raises:
        NotMathsError: when neither parser knows it.
        TooCostlyError: when building or evaluating it would be too costly.
    """
    try:
        node = parse(text)
    except NotMathsError:
        return latex_to_sympy(text)
    return _built(node)


@lru_cache(maxsize=512)
def _built(node: Node) -> Any:
    _magnitude(node)
    if _exponent_weight(node) > MAX_SYMBOLIC_EXPONENT:
        raise TooCostlyError("power too large")
    return _build(node)


def _magnitude(node: Node) -> float:
    """Return a bound on ``|log10|value||``; raise TooCostlyError when an exponent is too large."""
    if node.op == "num":
        value = abs(node.value) if isinstance(node.value, Fraction) else Fraction(0)
        digits = value.numerator.bit_length() + value.denominator.bit_length()
        return digits * 0.302 + 0.1
    parts = [_magnitude(argument) for argument in node.args]
    if node.op in ("pow", "exp"):
        exponent = parts[-1]
        if exponent > MAX_EXPONENT_MAGNITUDE:
            raise TooCostlyError("exponent too large")
        base = parts[0] if node.op == "pow" else 0.5
        return float(10**exponent * max(base, 0.5))
    if node.op in ("mul", "div", "add", "neg"):
        return sum(parts) + 0.5
    if node.op in ("sum", "prod"):
        return sum(parts) * 300
    if parts and max(parts) > 10**MAX_EXPONENT_MAGNITUDE:
        raise TooCostlyError("argument too large")
    return max(parts, default=0.5) * (10**4 if node.op in ("fact", "binom") else 1) + 0.5


def _exponent_weight(node: Node) -> float:
    """Return the largest product of nested exponents: sympy multiplies them out."""
    weight = 1.0
    if node.op == "pow":
        exponent = exact_value(node.args[1])
        weight = max(1.0, abs(float(exponent))) if exponent is not None else 1.0
    return weight * max((_exponent_weight(argument) for argument in node.args), default=1.0)


def _build(node: Node) -> Any:
    import sympy

    exact = exact_value(node)
    if exact is not None:
        _check_bits(exact.numerator, exact.denominator, MAX_SYMBOLIC_BITS)
        return sympy.Rational(exact.numerator, exact.denominator)
    if node.op == "sym":
        return _symbol(str(node.value))
    if node.op == "inf":
        return sympy.oo
    if node.op in ("sum", "prod"):
        return _ranged(node)
    return _apply(node.op, [_build(argument) for argument in node.args])


def _symbol(name: str) -> Any:
    import sympy

    constant = {"pi": sympy.pi, "e": sympy.E, "i": sympy.I}.get(name)
    return constant if constant is not None else sympy.Symbol(name, real=True)


def _ranged(node: Node) -> Any:
    """Return the closed form of a sum of a polynomial; any other sum is one opaque symbol."""
    import sympy

    name = str(node.value)
    # A bound i or e is no constant.
    free = f"{name}'" if name in ("i", "e") else name
    low, high, body = (_build(_rebound(argument, name, free)) for argument in node.args)
    index = _symbol(free)
    indexed = any(_subscript_holds(symbol.name, name) for symbol in body.free_symbols)
    closed = node.op == "sum" and index.is_Symbol and not indexed and body.is_polynomial(index)
    if closed and low.is_finite is not False and high.is_finite is not False:
        terms = sympy.Poly(body, index)
        if terms.degree() <= MAX_SUMMED_DEGREE and len(terms.free_symbols_in_domain) <= 2:
            return sympy.summation(terms.as_expr(), (index, low, high))
    return sympy.Symbol(f"opaque {_serial(node, {})}", real=True)


def _rebound(node: Node, name: str, new: str) -> Node:
    if name == new:
        return node
    args = tuple(_rebound(argument, name, new) for argument in node.args)
    return Node(node.op, args, new if node.value == name else node.value)


def _subscript_holds(name: str, variable: str) -> bool:
    return variable in re.findall(r"[A-Za-z]", name.partition("_")[2])


def _serial(node: Node, bound: dict[str, str]) -> str:
    """Return a name for `node` in which bound variables go by number, not by letter."""
    if node.op in ("sum", "prod"):
        bound = {**bound, str(node.value): f"#{len(bound)}"}
        head = node.op
    else:
        stem, _, subscript = str(node.value).partition("_")
        renamed = re.sub(r"[A-Za-z]", lambda match: bound.get(match[0], match[0]), subscript)
        head = f"{node.op} {bound.get(stem, stem)} {renamed}"
    parts = [_serial(argument, bound) for argument in node.args]
    return f"({head} {' '.join(sorted(parts) if node.op in ('add', 'mul') else parts)})"


def _apply(op: str, args: list[Any]) -> Any:
    import sympy

    first = args[0]
    if op in ("add", "mul"):
        return (sympy.Add if op == "add" else sympy.Mul)(*args)
    if op == "neg":
        return -first
    if op == "div":
        return first / args[1]
    if op == "degree":
        return first * sympy.pi / 180
    if op == "pow":
        return _power(first, args[1])
    if op == "root":
        return _power(first, 1 / args[1])
    if op == "cbrt":
        return _power(first, sympy.Rational(1, 3))
    if op == "log":
        return sympy.log(*args)
    if op == "lg":
        return sympy.log(first, 10)
    table = {"ln": "log", "abs": "Abs", "ceil": "ceiling", "fact": "factorial", "binom": "binomial",
             "max": "Max", "min": "Min"}  # fmt: skip
    if op in ("gcd", "lcm"):
        raise NotMathsError("gcd of symbols")
    return getattr(sympy, table.get(op, op))(*args)


def _check_bits(numerator: int, denominator: int, limit: int) -> None:
    if numerator.bit_length() + denominator.bit_length() > limit:
        raise TooCostlyError("number too large for sympy")


def _power(base: Any, exponent: Any) -> Any:
    """Return the power; an odd root of a negative number is the real one."""
    import sympy

    if base.is_Rational and not exponent.is_Integer:
        _check_bits(int(base.p), int(base.q), MAX_ROOT_BITS)
    odd_root = exponent.is_Rational and exponent.q % 2 == 1 and exponent.q > 1
    if odd_root and base.is_real:
        return sympy.sign(base) ** exponent.p * sympy.Abs(base) ** exponent
    return base**exponent


def same_expression(answer: str, gold: str) -> bool:
    """Return whether two expressions are equal for all real values of their symbols.

    Raises:
        NotMathsError: when one of them is no expression.
        TooCostlyError: when deciding would be too costly.
    """
    first, second = to_sympy(answer), to_sympy(gold)
    if first == second:
        return not _undefined(first)
    if _infinite(first) or _infinite(second) or not _scalar(first) or not _scalar(second):
        return False
    return _agree_at_points(first, second)


def _undefined(expression: Any) -> bool:
    import sympy

    return bool(getattr(expression, "has", lambda *_: True)(sympy.nan, sympy.zoo))


def _infinite(expression: Any) -> bool:
    import sympy

    return _undefined(expression) or bool(expression.has(sympy.oo, -sympy.oo))


def _scalar(expression: Any) -> bool:
    import sympy

    unsafe = (sympy.Integral, sympy.Sum, sympy.Product, sympy.Limit, sympy.Derivative)
    return isinstance(expression, sympy.Expr) and not expression.has(*unsafe)


def _agree_at_points(first: Any, second: Any) -> bool:
    symbols = sorted(first.free_symbols | second.free_symbols, key=str)
    if not symbols:
        return _same_value(_value(first, {}), _value(second, {})) is True
    if len(symbols) > MAX_SYMBOLS:
        return False
    agreeing = 0
    for point in range(POINTS):
        places = {symbol: _place(index, point) for index, symbol in enumerate(symbols)}
        verdict = _same_value(_value(first, places), _value(second, places))
        if verdict is False:
            return False
        agreeing += verdict is True
    return agreeing >= MIN_POINTS


def _place(symbol: int, point: int) -> Any:
    """Return the value of the symbol at one point: fixed, irregular, of both signs, within ±3.2."""
    import sympy

    seed = math.sqrt((3, 7, 11, 19, 29, 43)[point]) * (symbol + 1) * 977.31
    sign = -1 if (point + symbol * (point // 2 + 1)) % 2 else 1
    return sympy.Rational(sign * (200_000 + int(seed * 1e4) % 3_000_000) + 7, 1_000_003)


def _value(expression: Any, places: dict[Any, Any]) -> Any:
    """Return the complex value to `DIGITS` digits, or None where it is undefined."""
    import sympy

    try:
        value = expression.evalf(DIGITS, subs=places, maxn=120)
    except (
        ArithmeticError,
        ValueError,
        TypeError,
        AttributeError,
        NotImplementedError,
        RecursionError,
    ):
        return None
    if not isinstance(value, sympy.Expr) or not value.is_number:
        return None
    parts = value.as_real_imag()
    return parts if all(part.is_Number and part.is_finite for part in parts) else None


def _same_value(first: Any, second: Any) -> bool | None:
    """Return whether two values agree to `AGREEING_DIGITS`; None when one is undefined."""
    import sympy

    if first is None or second is None:
        return None
    size = max(abs(part) for part in (*first, *second))
    if size == 0:
        return True
    limit = size * sympy.Rational(1, 10**AGREEING_DIGITS)
    return all(abs(a - b) <= limit for a, b in zip(first, second, strict=True))


def numeric_value(text: str) -> Fraction | None:
    """Return a real constant's value to about `DIGITS` digits, or None when it is not one.

    Raises:
        NotMathsError: when `text` is no expression.
        TooCostlyError: when evaluating it would be too costly.
    """
    expression = to_sympy(text)
    if not _scalar(expression) or expression.free_symbols or _infinite(expression):
        return None
    value = _value(expression, {})
    if not isinstance(value, tuple) or abs(value[1]) > abs(value[0]) / 10**AGREEING_DIGITS:
        return None
    return Fraction(str(value[0]))


def constant_ratio(first: str, second: str) -> float | None:
    """Return the real constant c with ``first = c * second`` everywhere, or None.

    Raises:
        NotMathsError: when one of them is no expression.
        TooCostlyError: when deciding would be too costly.
    """
    one, two = to_sympy(first), to_sympy(second)
    if not _scalar(one) or not _scalar(two) or one.free_symbols != two.free_symbols:
        return None
    symbols = sorted(one.free_symbols, key=str)
    if not symbols or len(symbols) > MAX_SYMBOLS:
        return None
    ratios = []
    for point in range(POINTS):
        places = {symbol: _place(index, point) for index, symbol in enumerate(symbols)}
        above, below = _value(one, places), _value(two, places)
        real = isinstance(above, tuple) and isinstance(below, tuple)
        if real and above[1] == 0 and below[1] == 0 and below[0] != 0:
            ratios.append((above[0] / below[0], None))
    if len(ratios) < MIN_POINTS:
        return None
    agree = all(_same_value((ratio, 0), (ratios[0][0], 0)) for ratio, _ in ratios)
    return float(ratios[0][0]) if agree else None
