"""Databases made from a script and rows, as the bytes of a SQLite file."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Mapping, Sequence

from rlvr_plugin_sql_exec.sandbox import MAX_CELL_BYTES, Row

MAX_IMAGE_BYTES = 4_000_000
"""How large a database that is made or changed in memory may be."""

_PAGE_BYTES = 4096
_MAX_STEPS = 5_000_000
_STEPS_BETWEEN_LOOKS = 1000
_DENIED = frozenset(
    {
        sqlite3.SQLITE_ATTACH,
        sqlite3.SQLITE_DETACH,
        sqlite3.SQLITE_PRAGMA,
        sqlite3.SQLITE_CREATE_VTABLE,
        sqlite3.SQLITE_DROP_VTABLE,
    }
)


class BuildError(Exception):
    """A database cannot be made; the text says why."""


def built_image(script: str, tables: Mapping[str, Sequence[Row]]) -> bytes:
    """Run a script in an empty database, put the rows in, and return the database.

    Raises:
        BuildError: SQLite refuses something, the script makes no table or works too long, or
            the database grows too large.
    """
    steps = iter(range(_MAX_STEPS // _STEPS_BETWEEN_LOOKS))
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute(f"PRAGMA max_page_count = {MAX_IMAGE_BYTES // _PAGE_BYTES}")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL_BYTES)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.set_authorizer(_allows)
        connection.set_progress_handler(lambda: next(steps, None) is None, _STEPS_BETWEEN_LOOKS)
        try:
            connection.executescript(script)
            for name, rows in tables.items():
                for row in rows:
                    marks = ",".join("?" * len(row))
                    connection.execute(f"INSERT INTO {quoted(name)} VALUES ({marks})", row)  # noqa: S608
            if connection.in_transaction:
                raise BuildError("the script leaves a transaction open")
            found = connection.execute("SELECT count(*) FROM sqlite_schema WHERE type = 'table'")
            if found.fetchone() == (0,):
                raise BuildError("the script makes no table")
        except (sqlite3.Error, sqlite3.Warning, UnicodeEncodeError, ValueError) as error:
            raise BuildError(str(error)) from None
        connection.set_authorizer(None)
        return connection.serialize()


def quoted(name: str) -> str:
    """Return a name as SQL writes it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def _allows(action: int, _first: str | None, second: str | None, *_: str | None) -> int:
    loads = action == sqlite3.SQLITE_FUNCTION and second == "load_extension"
    return sqlite3.SQLITE_DENY if loads or action in _DENIED else sqlite3.SQLITE_OK
