"""Values as bytes that say their exact type, and as plain builtin values.

The host reads the bytes with `rlvr_plugin_code_docker.values`. Methods of builtin types are called
by the type, never by the value: a subclass of the answer can replace them all.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

MAX_DEPTH = 100
MAX_RESULT_BYTES = 1 << 20


class TooLarge(BaseException):
    """A value that takes more room than any honest one. No `Exception`: answers catch those."""


def _number(letter: bytes, text: str) -> bytes:
    return letter + text.encode("ascii") + b";"


def _sized(letter: bytes, data: bytes) -> bytes:
    return letter + str(len(data)).encode("ascii") + b";" + data


def _text(value: Any) -> bytes:
    return _sized(b"s", str.encode(value, "utf-8", "surrogatepass"))


def _integer(value: Any) -> bytes:
    return _number(b"i", format(int.__add__(value, 0), "x"))


def _float(value: Any) -> bytes:
    return _number(b"f", float.hex(value))


def _complex(value: Any) -> bytes:
    return b"c" + _float(complex.__add__(value, 0).real) + _float(complex.__add__(value, 0).imag)


SCALARS: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda value: b"N",
    bool: lambda value: b"T" if value is True else b"F",
    int: _integer,
    float: _float,
    complex: _complex,
    str: _text,
    bytes: lambda value: _sized(b"b", bytes.__add__(value, b"")),
    bytearray: lambda value: _sized(b"b", bytes(memoryview(value))),
}
CONTAINERS: dict[type, tuple[bytes, Callable[[Any], Iterator[Any]]]] = {
    list: (b"l", list.__iter__),
    tuple: (b"t", tuple.__iter__),
    set: (b"e", set.__iter__),
    frozenset: (b"e", frozenset.__iter__),
}
ONCE: tuple[type, ...] = (
    type(_ for _ in ()),
    map,
    filter,
    zip,
    enumerate,
    reversed,
    type(iter([])),
    type(reversed([])),
    type(iter({})),
    type(iter(set())),
    type(iter(range(0))),
)
SIZED: tuple[type, ...] = (range, type({}.keys()), type({}.values()), type({}.items()))


class Writer:
    """Writes a value of any kind; what is no plain value is only named as opaque."""

    def __init__(self) -> None:
        self.out = bytearray()

    def write(self, value: Any, depth: int = 0) -> None:
        """Write a value.

        Raises:
            TooLarge: It is larger or deeper than any honest one.
        """
        if depth > MAX_DEPTH or len(self.out) > MAX_RESULT_BYTES:
            raise TooLarge
        kind = type(value)
        if kind in ONCE or kind in SIZED or _is_from(kind, "collections", "deque"):
            self._items(b"g" if kind in ONCE else b"v", iter(value), depth)
            return
        # The mro of the real type: an answer can lie with `__class__`, and with every method.
        for base in type.mro(kind):
            if base in SCALARS:
                self.out += SCALARS[base](value)
                if len(self.out) > MAX_RESULT_BYTES:
                    raise TooLarge
                return
            if base in CONTAINERS:
                letter, items = CONTAINERS[base]
                self._items(letter, items(value), depth)
                return
            if base is dict:
                pairs = [part for pair in dict.items(value) for part in pair]
                self._items(b"d", iter(pairs), depth)
                return
            if _is_from(base, "fractions", "Fraction"):
                top, bottom = value.numerator, value.denominator
                if type(top) is int and type(bottom) is int:
                    self.out += b"q" + _integer(top) + _integer(bottom)
                    return
            if _is_from(base, "decimal", "Decimal"):
                text: Any = base.__str__
                self.out += _sized(b"m", text(value).encode("ascii"))
                return
        self.out += b"o"

    def _items(self, letter: bytes, items: Iterator[Any], depth: int) -> None:
        """Write the items, then their end: how many there are is known only afterwards."""
        self.out += letter
        for item in items:
            self.write(item, depth + 1)
        self.out += b"]"


def _is_from(kind: type, module: str, name: str) -> bool:
    return kind.__module__ == module and kind.__name__ == name


OPERATORS = frozenset(
    [
        "__eq__",
        "__ne__",
        "__lt__",
        "__le__",
        "__gt__",
        "__ge__",
        "__bool__",
        "__len__",
        "__contains__",
        "__getitem__",
        "__iter__",
        "__add__",
        "__radd__",
        "__sub__",
        "__rsub__",
        "__mul__",
        "__rmul__",
        "__truediv__",
        "__rtruediv__",
        "__floordiv__",
        "__mod__",
        "__pow__",
        "__neg__",
        "__abs__",
        "__round__",
        "__float__",
        "__int__",
        "__index__",
        "__getattr__",
        "__getattribute__",
        "__instancecheck__",
    ]
)


def plain(value: Any, depth: int = 0) -> Any:
    """Return the value as exact builtin types; refuse objects that answer for themselves."""
    if depth > MAX_DEPTH:
        raise TooLarge
    kind = type(value)
    if kind in SCALARS:
        return value
    if kind in ONCE:
        return (plain(item, depth + 1) for item in value)
    if kind in SIZED:
        return value
    for base in type.mro(kind):
        if base in CONTAINERS:
            return base([plain(item, depth + 1) for item in CONTAINERS[base][1](value)])
        if base is dict:
            pairs = list(dict.items(value))
            return {plain(key, depth + 1): plain(item, depth + 1) for key, item in pairs}
        if base is str:
            return str.__str__(value) if kind is str else str.__add__("", value)
        if base is int or base is float or base is complex:
            number: Any = base
            return number.__add__(value, number(0))
        if base in (bytes, bytearray):
            return base(memoryview(value))
        if base.__module__ in ("fractions", "decimal") and "__eq__" in vars(base):
            return value
        if base is not object and not OPERATORS.isdisjoint(vars(base)):
            raise TypeError("the test is given an object that answers for itself")
    return value


def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with plain results, and without a way to end the test."""

    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return plain(function(*arguments, **named))
        except Exception:
            raise
        except BaseException as error:  # noqa: BLE001 - SystemExit, above all
            raise RuntimeError(type(error).__name__) from None

    return call
