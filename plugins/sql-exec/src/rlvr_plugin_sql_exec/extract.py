"""Where the SQL stands in an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"^[ \t]{0,3}(?P<mark>`{3,}|~{3,})[ \t]*(?P<language>[^\s`]*)[^\n]*$", re.M)
_SQL_LANGUAGES = frozenset({"sql", "sqlite", "sqlite3"})
_VERBS = (
    "alter analyze attach begin commit create delete detach drop end explain insert pragma reindex "
    "release replace rollback savepoint select update vacuum values with"
)
_STATEMENT = re.compile(rf"\s*+(?:{'|'.join(_VERBS.split())})\b", re.I)
_QUERY_LINE = re.compile(r"^[ \t]*+(?:select|with|values)\b", re.I | re.M)


@dataclass(frozen=True, slots=True)
class Found:
    """SQL in a text.

    Attributes:
        sql: The statement, with blanks around it removed.
        closed: Whether something after it says that it is complete: a fence, or its semicolon.
    """

    sql: str
    closed: bool


def find_sql(text: str) -> Found | None:
    """Return the SQL that an answer commits to, or None when there is none.

    The last block that is fenced as SQL counts; without one, the last fenced block of no
    language; without fences, the text from its first line that starts a query, or the whole
    text where that starts any statement.
    """
    blocks = list(_blocks(text))
    labelled = [block for language, block in blocks if language in _SQL_LANGUAGES]
    plain = [block for language, block in blocks if not language]
    chosen = labelled or plain
    found = chosen[-1] if chosen else None
    if not blocks:
        found = _unfenced(text)
    return found if found is not None and found.sql else None


def _blocks(text: str) -> Iterator[tuple[str, Found]]:
    """Yield the language and the content of each fenced block; the last may be left open."""
    opening: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opening is None:
            opening = fence
        elif not fence["language"] and fence["mark"].startswith(opening["mark"]):
            yield _block(text, opening, fence.start(), closed=True)
            opening = None
    if opening is not None:
        yield _block(text, opening, len(text), closed=False)


def _block(text: str, opening: re.Match[str], end: int, *, closed: bool) -> tuple[str, Found]:
    return opening["language"].lower(), Found(text[opening.end() : end].strip(), closed)


def _unfenced(text: str) -> Found | None:
    start = 0
    if _STATEMENT.match(text) is None:
        line = _QUERY_LINE.search(text)
        if line is None:
            return None
        start = line.start()
    sql = text[start:].strip()
    return Found(sql, sql.endswith(";"))
