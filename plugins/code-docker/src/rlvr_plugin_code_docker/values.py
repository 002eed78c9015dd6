"""Values that come out of the sandbox, read without trusting a byte of them.

`guest.py` writes them; see there for what it does with subclasses. Nothing is unpickled, and
nothing here runs code of the answer: only builtin types, `Fraction` and `Decimal` are made.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

MAX_DEPTH = 110
MAX_FRACTION_DIGITS = 2_000
"""Hexadecimal digits of numerator and denominator: reducing a fraction takes quadratic time."""
MAX_DECIMAL_CHARACTERS = 5_000
HASHING_LIMIT_S = 1.0
"""For building one set or dict: thousands of keys with one hash take quadratic time."""
_ITEMS_A_LOOK = 256


class MalformedValueError(ValueError):
    """Bytes that the code in the sandbox never writes, unless the answer wrote them."""


class TooCostlyError(ValueError):
    """A value that was made to be slow."""


class Opaque:
    """Any object that is no plain value. It equals nothing, and is neither true nor false."""

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise TypeError("the answer's own objects have no truth value here")


class Items:
    """What an iterator gave. It equals nothing, like the iterator, and can be gone through."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, items: list[Any]) -> None:
        self._items = items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        return False


class SizedItems(Items):
    """The same for a range, a view of a dict or a deque, which have a length."""

    def __len__(self) -> int:
        return len(self._items)


def read_value(data: bytes) -> Any:
    """Return the value that `data` holds.

    Raises:
        MalformedValueError: It holds none, or more than one.
        TooCostlyError: A set or dict takes too long to build.
    """
    reader = _Reader(data)
    try:
        value = reader.value(0)
    except (IndexError, ValueError, OverflowError, InvalidOperation, ZeroDivisionError) as error:
        if isinstance(error, TooCostlyError):
            raise
        raise MalformedValueError(str(error)) from None
    except TypeError as error:  # a key that cannot be one
        raise MalformedValueError(str(error)) from None
    if reader.at != len(data):
        raise MalformedValueError("there is more than one value")
    return value


def bounded_set(items: Iterable[Any]) -> set[Any]:
    """Return the set of the items.

    Raises:
        TooCostlyError: It takes too long, since too many of them have the same hash.
    """
    return set(bounded_dict((item, None) for item in items))


def bounded_dict(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return the dict of the pairs, the last one of equal keys.

    Raises:
        TooCostlyError: It takes too long, since too many keys have the same hash.
    """
    until_s = time.monotonic() + HASHING_LIMIT_S
    made: dict[Any, Any] = {}
    for number, (key, value) in enumerate(pairs):
        if number % _ITEMS_A_LOOK == 0 and time.monotonic() > until_s:
            raise TooCostlyError("too many keys have the same hash")
        made[key] = value
    return made


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise MalformedValueError("nested too deeply")
        letter = self.data[self.at : self.at + 1]
        self.at += 1
        if letter in _CONSTANTS:
            return _CONSTANTS[letter]
        if letter == b"o":
            return Opaque()
        if letter == b"i":
            return int(self._number(), 16)
        if letter == b"f":
            return float.fromhex(self._number())
        if letter == b"c":
            return complex(self._expect(float, depth), self._expect(float, depth))
        if letter == b"s":
            return self._sized().decode("utf-8", "surrogatepass")
        if letter == b"b":
            return self._sized()
        if letter == b"q":
            return self._fraction()
        if letter == b"m":
            return self._decimal()
        return self._container(letter, depth)

    def _container(self, letter: bytes, depth: int) -> Any:
        if letter not in b"ltedgv" or not letter:
            raise MalformedValueError("there is no value")
        items = []
        while self.data[self.at : self.at + 1] != b"]":
            items.append(self.value(depth + 1))
        self.at += 1
        if letter == b"l":
            return items
        if letter == b"t":
            return tuple(items)
        if letter == b"e":
            return frozenset(bounded_set(items))
        if letter == b"d":
            return bounded_dict(zip(items[::2], items[1::2], strict=True))
        return Items(items) if letter == b"g" else SizedItems(items)

    def _number(self) -> str:
        end = self.data.index(b";", self.at)
        text = self.data[self.at : end].decode("ascii")
        self.at = end + 1
        return text

    def _sized(self) -> bytes:
        size = int(self._number(), 10)
        if not 0 <= size <= len(self.data) - self.at:
            raise MalformedValueError("a text ends too early")
        found = self.data[self.at : self.at + size]
        self.at += size
        return found

    def _expect(self, kind: type, depth: int) -> Any:
        value = self.value(depth + 1)
        if type(value) is not kind:
            raise MalformedValueError(f"expected {kind.__name__}")
        return value

    def _fraction(self) -> Any:
        start = self.at
        top, bottom = self._expect(int, 0), self._expect(int, 0)
        if self.at - start > 2 * MAX_FRACTION_DIGITS:
            return Opaque()
        return Fraction(top, bottom)

    def _decimal(self) -> Any:
        text = self._sized().decode("ascii")
        return Opaque() if len(text) > MAX_DECIMAL_CHARACTERS else Decimal(text)


_CONSTANTS: dict[bytes, Any] = {b"N": None, b"T": True, b"F": False}
