"""Copies of a database with other rows, on which a query that says a constant is wrong.

A copy keeps what the schema declares: keys, unique columns and foreign keys keep their values, and
what refers to a row that is gone goes too. Every table loses a quarter of its rows, and what its
other columns say of one row is said of another, whole rows at a time.
"""

from __future__ import annotations

import contextlib
import random
import sqlite3
from dataclasses import dataclass

from rlvr_plugin_sql_exec.build import MAX_IMAGE_BYTES, quoted
from rlvr_plugin_sql_exec.failures import BadTruthError
from rlvr_plugin_sql_exec.sandbox import Source

_KEPT = 0.75
_MAGIC = b"SQLite format 3\0"
_MODE_BYTES = slice(18, 20)


def as_image(source: Source) -> bytes:
    """Return the bytes of a database that is to be changed.

    Raises:
        BadTruthError: It is too large for that.
        OSError: The file cannot be read.
    """
    if source.path is None:
        return source.image
    if source.path.stat().st_size > MAX_IMAGE_BYTES:
        raise BadTruthError(f"`perturb` takes databases of up to {MAX_IMAGE_BYTES:,} bytes")
    image = source.path.read_bytes()
    if not image.startswith(_MAGIC):
        raise OSError("it is no SQLite file")
    # Only a file can be in WAL mode: these two bytes say that this is one, or is not.
    return image[: _MODE_BYTES.start] + b"\1\1" + image[_MODE_BYTES.stop :]


def perturbed(image: bytes, key: str) -> bytes:
    """Return a changed copy of a database; equal keys give equal copies.

    Raises:
        BadTruthError: SQLite refuses the change.
    """
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        try:
            connection.deserialize(image)
            # Nothing that a query returns depends on triggers, and a change must not start any.
            for (name,) in _all(connection, "SELECT name FROM sqlite_schema WHERE type='trigger'"):
                connection.execute(f"DROP TRIGGER {quoted(str(name))}")
            connection.execute("BEGIN")
            for table in _tables(connection):
                _change(connection, table, random.Random(f"{key}/{table.name}"))
            _drop_dangling(connection)
            connection.execute("COMMIT")
            return connection.serialize()
        except sqlite3.Error as error:
            raise BadTruthError(f"a database cannot be perturbed: {error}") from None


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    rowid: str
    free: tuple[str, ...]


def _tables(connection: sqlite3.Connection) -> list[_Table]:
    """Return the tables that can be changed, with the columns that no key speaks of."""
    names = sorted(
        str(name)
        for _, name, kind, _, without_rowid, *_ in _all(connection, "PRAGMA main.table_list")
        if kind == "table" and not without_rowid and not str(name).startswith("sqlite_")
    )
    referred = _referred(connection, names)
    tables = []
    for name in names:
        columns = _all(connection, f"PRAGMA table_info({quoted(name)})")
        taken = {str(column[1]).lower() for column in columns}
        rowid = next((word for word in ("rowid", "oid", "_rowid_") if word not in taken), None)
        if rowid is None:
            continue
        bound = _bound(connection, name) | referred.get(name.lower(), set())
        free = tuple(
            str(column[1])
            for column in columns
            if not column[5] and str(column[1]).lower() not in bound and None not in bound
        )
        tables.append(_Table(name, rowid, free))
    return tables


def _bound(connection: sqlite3.Connection, name: str) -> set[str | None]:
    """Return the columns of unique indexes and foreign keys; None for an index on an expression."""
    bound: set[str | None] = set()
    for _, index, unique, *_ in _all(connection, f"PRAGMA index_list({quoted(name)})"):
        if unique:
            for _, _, column in _all(connection, f"PRAGMA index_info({quoted(str(index))})"):
                bound.add(None if column is None else str(column).lower())
    for key in _all(connection, f"PRAGMA foreign_key_list({quoted(name)})"):
        bound.add(str(key[3]).lower())
    return bound


def _referred(connection: sqlite3.Connection, names: list[str]) -> dict[str, set[str | None]]:
    """Return, by table, the columns that foreign keys of others point to."""
    referred: dict[str, set[str | None]] = {}
    for name in names:
        for key in _all(connection, f"PRAGMA foreign_key_list({quoted(name)})"):
            if key[4] is not None:
                referred.setdefault(str(key[2]).lower(), set()).add(str(key[4]).lower())
    return referred


def _change(connection: sqlite3.Connection, table: _Table, chance: random.Random) -> None:
    name, rowid = quoted(table.name), table.rowid
    rowids = [each for (each,) in _all(connection, f"SELECT {rowid} FROM {name} ORDER BY 1")]  # noqa: S608
    if len(rowids) < 2:
        return
    kept = set(chance.sample(rowids, int(len(rowids) * _KEPT)))
    gone = [(each,) for each in rowids if each not in kept]
    connection.executemany(f"DELETE FROM {name} WHERE {rowid} = ?", gone)  # noqa: S608
    if not table.free:
        return
    free = ", ".join(map(quoted, table.free))
    rows = _all(connection, f"SELECT {rowid}, {free} FROM {name} ORDER BY 1")  # noqa: S608
    contents = [row[1:] for row in rows]
    chance.shuffle(contents)
    changes = [(*content, row[0]) for content, row in zip(contents, rows, strict=True)]
    assigned = ", ".join(f"{quoted(column)} = ?" for column in table.free)
    # A rule that ties free columns to the key may forbid a change: that row stays as it is.
    connection.executemany(f"UPDATE OR IGNORE {name} SET {assigned} WHERE {rowid} = ?", changes)  # noqa: S608


def _drop_dangling(connection: sqlite3.Connection) -> None:
    """Delete rows whose foreign key points to nothing, until there are none."""
    while dangling := _all(connection, "PRAGMA foreign_key_check"):
        for table, rowid, *_ in dangling:
            if rowid is None:
                raise BadTruthError(f"a row of {table}, which has no rowid, would refer to nothing")
            connection.execute(f"DELETE FROM {quoted(str(table))} WHERE rowid = ?", (rowid,))  # noqa: S608


def _all(connection: sqlite3.Connection, sql: str) -> list[tuple[object, ...]]:
    return connection.execute(sql).fetchall()
