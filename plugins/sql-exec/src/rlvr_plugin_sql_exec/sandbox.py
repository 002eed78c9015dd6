"""One query, run on SQLite where it cannot write, see more than tables, or go on for ever."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from rlvr_core.api import FailureCategory, Stage
from rlvr_plugin_sql_exec.failures import QueryError
from rlvr_plugin_sql_exec.functions import (
    ALLOWED_FUNCTIONS,
    ALLOWED_TABLE_FUNCTIONS,
    CheckedFunctions,
)
from rlvr_plugin_sql_exec.statement import MAX_SQL_CHARACTERS

Cell = int | float | str | bytes | None
Row = tuple[Cell, ...]

MAX_CELL_BYTES = 100_000
"""How long a text, a blob or a stored row may be; SQLite refuses to make a longer one."""

MAX_RESULT_BYTES = 16_000_000
"""How much the rows of one result may hold."""

MAX_HEAP_BYTES = 512_000_000
"""How much memory SQLite may take in one process."""

# A step that searches the longest text for half of it takes 0.04 s, so looks must be frequent.
_STEPS_BETWEEN_LOOKS = 50
MAX_MESSAGE_CHARACTERS = 300
"""How much is told of what SQLite says, which may quote the query at length."""

_INTERNAL = "sqlite_"
_CELL_OVERHEAD_BYTES = 64
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: MAX_CELL_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 4 * MAX_SQL_CHARACTERS,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 200,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 200_000,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_SYNTAX_WORDS = ("syntax error", "incomplete input", "unrecognized token")
_SIZE_WORDS = ("too many", "too large", "too big", "too long", "too complex", "stack overflow")


@dataclass(frozen=True, slots=True)
class Source:
    """A database: a file that nothing changes, or the bytes of one."""

    path: Path | None = None
    image: bytes = b""


@dataclass(slots=True)
class Budget:
    """What is left of one query's work, over all databases that it runs on.

    Steps of SQLite's virtual machine are the same in every run. The processor time is there for
    steps that are slow; waiting for a processor does not count.
    """

    steps: int
    cpu_s: float
    _began_s: float = field(default_factory=time.thread_time)

    def spend(self, steps: int) -> bool:
        """Take steps away; return whether nothing is left."""
        self.steps -= steps
        return self.steps < 0 or time.thread_time() - self._began_s > self.cpu_s


@dataclass(frozen=True, slots=True)
class Result:
    """What a query returned.

    Attributes:
        width: Number of columns.
        rows: The rows in order.
        complete: Whether there are no more rows than these.
        reads: Whether the query reads a table at all.
    """

    width: int
    rows: list[Row]
    complete: bool
    reads: bool


def run_query(
    source: Source, sql: str, budget: Budget, *, max_rows: int, reverse: bool = False
) -> Result:
    """Run one query on a connection of its own.

    Args:
        source: The database.
        sql: The query; whatever it is, nothing is written and nothing else is read.
        budget: Work that it may do, which is taken away.
        max_rows: How many rows are taken.
        reverse: Let tables be read in the opposite order where SQL leaves it open.

    Raises:
        QueryError: It is refused, fails, or passes a limit.
        OSError: The file is not there or is no database.
    """
    refused: list[str] = []
    functions = CheckedFunctions(refused.append)
    with contextlib.closing(_opened(source)) as connection, contextlib.closing(functions):
        guard = _Guard(_table_names(connection), refused)
        functions.install(connection)
        for name in ALLOWED_TABLE_FUNCTIONS:
            # Such a table declares itself when it is first used, which the guard would refuse.
            with contextlib.suppress(sqlite3.Error):
                connection.execute(f"SELECT 1 FROM {name}('[]')")  # noqa: S608
        if reverse:
            connection.execute("PRAGMA reverse_unordered_selects = ON")
        connection.set_authorizer(guard)
        connection.set_progress_handler(
            partial(budget.spend, _STEPS_BETWEEN_LOOKS), _STEPS_BETWEEN_LOOKS
        )
        try:
            cursor = connection.execute(sql)
            rows, complete = _taken(cursor, max_rows)
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise _explained(error, refused) from None
        except MemoryError:
            message = "it needs more memory than a query may take"
            raise QueryError(FailureCategory.RESOURCE_LIMIT, Stage.EXECUTE, message) from None
        return Result(len(cursor.description or ()), rows, complete, guard.reads)


def _opened(source: Source) -> sqlite3.Connection:
    """Return a connection that cannot write."""
    if source.path is None:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.deserialize(source.image)
    else:
        uri = f"{source.path.absolute().as_uri()}?mode=ro&immutable=1"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    try:
        connection.execute("PRAGMA query_only = ON")
        # What is sorted stays in memory: a query must not write to the disk either.
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(f"PRAGMA hard_heap_limit = {MAX_HEAP_BYTES}")
        for limit, value in _LIMITS.items():
            connection.setlimit(limit, value)
    except BaseException:
        connection.close()
        raise
    connection.text_factory = _as_text
    return connection


def _as_text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _table_names(connection: sqlite3.Connection) -> frozenset[str]:
    try:
        found = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')"
        ).fetchall()
    except sqlite3.Error as error:
        raise OSError(str(error)) from None
    names = (str(name).lower() for (name,) in found)
    return frozenset(name for name in names if not name.startswith(_INTERNAL))


class _Guard:
    """Decides what a statement may do while SQLite prepares it: select, and read tables."""

    def __init__(self, tables: frozenset[str], refused: list[str]) -> None:
        self._tables = tables
        self._refused = refused
        self.reads = False

    def __call__(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ:
            if self._may_read(str(first).lower(), second):
                return sqlite3.SQLITE_OK
            self._refused.append(f"reading {first}")
        elif action == sqlite3.SQLITE_FUNCTION:
            if second in ALLOWED_FUNCTIONS:
                return sqlite3.SQLITE_OK
            self._refused.append(f"{second}()")
        else:
            self._refused.append("anything but reading")
        return sqlite3.SQLITE_DENY

    def _may_read(self, table: str, column: str | None) -> bool:
        if table in self._tables:
            self.reads = True
            return True
        # A common table expression of which no column is used comes with its name alone.
        is_expression = not column and not table.startswith(_INTERNAL)
        return is_expression or table in ALLOWED_TABLE_FUNCTIONS


def _taken(cursor: sqlite3.Cursor, max_rows: int) -> tuple[list[Row], bool]:
    rows: list[Row] = []
    size = 0
    for row in _rows(cursor):
        if len(rows) == max_rows:
            return rows, False
        size += sum(_size(cell) for cell in row)
        if size > MAX_RESULT_BYTES:
            message = f"its rows hold more than {MAX_RESULT_BYTES:,} bytes"
            raise QueryError(FailureCategory.RESOURCE_LIMIT, Stage.EXECUTE, message)
        rows.append(row)
    return rows, True


def _rows(cursor: sqlite3.Cursor) -> Iterator[Row]:
    yield from cursor


def _size(cell: Cell) -> int:
    return _CELL_OVERHEAD_BYTES + (len(cell) if isinstance(cell, str | bytes) else 0)


def _explained(error: Exception, refused: list[str]) -> QueryError:
    """Return what SQLite said about a query as a failure of the query."""
    if refused:
        message = f"not allowed: {refused[0]}"
        return QueryError(FailureCategory.UNSAFE, Stage.PARSE, message)
    message = str(error)[:MAX_MESSAGE_CHARACTERS]
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_INTERRUPT:
        message = "it takes more work than a query may take"
        return QueryError(FailureCategory.TIME_LIMIT, Stage.EXECUTE, message)
    if code == sqlite3.SQLITE_TOOBIG or any(words in message for words in _SIZE_WORDS):
        return QueryError(FailureCategory.RESOURCE_LIMIT, Stage.EXECUTE, message)
    if any(words in message for words in _SYNTAX_WORDS):
        return QueryError(FailureCategory.MALFORMED, Stage.PARSE, message)
    return QueryError(FailureCategory.RUNTIME_ERROR, Stage.EXECUTE, message)
