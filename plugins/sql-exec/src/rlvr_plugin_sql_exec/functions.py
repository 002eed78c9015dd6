"""Functions that a query may use: SQLite's own, as far as they say the same in every run."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Any

_TEXT = (
    "char concat concat_ws format glob hex instr length like lower ltrim octet_length printf quote "
    "replace rtrim soundex substr substring trim unhex unicode unistr upper"
)
_NUMBER = (
    "abs acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log "
    "log10 log2 max min mod pi pow power radians round sign sin sinh sqrt tan tanh trunc"
)
_CHOICE = "coalesce if ifnull iif likelihood likely nullif typeof unlikely"
_AGGREGATE = "avg count group_concat median percentile string_agg sum total"
_WINDOW = (
    "cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank "
    "row_number"
)
_JSON = (
    "-> ->> json json_array json_array_length json_error_position json_extract json_group_array "
    "json_group_object json_insert json_object json_quote json_remove json_replace "
    "json_set json_type json_valid"
)
_TIME_VALUES = {
    "date": slice(0, 1),
    "time": slice(0, 1),
    "datetime": slice(0, 1),
    "julianday": slice(0, 1),
    "unixepoch": slice(0, 1),
    "strftime": slice(1, 2),
    "timediff": slice(0, 2),
}
"""Function of time to which of its arguments are times; modifiers follow them."""

ALLOWED_FUNCTIONS = frozenset(
    " ".join((_TEXT, _NUMBER, _CHOICE, _AGGREGATE, _WINDOW, _JSON)).split()
) | frozenset(_TIME_VALUES)
"""Names as SQLite gives them to an authorizer."""

ALLOWED_TABLE_FUNCTIONS = frozenset({"json_each", "json_tree"})
"""Functions that stand where a table does."""

# What SQLite takes for the current time, and what depends on the machine's time zone.
_CURRENT = frozenset({"now", "subsec", "subsecond"})
_ZONED = frozenset({"localtime", "utc"})

_TRIMS = ("trim", "ltrim", "rtrim")
_MAX_TRIMMED_CHARACTERS = 100
_FORMATS = ("printf", "format")
_MAX_WIDTH = 1_000
_WIDTHS = re.compile(r"%[^a-zA-Z%]*")
_NUMBER_IN_WIDTH = re.compile(r"\d+")


class CheckedFunctions:
    """Functions that are SQLite's own, but for some arguments.

    A query may compute an argument, such as the text 'now', so that only a look at each call can
    tell. Nothing can stop SQLite within a step: it would fill a width of a thousand million, or
    look for each character of a long text in thousands of others.
    """

    def __init__(self, refuse: Callable[[str], None]) -> None:
        self._refuse = refuse
        self._plain: sqlite3.Connection | None = None

    def install(self, connection: sqlite3.Connection) -> None:
        """Replace the functions of a connection."""
        for name in _TIME_VALUES:
            connection.create_function(name, -1, partial(self._time, name), deterministic=True)
        for name in _FORMATS:
            connection.create_function(name, -1, partial(self._format, name), deterministic=True)
        for name in _TRIMS:
            connection.create_function(name, 2, partial(self._trim, name), deterministic=True)

    def close(self) -> None:
        """Close what the functions opened."""
        if self._plain is not None:
            self._plain.close()

    def _time(self, name: str, *arguments: Any) -> Any:
        times = arguments[_TIME_VALUES[name]]
        modifiers = arguments[_TIME_VALUES[name].stop :]
        if not times or any(_as_word(value) in _CURRENT for value in times):
            self._refuse(f"{name}() of the current time")
            raise ValueError
        if any(_as_word(value) in _ZONED for value in modifiers):
            self._refuse(f"{name}() of the machine's time zone")
            raise ValueError
        return self._call(name, arguments)

    def _format(self, name: str, *arguments: Any) -> Any:
        marks = "".join(_WIDTHS.findall(_as_word(arguments[0]))) if arguments else ""
        widths = [int(digits[:9]) for digits in _NUMBER_IN_WIDTH.findall(marks)]
        if "*" in marks or any(width > _MAX_WIDTH for width in widths):
            self._refuse(f"{name}() with a width beyond {_MAX_WIDTH:,} or one that is an argument")
            raise ValueError
        return self._call(name, arguments)

    def _trim(self, name: str, text: Any, characters: Any) -> Any:
        if len(_as_word(characters)) > _MAX_TRIMMED_CHARACTERS:
            self._refuse(f"{name}() of more than {_MAX_TRIMMED_CHARACTERS} characters")
            raise ValueError
        return self._call(name, (text, characters))

    def _call(self, name: str, arguments: tuple[Any, ...]) -> Any:
        if self._plain is None:
            self._plain = sqlite3.connect(":memory:")
        marks = ",".join("?" * len(arguments))
        (value,) = self._plain.execute(f"SELECT {name}({marks})", arguments).fetchone()
        return value


def _as_word(value: object) -> str:
    """Return an argument as SQLite reads it: bytes are text, and a null character ends it."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return text.partition("\0")[0].lower()
