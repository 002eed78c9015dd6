"""A query reads tables and nothing else, whatever the guard in front of SQLite thinks of it."""

from __future__ import annotations

import hashlib
import time

import pytest
from rlvr_plugin_sql_exec.build import built_image
from rlvr_plugin_sql_exec.failures import QueryError
from rlvr_plugin_sql_exec.sandbox import Budget, Source, run_query

from rlvr_core.api import FailureCategory

RIGHT = "SELECT count(*) FROM customers"
LIMIT_S = 10.0  # the deadline a stack gives by default

REFUSED = [
    "ATTACH '{folder}/new.db' AS new",
    "ATTACH ':memory:' AS new",
    "DETACH main",
    "PRAGMA query_only = OFF",
    "PRAGMA writable_schema = ON",
    "PRAGMA database_list",
    "PRAGMA hard_heap_limit = 0",
    "VACUUM INTO '{folder}/new.db'",
    "VACUUM",
    "CREATE TABLE new (a)",
    "CREATE TEMP TABLE new (a)",
    "CREATE TEMP VIEW new AS SELECT 1",
    "CREATE VIRTUAL TABLE new USING fts5 (a)",
    "CREATE TRIGGER new AFTER INSERT ON customers BEGIN SELECT 1; END",
    "INSERT INTO customers (name) VALUES ('x')",
    "REPLACE INTO customers (id, name) VALUES (1, 'x')",
    "UPDATE customers SET name = 'x' RETURNING name",
    "DELETE FROM customers",
    "DROP TABLE customers",
    "ALTER TABLE customers RENAME TO new",
    "WITH x AS (SELECT 1) INSERT INTO customers (name) SELECT 'x' FROM x",
    "WITH x AS (SELECT 1) UPDATE customers SET name = 'x'",
    "WITH x AS (SELECT 1) DELETE FROM customers",
    "WITH [select] AS (SELECT 1) DELETE FROM customers",
    "BEGIN", "COMMIT", "SAVEPOINT x", "REINDEX", "ANALYZE",
    "EXPLAIN SELECT 1", "EXPLAIN QUERY PLAN SELECT 1",
    "SELECT load_extension('{folder}/x.so') FROM customers",
    "SELECT readfile('/etc/passwd') FROM customers",
    "SELECT writefile('{folder}/new.db', 'x') FROM customers",
    "SELECT fts3_tokenizer('simple') FROM customers",
    "SELECT sqlite_version() FROM customers",
    "SELECT random() FROM customers",
    "SELECT randomblob(4) FROM customers",
    "SELECT last_insert_rowid() FROM customers",
    "SELECT total_changes() FROM customers",
    "SELECT zeroblob(1000000000) FROM customers",
    "SELECT name FROM sqlite_master",
    "SELECT name FROM sqlite_schema",
    "SELECT name FROM sqlite_temp_master",
    "SELECT (SELECT group_concat(sql) FROM main.sqlite_master) FROM customers",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM pragma_table_info('customers')",
    "SELECT count(*) FROM sqlite_master",
    "SELECT count(*) FROM main.SQLITE_SCHEMA",
    "SELECT count(*) FROM pragma_table_list",
    "SELECT count(*) FROM dbstat",
    "SELECT count(*) FROM fts3tokenize('simple', 'x')",
    "SELECT * FROM dbstat",
    "SELECT * FROM sqlite_dbpage",
    "SELECT current_timestamp FROM customers",
    "SELECT CURRENT_TIME FROM customers",
    "SELECT date() FROM customers",
    "SELECT date('NOW') FROM customers",
    "SELECT date('n' || 'ow') FROM customers",
    "SELECT date(x'6e6f77') FROM customers",
    "SELECT datetime('now' || char(0) || 'x') FROM customers",
    "SELECT julianday(lower('NOW'), '+1 day') FROM customers",
    "SELECT strftime('%s') FROM customers",
    "SELECT unixepoch('subsec') FROM customers",
    "SELECT time('12:00', 'localtime') FROM customers",
    "SELECT time('12:00', 'UTC') FROM customers",
    "SELECT 1; DROP TABLE customers",
    "SELECT 1;;SELECT 2",
    "SELECT 1 /* ; */ ; /* */ DROP TABLE customers",
    "SELECT 1 -- \n; DROP TABLE customers",
    "SELECT 1 /* /* */ ; DROP TABLE customers -- */",
    "SELECT ';' ; SELECT 2",
]  # fmt: skip


