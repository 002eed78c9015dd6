"""Compares what a program printed with what it was to print."""

from __future__ import annotations

import re
from decimal import Decimal

_NUMBER = re.compile(
    r"[+-]?(?:\d{1,100}(?:\.\d{0,100})?|\.\d{1,100})(?:[eE][+-]?\d{1,4})?", re.ASCII
)


def is_same_output(printed: bytes, expected: str) -> bool:
    """Return whether the output is right.

    Lines are compared in order. Blanks at the end of lines and blank lines at the end do not count;
    numbers are compared as decimals (``0.50`` is ``0.5``), everything else letter by letter.
    """
    found, wanted = _lines(printed.decode("utf-8", "surrogateescape")), _lines(expected)
    return len(found) == len(wanted) and all(map(_is_same_line, found, wanted))


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _is_same_line(found: str, wanted: str) -> bool:
    if found == wanted:
        return True
    tokens, wanted_tokens = found.split(), wanted.split()
    return len(tokens) == len(wanted_tokens) and all(map(_is_same_token, tokens, wanted_tokens))


def _is_same_token(found: str, wanted: str) -> bool:
    if found == wanted:
        return True
    if not (_NUMBER.fullmatch(found) and _NUMBER.fullmatch(wanted)):
        return False
    return Decimal(found) == Decimal(wanted)
