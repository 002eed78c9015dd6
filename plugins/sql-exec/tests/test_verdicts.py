"""What a verdict says, which ground truths are refused, and which abstain."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError
from rlvr_plugin_sql_exec import SqlExec

from rlvr_core.api import FailureCategory, FinishReason, Status

LIMA = "SELECT name FROM customers WHERE city = 'Lima'"


@pytest.mark.parametrize(
    ("completion", "failure", "stage"),
    [
        ("", "no_answer", "extract"),
        ("prose", "no_answer", "extract"),
        ("```sql\n```", "no_answer", "extract"),
        ("```python\nprint(1)\n```", "no_answer", "extract"),
        ("<think>SELECT 1", "no_answer", "extract"),
        ("SELECT 'x", "malformed", "parse"),
        ("SELECT FROM", "malformed", "parse"),
        ("SELECT (1", "malformed", "parse"),
        ("```sql\n(SELECT 1)\n```", "malformed", "parse"),
        ("```sql\nfoo\n```", "malformed", "parse"),
        ("```sql\n-- nothing\n```", "malformed", "parse"),
        ("SELECT '\x00'", "malformed", "parse"),
        ("SELECT '\ud800'", "malformed", "parse"),
        ("SELECT " + "1," * 20_000 + "1", "resource_limit", "parse"),
        ("DROP TABLE customers", "unsafe", "parse"),
        ("SELECT 1; SELECT 2", "unsafe", "parse"),
        ("SELECT nmae FROM customers", "runtime_error", "execute"),
        ("SELECT name FROM clients", "runtime_error", "execute"),
        ("SELECT abs(-9223372036854775808) FROM customers", "runtime_error", "execute"),
        ("SELECT :name FROM customers", "runtime_error", "execute"),
        ("SELECT " + "(" * 300 + "1" + ")" * 300, "resource_limit", "execute"),
        (f"SELECT replace('{'a' * 999}', 'a', '{'b' * 999}') FROM customers",
         "resource_limit", "execute"),
        ("SELECT name, id FROM customers", "wrong_answer", "compare"),
        ("SELECT name FROM customers", "wrong_answer", "compare"),
        ("SELECT 1", "constraint", "compare"),
        ("x" * 200_001, "resource_limit", "extract"),
    ],
)  # fmt: skip
def test_every_way_to_fail_has_its_category_and_stage(judge, shop, completion, failure, stage):
    verdict = judge(completion, {"query": LIMA, **shop})
    assert verdict.status is Status.FAILED
    assert verdict.score == 0
    assert (verdict.failure.value, verdict.stage.value) == (failure, stage)


def test_too_much_work_is_a_failure_of_the_query(ask):
    sql = "SELECT count(*) FROM customers a, customers b, customers c, customers d, customers e"
    assert ask(sql, LIMA, max_steps=2000).failure is FailureCategory.TIME_LIMIT
    # The right query has to keep the limits too.
    assert ask(LIMA, sql, max_steps=2000).status is Status.ABSTAINED
    assert ask(LIMA, sql, max_cpu_s=1e-9).status is Status.ABSTAINED


@pytest.mark.parametrize(
    "completion", ["", "```sql\nSELECT name FROM", "SELECT name FROM customers"]
)
def test_an_answer_that_was_cut_off_is_told_apart(judge, shop, completion):
    truth = {"query": "SELECT name FROM customers", **shop}
    verdict = judge(completion, truth, finish_reason=FinishReason.LENGTH)
    assert verdict.failure is FailureCategory.TRUNCATED


@pytest.mark.parametrize(
    "completion", ["```sql\nSELECT name FROM customers\n```\nIt", "SELECT name FROM customers;"]
)
def test_a_complete_query_counts_in_an_answer_that_was_cut_off(judge, shop, completion):
    truth = {"query": "SELECT name FROM customers", **shop}
    assert judge(completion, truth, finish_reason=FinishReason.LENGTH).score == 1


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT nmae FROM customers", "runtime_error at execute"),
        ("SELECT name FORM customers x y", "malformed at parse"),
        ("DROP TABLE customers", "unsafe at parse"),
        ("SELECT 1; SELECT 2", "unsafe at parse"),
        ("SELECT name FROM customers ORDER BY random()", "unsafe at parse"),
        ("SELECT name FROM customers WHERE date('now') > '2000'", "unsafe at parse"),
        ("SELECT name FROM customers WHERE CURRENT_DATE > '2000'", "unsafe at parse"),
        ("SELECT strftime('%Y') FROM customers", "unsafe at parse"),
        ("SELECT datetime(day, 'localtime') FROM orders", "unsafe at parse"),
        ("SELECT name FROM customers WHERE age > 99", "no rows"),
        ("SELECT a.id FROM " + ", ".join(f"orders {name}" for name in "abcdef"), "more than"),
        ("SELECT count(*) FROM " + ", ".join(f"orders {name}" for name in "abcdefghijkl"),
         "time_limit at execute"),
        ("SELECT name FROM customers ORDER BY age DESC LIMIT 2", "order in which tables are read"),
        ("SELECT name FROM customers LIMIT 1", "order in which tables are read"),
        ("SELECT group_concat(name) FROM customers", "order in which tables are read"),
        ("SELECT name FROM customers ORDER BY age > 30 LIMIT 2 OFFSET 1", "how ties are broken"),
    ],
)  # fmt: skip
def test_a_right_query_that_cannot_judge_abstains(ask, query, reason):
    for sql in (query, LIMA):
        verdict = ask(sql, query, max_steps=300_000)
        assert verdict.status is Status.ABSTAINED
        assert verdict.failure is FailureCategory.BAD_GROUND_TRUTH
        assert reason in verdict.diagnostics["message"]


def test_a_right_result_that_cannot_judge_abstains(judge, shop):
    assert judge(LIMA, {"result": [], **shop}).status is Status.ABSTAINED
    assert judge(LIMA, {"result": [["Ada"]], **shop}, perturb=1).status is Status.ABSTAINED
    assert judge(LIMA, {"result": [["a"], ["b"]], **shop}, max_rows=1).status is Status.ABSTAINED


def test_rows_that_the_right_order_leaves_open_may_stand_either_way(ask):
    right = "SELECT name, age FROM customers WHERE age IS NOT NULL ORDER BY age"
    for tie in ("name", "name DESC", "id", "id DESC"):
        assert ask(f"{right}, {tie}", right).score == 1
    assert (
        ask("SELECT name, age FROM customers WHERE age > 0 ORDER BY age = 36, age", right).score
        == 0
    )


def test_diagnostics_hold_nothing_of_the_ground_truth(ask):
    right = "SELECT 'hidden' || name FROM customers"
    for sql in ("SELECT 1, 2", "SELECT name FROM customers", "SELECT x FROM y", right):
        assert "hidden" not in json.dumps(ask(sql, right).to_json())
    assert "hidden" not in json.dumps(ask(LIMA, "SELECT 1 FROM hidden").to_json())


@pytest.mark.parametrize(
    ("truth", "reason"),
    [
        ({}, "either `query` or `result`"),
        ({"query": "SELECT 1", "result": [[1]], "schema": "CREATE TABLE t (a)"}, "either `query`"),
        ({"query": "SELECT 1"}, "either `database` or `schema`"),
        ({"query": "q", "schema": "CREATE TABLE t (a)", "database": "a.db"}, "either `database`"),
        ({"query": "q", "schema": "CREATE TABLE t (a)", "ordered": True}, "belongs to `result`"),
        ({"query": "q", "database": "a.db", "data": {"t": [[1]]}}, "belongs to `schema`"),
        ({"query": "q", "database": []}, "databases"),
        ({"query": "q", "database": ["a.db"] * 17}, "databases"),
        ({"result": [[1]], "database": ["a.db", "b.db"]}, "several need `query`"),
        ({"query": "q", "database": "/etc/passwd"}, "no path below"),
        ({"query": "q", "database": "../a.db"}, "no path below"),
        ({"query": "q", "database": ""}, "no path below"),
        ({"result": [[1], [1, 2]], "schema": "CREATE TABLE t (a)"}, "same columns"),
        ({"result": [[]], "schema": "CREATE TABLE t (a)"}, "same columns"),
        ({"result": [[2**63]], "schema": "CREATE TABLE t (a)"}, "more than SQLite"),
        ({"result": [[[1]]], "schema": "CREATE TABLE t (a)"}, "a value must be"),
        ({"result": [[{"hex": "0"}]], "schema": "CREATE TABLE t (a)"}, "hex"),
        ({"query": "q", "schema": ""}, "makes no table"),
        ({"query": "q", "schema": "CREATE TABEL t (a)"}, "syntax error"),
        ({"query": "q", "schema": "CREATE TABLE t (a)", "data": {"u": [[1]]}}, "no such table"),
        ({"query": "q", "schema": "CREATE TABLE t (a)", "data": {"t": [[1, 2]]}}, "1 column"),
        ({"query": "q", "schema": "CREATE TABLE t (a UNIQUE)", "data": {"t": [[1], [1]]}},
         "UNIQUE"),
        ({"query": "q", "schema": "ATTACH 'x.db' AS x; CREATE TABLE t (a)"}, "not authorized"),
        ({"query": "q", "schema": "PRAGMA temp_store_directory = '/'"}, "not authorized"),
        ({"query": "q", "schema": "VACUUM INTO 'x.db'"}, "authorization denied"),
        ({"query": "q", "schema": "CREATE TABLE t (a); BEGIN"}, "transaction"),
        ({"query": "q", "schema": "CREATE TABLE t AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL "
          "SELECT x FROM n) SELECT x FROM n"}, "interrupted"),
        ({"query": "q", "schema": "CREATE TABLE t (a)", "more": 1}, "Extra inputs"),
    ],
)  # fmt: skip
def test_an_odd_ground_truth_is_refused_with_the_reason(truth, reason):
    with pytest.raises(ValidationError) as caught:
        SqlExec.GroundTruth.model_validate(truth)
    assert reason in str(caught.value)


def test_a_ground_truth_survives_json(shop):
    truth = SqlExec.GroundTruth.model_validate({"query": LIMA, **shop})
    again = SqlExec.GroundTruth.model_validate_json(truth.model_dump_json())
    assert again == truth
