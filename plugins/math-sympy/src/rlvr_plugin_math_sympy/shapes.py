"""The shapes that an answer can have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MAX_BASED_DIGITS = 1_000
Operation = Literal["union", "intersection", "difference"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value without structure: a number, an expression, a word."""

    text: str


@dataclass(frozen=True, slots=True)
class Group:
    """Several values. Lists and sets are free in order, tuples and brackets are not."""

    kind: Literal["list", "set", "tuple", "bracket"]
    items: tuple[Shape, ...]
    joined_by: str = ""
    """``and`` or ``or`` when words join the items of a list."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of real numbers; infinite ends are leaves too."""

    low: Shape
    high: Shape
    low_closed: bool
    high_closed: bool


@dataclass(frozen=True, slots=True)
class Region:
    """A union, intersection or difference of intervals and finite sets."""

    operation: Operation
    items: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Labelled:
    """A value with a name in front: ``x = 5``, ``f(x) = x^2``, ``area = 7``, ``x in [0, 1]``."""

    label: str
    value: Shape
    right: str
    """Text of the right-hand side, to compare the whole as an equation."""


@dataclass(frozen=True, slots=True)
class Equation:
    """An equation that gives no single variable."""

    left: str
    right: str


@dataclass(frozen=True, slots=True)
class Inequality:
    """An inequality that is no solved one in one variable, smaller side first."""

    smaller: str
    larger: str
    strict: bool


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix; the style of its brackets is decoration."""

    rows: tuple[tuple[str, ...], ...]
    factor: str = ""


@dataclass(frozen=True, slots=True)
class Ratio:
    """``a : b`` or ``a : b : c``; ``clock`` when it looks like a time of day."""

    parts: tuple[str, ...]
    clock: bool
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Based:
    """Digits with a base."""

    digits: str
    base: int

    @property
    def value(self) -> int | None:
        """The number, or None when a digit is too large for the base or there are too many."""
        try:
            return int(self.digits, self.base) if len(self.digits) <= MAX_BASED_DIGITS else None
        except ValueError:
            return None


Shape = Leaf | Group | Interval | Region | Labelled | Equation | Inequality | Matrix | Ratio | Based


def is_region(shape: Shape) -> bool:
    """Return whether a shape is a set of real numbers, such as ``(0, 1]``, ``0 < x and x < 1``."""
    if isinstance(shape, Group) and shape.joined_by and len(shape.items) > 1:
        return all(isinstance(item, Labelled) and is_region(item.value) for item in shape.items)
    return isinstance(shape, (Interval, Region))


EMPTY = Group("set", ())
REALS = Interval(Leaf("-\\infty"), Leaf("\\infty"), False, False)
