"""Evaluates the part of a test that stays outside of the sandbox.

A small subset of Python, by walking the syntax tree: literals, operators, comparisons, subscripts
and a few builtins, over plain values only. Nothing of it can run code of an answer, and operations
that an answer could make slow are bounded.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from rlvr_plugin_code_docker.values import TooCostlyError, bounded_dict, bounded_set

MAX_POWER_BITS = 1_000_000
MAX_FACTOR_BITS = 100_000
MAX_REPEATED = 1_000_000
_NUMBERS = (int, float, complex)

HOLE = "value from the sandbox"
"""Prefix of the name of a value from the sandbox. No Python name can look like it."""


def hole(index: int) -> ast.Name:
    """Return the node that stands for one of the values from the sandbox."""
    return ast.Name(id=f"{HOLE} {index}", ctx=ast.Load())


def _multiplied(left: Any, right: Any) -> Any:
    for one, other in ((left, right), (right, left)):
        if isinstance(one, int) and isinstance(other, str | bytes | list | tuple):
            if one * len(other) > MAX_REPEATED:
                raise TooCostlyError("a sequence is repeated too often")
            return one * other
    _check_size(left, right)
    return operator.mul(left, right)


def _check_size(*values: Any) -> None:
    for value in values:
        if isinstance(value, int) and value.bit_length() > MAX_FACTOR_BITS:
            raise TooCostlyError("a number is too large to reckon with")


def _power(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        if abs(right) * max(1, left.bit_length()) > MAX_POWER_BITS:
            raise TooCostlyError("a power is too large")
    elif not (isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS)):
        raise TypeError("only numbers are raised to a power")
    return operator.pow(left, right)


def _numeric(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(left: Any, right: Any) -> Any:
        if isinstance(left, str | bytes):
            raise TypeError("texts are not formatted here")
        _check_size(left, right)
        return function(left, right)

    return apply


_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: _multiplied,
    ast.Div: _numeric(operator.truediv),
    ast.FloorDiv: _numeric(operator.floordiv),
    ast.Mod: _numeric(operator.mod),
    ast.Pow: _power,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, whole: item in whole,
    ast.NotIn: lambda item, whole: item not in whole,
}


def _of_items(kind: Callable[..., Any]) -> Callable[..., Any]:
    def make(*arguments: Any) -> Any:
        return kind(bounded_set(*arguments))

    return make


def _dict(*arguments: Any) -> dict[Any, Any]:
    if not arguments:
        return {}
    (given,) = arguments
    return bounded_dict(given.items() if isinstance(given, dict) else given)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": abs,
    "len": len,
    "round": round,
    "sorted": sorted,
    "sum": sum,
    "min": min,
    "max": max,
    "list": list,
    "tuple": tuple,
    "set": _of_items(frozenset),
    "frozenset": _of_items(frozenset),
    "dict": _dict,
    "bool": bool,
    "float": float,
    "isinstance": isinstance,
    "type": type,
    "math.isclose": math.isclose,
}
"""Functions that a test may call outside, by how it writes them."""
TYPES: Mapping[str, type] = {
    one.__name__: one for one in (bool, int, float, complex, str, bytes, list, tuple, dict)
}
"""Types that a test may name outside. Sets are not among them: here they are all frozen."""


def function_name(node: ast.expr) -> str | None:
    """Return the key of `FUNCTIONS` that a called expression names; None when it names none."""
    name = ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""
    return name if name in FUNCTIONS else None


class Evaluator:
    """Evaluates trees that `split.Splitter` made.

    Args:
        values: What came out of the sandbox, by index of the hole.
    """

    def __init__(self, values: list[Any]) -> None:
        self._names: dict[str, Any] = {f"{HOLE} {i}": value for i, value in enumerate(values)}
        self._names.update(TYPES)

    def evaluate(self, node: ast.expr) -> Any:
        """Return the value of a tree.

        Raises:
            Exception: Whatever its operations raise; `TooCostlyError` when one would be too slow.
        """
        kind = type(node)
        return getattr(self, f"_{kind.__name__.lower()}")(node)

    def _constant(self, node: ast.Constant) -> Any:
        return node.value

    def _name(self, node: ast.Name) -> Any:
        return self._names[node.id]

    def _tuple(self, node: ast.Tuple) -> Any:
        return tuple(map(self.evaluate, node.elts))

    def _list(self, node: ast.List) -> Any:
        return list(map(self.evaluate, node.elts))

    def _set(self, node: ast.Set) -> Any:
        return frozenset(map(self.evaluate, node.elts))

    def _dict(self, node: ast.Dict) -> Any:
        keys = [self.evaluate(key) for key in node.keys if key is not None]
        return dict(zip(keys, map(self.evaluate, node.values), strict=True))

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        return _UNARY[type(node.op)](self.evaluate(node.operand))

    def _binop(self, node: ast.BinOp) -> Any:
        return _BINARY[type(node.op)](self.evaluate(node.left), self.evaluate(node.right))

    def _boolop(self, node: ast.BoolOp) -> Any:
        value = None
        for part in node.values:
            value = self.evaluate(part)
            if bool(value) is isinstance(node.op, ast.Or):
                return value
        return value

    def _compare(self, node: ast.Compare) -> Any:
        left = self.evaluate(node.left)
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(right_node)
            if not _COMPARE[type(op)](left, right):
                return False
            left = right
        return True

    def _subscript(self, node: ast.Subscript) -> Any:
        return self.evaluate(node.value)[self.evaluate(node.slice)]

    def _slice(self, node: ast.Slice) -> Any:
        parts = (node.lower, node.upper, node.step)
        return slice(*(None if part is None else self.evaluate(part) for part in parts))

    def _call(self, node: ast.Call) -> Any:
        function = FUNCTIONS[function_name(node.func) or ""]
        named = {keyword.arg or "": self.evaluate(keyword.value) for keyword in node.keywords}
        return function(*map(self.evaluate, node.args), **named)


def is_known_operator(node: ast.expr) -> bool:
    """Return whether the operators of a node, if it has any, are evaluated outside."""
    if isinstance(node, ast.BinOp):
        return type(node.op) in _BINARY
    if isinstance(node, ast.UnaryOp):
        return type(node.op) in _UNARY
    return True