@pytest.fixture
def shop_file(tmp_path, shop):
    image = built_image(shop["schema"], shop["data"])
    path = tmp_path / "shop.db"
    path.write_bytes(image)
    return path


@pytest.mark.parametrize("sql", REFUSED)
def test_anything_but_reading_tables_is_refused_and_changes_nothing(judge, shop_file, sql):
    before = hashlib.sha256(shop_file.read_bytes()).hexdigest()
    attack = sql.replace("{folder}", str(shop_file.parent))
    truth = {"query": RIGHT, "database": shop_file.name}
    verdict = judge(f"```sql\n{attack}\n```", truth, folder=shop_file.parent)
    assert verdict.score == 0
    # A function or a table that this SQLite does not have cannot even be refused.
    assert verdict.failure is FailureCategory.UNSAFE or "no such" in str(verdict.diagnostics)
    # The guard before SQLite does not matter: SQLite itself lets nothing through.
    for source in (Source(path=shop_file), Source(image=shop_file.read_bytes())):
        if sql.startswith(("EXPLAIN", "REINDEX")):  # They change nothing where there is no index.
            run_query(source, attack, Budget(10**6, 5.0), max_rows=9)
            continue
        with pytest.raises(QueryError):
            run_query(source, attack, Budget(10**6, 5.0), max_rows=9)
    assert [path.name for path in shop_file.parent.iterdir()] == ["shop.db"]
    assert hashlib.sha256(shop_file.read_bytes()).hexdigest() == before


LONG = f"replace(replace('aaaaaaa', 'a', '{'a' * 20}'), 'a', '{'a' * 350}')"  # 49,000 characters
HALF = f"substr({LONG}, 1, 24000)"
SIX = ", ".join(f"orders {name}" for name in "abcdef")


def recursion(start: str, following: str, query: str) -> str:
    """Return a query that begins with rows which make one another."""
    columns = "x, y" if ", y" in following else "x"
    return f"WITH RECURSIVE n({columns}) AS (SELECT {start} UNION ALL SELECT {following}) {query}"


GIANTS = {
    "replace": f"SELECT replace({LONG}, 'a', 'bbbbbbbbbb') FROM customers",
    "hex": f"SELECT hex(hex({LONG})) FROM customers",
    "sum of texts": f"SELECT {LONG} || {LONG} || {LONG} FROM customers",
    "group_concat": f"SELECT group_concat(a.name || {LONG}) FROM orders, customers a",
    "doubling": recursion("'x'", "x || x FROM n", "SELECT max(x) FROM n"),
    "json": recursion("'[]'", "json_array(x, x) FROM n", "SELECT max(x) FROM n"),
    "json array": f"SELECT json_group_array(a.name || {LONG}) FROM orders, customers a",
}
FORMATS = [
    "'%.*c', 1000000000, 'x'", "'%1000000000d', 1", "'%.999999999f', 1.5", "'%-*d', 999999999, 1",
    "'%1001s', 'x'", "'%s%0' || '99999999d', 1, 1", "x'252a64', 999999999, 1",
]  # fmt: skip


@pytest.mark.parametrize("name", GIANTS)
def test_a_giant_text_is_refused(ask, name):
    assert ask(GIANTS[name], RIGHT).failure is FailureCategory.RESOURCE_LIMIT


@pytest.mark.parametrize("arguments", FORMATS)
@pytest.mark.parametrize("name", ["printf", "format"])
def test_a_width_that_sqlite_would_fill_for_minutes_is_refused(ask, name, arguments):
    verdict = ask(f"SELECT {name}({arguments}) FROM customers", RIGHT)
    assert verdict.failure is FailureCategory.UNSAFE


def test_other_formats_are_sqlites_own(ask):
    values = "printf('%05.1f|%-8s|%,d|%%|%x', age, name, id * 12345, 255)"
    sql = f"SELECT {values} FROM customers WHERE id = 1"
    assert ask(sql, "SELECT '036.0|Ada     |12,345|%|ff' FROM customers WHERE id = 1").score == 1


