"""What kind of statement a text is, and whether its rows come in order.

SQLite itself reads the SQL. Tokens are enough for what has to be known before: a second parser
with a grammar of its own would refuse sound queries, and has no bound on its depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from sqlglot import Token, TokenType
from sqlglot.dialects.sqlite import SQLite
from sqlglot.errors import SqlglotError

from rlvr_core.api import FailureCategory, Stage
from rlvr_plugin_sql_exec.failures import QueryError

MAX_SQL_CHARACTERS = 20_000
"""How long a statement may be; no honest one comes near."""

_QUERY_VERBS = frozenset({"SELECT", "VALUES"})
_OTHER_VERBS = frozenset(
    {
        "ALTER", "ANALYZE", "ATTACH", "BEGIN", "COMMIT", "CREATE", "DELETE", "DETACH", "DROP",
        "END", "EXPLAIN", "INSERT", "PRAGMA", "REINDEX", "RELEASE", "REPLACE", "ROLLBACK",
        "SAVEPOINT", "UPDATE", "VACUUM",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Statement:
    """One query.

    Attributes:
        sql: Its text.
        order_end: Where in the text the ORDER BY of the outermost query ends; None without one.
    """

    sql: str
    order_end: int | None

    @property
    def ordered(self) -> bool:
        """Whether the outermost query has an ORDER BY."""
        return self.order_end is not None

    def with_ties_broken(self, columns: int, direction: Literal["ASC", "DESC"]) -> str:
        """Return the query with its columns as last terms of its ORDER BY.

        Raises:
            ValueError: It has no ORDER BY.
        """
        if self.order_end is None:
            raise ValueError("there is no order to add to")
        terms = "".join(f", {number} {direction}" for number in range(1, columns + 1))
        return f"{self.sql[: self.order_end]}{terms} {self.sql[self.order_end :]}"


def read_statement(sql: str) -> Statement:
    """Return the one query that a text is.

    Raises:
        QueryError: Too long, not readable, several statements, or one that is no query.
    """
    if len(sql) > MAX_SQL_CHARACTERS:
        message = f"the statement has more than {MAX_SQL_CHARACTERS:,} characters"
        raise QueryError(FailureCategory.RESOURCE_LIMIT, Stage.PARSE, message)
    tokens = _tokens(sql)
    is_word = [token.token_type is not TokenType.SEMICOLON for token in tokens]
    if not any(is_word):
        raise _malformed("there is no statement")
    first, last = is_word.index(True), len(is_word) - is_word[::-1].index(True)
    if not all(is_word[first:last]):
        raise _unsafe("more than one statement")
    tokens = tokens[first:last]
    outer = list(_outermost(tokens))
    verb = _verb(outer)
    if verb in _OTHER_VERBS:
        raise _unsafe(f"{verb} is no query")
    if verb not in _QUERY_VERBS:
        raise _malformed("it starts no query")
    # What stands around it is left out: to SQLite's reader it is more statements.
    start, end = tokens[0].start, tokens[-1].end + 1
    order_end = _order_end(outer, end)
    return Statement(sql[start:end], None if order_end is None else order_end - start)


def _tokens(sql: str) -> list[Token]:
    if "\0" in sql:
        raise _malformed("there is a null character")
    try:
        sql.encode()
    except UnicodeEncodeError:
        raise _malformed("there is half a surrogate pair") from None
    try:
        return list(SQLite().tokenize(sql))
    except SqlglotError:
        raise _malformed("a text, a name or a comment is not closed") from None


def _outermost(tokens: Iterable[Token]) -> Iterator[Token]:
    """Yield the tokens outside all parentheses; of those, what closes them."""
    depth = 0
    for token in tokens:
        if token.token_type is TokenType.L_PAREN:
            depth += 1
            continue
        if token.token_type is TokenType.R_PAREN:
            depth -= 1
        if depth == 0:
            yield token


def _words(tokens: Iterable[Token]) -> list[str]:
    """Return keywords and bare names in upper case; quoted names and texts as empty words."""
    quoted = (TokenType.IDENTIFIER, TokenType.STRING)
    return ["" if token.token_type in quoted else token.text.upper() for token in tokens]


def _verb(outer: list[Token]) -> str:
    """Return the word that says what the statement does: after the WITH part, if it has one."""
    words = [next(iter(word.split()), "") for word in _words(outer)]
    if not words or words[0] != "WITH":
        return words[0] if words else ""
    # Names may be verbs too, so the place decides: what closes the last body stands before it.
    closed = (word for before, word in pairwise(words) if before == ")")
    return next((word for word in closed if word not in ("AS", ",")), "")


def _order_end(outer: list[Token], end: int) -> int | None:
    # ORDER BY of windows and aggregates stands in parentheses, so this one is the query's own.
    words = _words(outer)
    for index, word in enumerate(words):
        # A comment between the two words makes them two tokens.
        if " ".join([word, *words[index + 1 : index + 2]]).split()[:2] == ["ORDER", "BY"]:
            limits = (
                token.start
                for token, word in zip(outer[index:], words[index:], strict=True)
                if word == "LIMIT"
            )
            return next(limits, end)
    return None


def _malformed(message: str) -> QueryError:
    return QueryError(FailureCategory.MALFORMED, Stage.PARSE, message)


def _unsafe(message: str) -> QueryError:
    return QueryError(FailureCategory.UNSAFE, Stage.PARSE, message)
