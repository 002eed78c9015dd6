"""What is said of a statement before SQLite sees it, held against SQLite itself."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlvr_plugin_sql_exec.extract import find_sql
from rlvr_plugin_sql_exec.failures import QueryError
from rlvr_plugin_sql_exec.statement import read_statement

PIECES = [
    "SELECT ", "1", "'a'", "''", '"b"', "`c`", "[d]", "--x\n", "/*y*/", "/*", "*/", ";", " ",
    "\n", "\t", "\x0c", "a", " AS ", "(", ")", ",", "||", "->>", "x'00'", "0x1F", "1e5", ".5",
    "5.", "1_0", "WITH ", "t AS (SELECT 1) ", "VALUES (1)", " ORDER ", "BY ", " LIMIT 1",
    " UNION ", "ALL ", "@a", "INSERT INTO z VALUES (1)", "DROP TABLE z", "{{", "{#", "#}",
    "$$", "\\", "'it''s'", "N'", "E'\\'", "é", "日", "==", "<>", "~", "|", " COLLATE NOCASE",
    "CASE WHEN 1 THEN 2 END", "replace(1,2,3)", "glob", "/*+ x */", "//", "#", "'''", "\r",
    "::", "b'1'", "q'[a]'", "r'\\'",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)


def is_run(sql: str) -> bool:
    """Return whether SQLite takes the text for one statement that reads, and runs it."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE z (a)")
        connection.execute("PRAGMA query_only = ON")
        try:
            connection.execute(sql).fetchall()
        except (sqlite3.Error, sqlite3.Warning):
            return False
        return True


def check_one_statement(sql: str) -> None:
    try:
        accepted = read_statement(sql).sql
    except QueryError as error:
        reason = error.message
    else:
        with closing(sqlite3.connect(":memory:")) as connection:
            try:
                connection.execute(accepted)
            except (sqlite3.Error, sqlite3.Warning) as error:
                assert "one statement" not in str(error)  # noqa: PT017
        return
    # SQLite lets a comment run to the end of the text.
    known = "there is no statement" in reason or ("/*" in sql and "not closed" in reason)
    assert known or not is_run(sql)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.sampled_from(["", "SELECT 1"]), TEXTS)
def test_sqlite_agrees_about_what_one_statement_is(start, text):
    check_one_statement(start + text)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None)
@given(st.sampled_from(["", "SELECT 1"]), TEXTS)
def test_sqlite_agrees_ten_thousand_times_about_what_one_statement_is(start, text):
    check_one_statement(start + text)


@pytest.mark.parametrize(
    "sql",
    [
        "WITH replace AS (SELECT 1) SELECT * FROM replace",
        "WITH RECURSIVE [drop](a) AS NOT MATERIALIZED (VALUES (1)), x AS (VALUES (1)) VALUES (2)",
        "WITH begin(x) AS (SELECT 1), release AS (SELECT x FROM begin) SELECT x FROM release",
        "SELECT replace('a', 'a', 'b')",
    ],
)  # fmt: skip
def test_a_name_that_is_a_verb_elsewhere_is_no_verb(sql):
    assert is_run(sql)
    assert read_statement(sql).sql == sql


@pytest.mark.parametrize(
    ("sql", "longer"),
    [
        ("SELECT a FROM t ORDER BY a", "SELECT a FROM t ORDER BY a, 1 ASC, 2 ASC "),
        ("select a from t order by a desc;", "select a from t order by a desc, 1 ASC, 2 ASC "),
        (" ; /* x */ SELECT a FROM t ORDER BY a ;", "SELECT a FROM t ORDER BY a, 1 ASC, 2 ASC "),
        ("SELECT a FROM t ORDER BY a LIMIT 3 -- x",
         "SELECT a FROM t ORDER BY a , 1 ASC, 2 ASC LIMIT 3"),
        ("SELECT a FROM t ORDER/**/BY (SELECT 1 LIMIT 1), [limit] LIMIT 1",
         "SELECT a FROM t ORDER/**/BY (SELECT 1 LIMIT 1), [limit] , 1 ASC, 2 ASC LIMIT 1"),
        ("WITH x AS (SELECT 1 ORDER BY 1) SELECT 1 UNION SELECT 2 ORDER BY 1",
         "WITH x AS (SELECT 1 ORDER BY 1) SELECT 1 UNION SELECT 2 ORDER BY 1, 1 ASC, 2 ASC "),
    ],
)  # fmt: skip
def test_ties_are_broken_at_the_end_of_the_outermost_order(sql, longer):
    assert read_statement(sql).with_ties_broken(2, "ASC") == longer


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM (SELECT a FROM t ORDER BY a)",
        "SELECT row_number() OVER (ORDER BY a) FROM t",
        "WITH x AS (SELECT a FROM t ORDER BY a) SELECT * FROM x",
        "SELECT 'ORDER BY a'",
        "SELECT 1 -- ORDER BY a",
        "SELECT [ORDER BY] FROM t",
        'SELECT "order", by FROM t',
    ],
)
def test_an_order_inside_orders_nothing(sql):
    statement = read_statement(sql)
    assert not statement.ordered
    with pytest.raises(ValueError, match="no order"):
        statement.with_ties_broken(1, "ASC")


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("SELECT 1", "SELECT 1"),
        ("  select 1;\n", "select 1;"),
        ("So:\n\nSELECT 1\nFROM t", "SELECT 1\nFROM t"),
        ("```\nSELECT 1\n```", "SELECT 1"),
        ("```SQL\nSELECT 1\n```", "SELECT 1"),
        ("~~~~sqlite\nSELECT 1\n~~~~~", "SELECT 1"),
        ("- a list\n  ```sql\n  SELECT 1\n  ```", "SELECT 1"),
        ("```sql\nSELECT 1\n```\n```sql\nSELECT 2\n```", "SELECT 2"),
        ("```sql\nSELECT 1\n```\n```\n1\n```", "SELECT 1"),
        ("```sql\nSELECT 1\n```\nWith this, SELECT 2", "SELECT 1"),
        ("````sql\nSELECT '\n```\n'\n````", "SELECT '\n```\n'"),
        ("```sql\nSELECT 1", "SELECT 1"),
        ("PRAGMA x; SELECT 1", "PRAGMA x; SELECT 1"),
        ("```python\nSELECT 1\n```", None),
        ("```sql\n\n```", None),
        ("I select nothing", None),
        ("", None),
    ],
)
def test_the_sql_that_an_answer_commits_to_is_found(text, sql):
    found = find_sql(text)
    assert (None if found is None else found.sql) == sql