def _nested(levels: int) -> str:
    parts = ["x0(a) AS (SELECT id FROM customers)"]
    parts += [f"x{n}(a) AS (SELECT l.a FROM x{n - 1} l, x{n - 1} r)" for n in range(1, levels)]
    return f"WITH {', '.join(parts)} SELECT count(*) FROM x{levels - 1}"


BOMBS = {
    "recursion": recursion("1", "x + 1 FROM n", "SELECT max(x) FROM n"),
    "recursion of rows": recursion("1", "x + 1 FROM n", "SELECT x FROM n ORDER BY x DESC"),
    "recursion of texts": recursion(LONG, "x || '' FROM n", "SELECT count(x) FROM n"),
    "sorted texts": recursion(
        f"{LONG}, 1", "x, y + 1 FROM n LIMIT 99999", "SELECT x FROM n ORDER BY y DESC"),
    "distinct texts": recursion(
        f"{LONG}, 1", "x || '', y + 1 FROM n", "SELECT count(DISTINCT x || y) FROM n"),
    "joins": "SELECT count(*) FROM " + ", ".join(f"orders o{n}" for n in range(64)),
    "too many joins": "SELECT count(*) FROM " + ", ".join(f"orders o{n}" for n in range(900)),
    "outer joins": "SELECT count(*) FROM orders o0" + "".join(
        f" LEFT JOIN orders o{n} ON o{n}.id <> o0.id" for n in range(1, 60)),
    "nested tables": _nested(24),
    "deeply nested tables": _nested(200),
    "search": f"SELECT sum(instr({LONG} || a.id, {HALF} || 'b')) FROM {SIX}",
    "many searches": "SELECT " + " + ".join(["sum(instr(x || a.id, y))"] * 90)
        + f" FROM (SELECT {LONG} x, {HALF} || 'b' y), {SIX}",
    "replace": f"SELECT sum(length(replace({LONG} || a.id, {HALF} || 'b', ''))) FROM {SIX}",
    "trim": f"SELECT sum(length(trim({LONG} || a.id, '{'b' * 99}a'))) FROM {SIX}",
    "trim of many": f"SELECT trim({LONG}, substr(replace({LONG}, 'a', 'b'), 1, 8000)) FROM orders",
    "like": f"SELECT sum({LONG} || a.id LIKE '%{'a' * 97}b%') FROM {SIX}",
    "glob": f"SELECT sum({LONG} || a.id GLOB '*[{'b' * 90}a]c') FROM {SIX}",
    "json": "SELECT sum(json_array_length('[' || replace("
        f"{HALF}, 'a', '1,') || a.id || ']')) FROM {SIX}",
    "many columns": "SELECT " + ", ".join(f"sum(o{n % 9}.id)" for n in range(900)) + " FROM "
        + ", ".join(f"orders o{n}" for n in range(9)),
    "compound": "SELECT count(*) FROM ("
        + " UNION ALL ".join(["SELECT id FROM orders"] * 190) + f") z, {SIX}",
    "window": recursion("1", "x + 1 FROM n LIMIT 90000", "SELECT max(s) FROM (SELECT sum(x) OVER ("
        "ORDER BY x ROWS BETWEEN 50000 PRECEDING AND 1 PRECEDING) s FROM n)"),
    "unions": "SELECT " + "(SELECT 1 UNION SELECT 2) + " * 600 + "1 FROM customers",
    "cases": "SELECT " + "CASE WHEN id THEN " * 150 + "1" + " END" * 150 + " FROM customers",
    "parentheses": "SELECT " + "(" * 9000 + "1" + ")" * 9000,
    "nots": "SELECT " + "NOT " * 4000 + "1 FROM customers",
    "subqueries": "SELECT " + "(SELECT " * 900 + "1" + ")" * 900,
    "sums": "SELECT " + "1+" * 9000 + "1 FROM customers",
    "in": "SELECT count(*) FROM customers WHERE id IN (" + ",".join(map(str, range(4000))) + ")",
    "formats": "SELECT " + "printf('%s%s', " * 100 + "1" + ",1)" * 100 + " FROM customers",
}  # fmt: skip


def _explodes(ask, name: str, **config: object) -> None:
    start = time.process_time()
    verdict = ask(BOMBS[name], RIGHT, **config)
    assert time.process_time() - start < LIMIT_S / 2
    assert verdict.is_judgement
    assert (verdict.score == 1) == (name == "in")


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_gets_a_verdict_long_before_the_deadline(ask, name):
    # The one that has a right answer is given the time to find it.
    _explodes(ask, name, max_cpu_s=2.0 if name == "in" else 0.2)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_gets_a_verdict_before_the_deadline_under_the_usual_limits(ask, name):
    _explodes(ask, name)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM CUSTOMERS",
        "SELECT count(*) FROM main.[Customers]",
        "WITH x AS (SELECT id FROM customers) SELECT count(*) FROM x",
        "WITH x AS MATERIALIZED (SELECT id FROM customers) SELECT count(*) FROM x AS y",
        "SELECT count(*) FROM (SELECT id FROM customers) AS x",
        "SELECT count(*) FROM customers WHERE EXISTS (SELECT 1 FROM orders)",
        "SELECT count(*) FROM customers, json_each('[1]')",
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 5) "
        "SELECT count(*) FROM n WHERE EXISTS (SELECT 1 FROM customers)",
        "SELECT count(*) FILTER (WHERE id > 0) OVER () FROM customers LIMIT 1",
        "SELECT max(rowid) FROM customers",
        "SELECT count(*) FROM customers WHERE date('2024-01-31', '+1 month') > '2024-03-01'",
        "SELECT trim('xx5x', 'x') + 0 FROM customers LIMIT 1",
    ],
)
def test_what_only_reads_tables_is_allowed(ask, sql):
    assert ask(sql, RIGHT).score == 1


def test_special_numbers_are_compared_as_sqlite_gives_them(ask):
    assert ask("SELECT 9e999 FROM customers", "SELECT 1e999 FROM customers").score == 1
    assert ask("SELECT -9e999 FROM customers", "SELECT 9e999 FROM customers").score == 0
    assert ask("SELECT 9e999 - 9e999 FROM customers", "SELECT NULL FROM customers").score == 1
    assert ask("SELECT 1e308 FROM customers", "SELECT 9e999 FROM customers").score == 0
    big = "SELECT 9007199254740993 FROM customers"
    assert ask("SELECT 9007199254740992 FROM customers", big).score == 0
    assert ask(big, big).score == 1


def test_types_are_those_that_the_column_gives(ask):
    right = "SELECT age FROM customers WHERE id = 1"
    assert ask("SELECT '36' FROM customers WHERE id = 1", right).score == 0
    assert ask("SELECT CAST('36' AS INTEGER) FROM customers WHERE id = 1", right).score == 1
    assert ask("SELECT age FROM customers WHERE age = '36' AND id = 1", right).score == 1
    assert ask("SELECT 36.0 FROM customers WHERE id = 1", right).score == 1
    true = "SELECT 1 FROM customers WHERE id = 1"
    assert ask("SELECT TRUE FROM customers WHERE id = 1", true).score == 1


def test_the_heap_limit_is_one_that_this_sqlite_keeps():
    image = built_image("CREATE TABLE t (a); INSERT INTO t VALUES (1)", {})
    query = "SELECT length(x) FROM n ORDER BY x || y"
    sql = recursion(f"{LONG}, 1", "x, y + 1 FROM n LIMIT 19999", query)
    with pytest.raises(QueryError) as caught:
        run_query(Source(image=image), sql, Budget(10**9, 60.0), max_rows=9)
    assert caught.value.failure is FailureCategory.RESOURCE_LIMIT


def test_a_file_that_is_no_database_is_the_ground_truths_fault(judge, tmp_path):
    (tmp_path / "odd.db").write_bytes(b"no database at all" * 99)
    verdict = judge("SELECT 1", {"query": "SELECT 1", "database": "odd.db"}, folder=tmp_path)
    assert verdict.failure is FailureCategory.BAD_GROUND_TRUTH
