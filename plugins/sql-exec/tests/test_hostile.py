"""Whatever a completion holds, a verdict comes back, and fast."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MEGABYTE = 1_000_000
LONGEST = 199_000
"""A little less than the longest answer that is read at all."""
LIMIT_S = 5.0
RIGHT = (
    "SELECT c.name, sum(o.amount) FROM customers c JOIN orders o ON c.id = o.customer_id GROUP BY 1"
)


def filled(unit: str, characters: int = LONGEST) -> str:
    return (unit * (characters // len(unit) + 1))[:characters]


UNITS = [
    "(", "SELECT ", "SELECT (", "```", "```sql\n", "\n```sql\nSELECT 1\n```", "'", '"', "`",
    "[", "--", "/*", "/* /* ", ";", "\nSELECT", " with", "\n", " ", "\t", "~", "<think>",
    "\x00", "\ud800", "1e", "0x", "x'", "$", "{#", "{{", "$$", "N'", "E'\\", "\\", "é", "日",
]  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_a_long_answer_is_judged_fast(judge, shop, unit):
    for text in (filled(unit), "SELECT " + filled(unit, 19_000)):
        is_judged(judge, shop, text)


PIECES = st.sampled_from([
    "SELECT ", "WITH ", "VALUES ", "FROM ", "WHERE ", "ORDER BY ", "GROUP BY ", "UNION ALL ",
    "LIMIT ", "AS ", "(", ")", ",", ";", "*", "'", '"', "`", "[", "]", "--", "/*", "*/", "\n",
    " ", "\x00", "\ud800", "\u202e", "\u3000", "x'00'", "1", "1e999", "0x",
    "9999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999",
    "name", "customers ", "orders ", "o.amount", "count(*)", "sum(", "printf('%9999d',1)",
    "RECURSIVE ", "n(x) ", "CASE ", "WHEN ", "END ", "OVER (", "LIKE ", "json_each('[1]')",
    "DROP TABLE ", "PRAGMA ", "sqlite_master ", "EXPLAIN ", "INTO ", "{{", "{#", "$$", "@a",
    ":b", "?1", "||", "->>", "\\", "```", "```sql\n", "<think>", "</think>",
])  # fmt: skip
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
OPERATORS = ["+", "||", "=", "<", "LIKE", "IS", "->", "IN"]
FUNCTIONS = ["abs", "max", "sum", "hex", "date", "json", "printf", "replace", "group_concat", "f"]
EXPRESSIONS = st.recursive(
    st.sampled_from(["id", "name", "age", "NULL", "1", "'a'", "0.5", "x'00'", "count(*)", "*"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(OPERATORS), inner).map(lambda t: f"({' '.join(t)})"),
        st.tuples(
            st.sampled_from(FUNCTIONS), st.lists(inner, max_size=3)
        ).map(lambda t: f"{t[0]}({', '.join(t[1])})"),
        inner.map(lambda e: f"(SELECT {e} FROM customers)"),
    ),
    max_leaves=8,
)  # fmt: skip
QUERIES = st.tuples(EXPRESSIONS, EXPRESSIONS, EXPRESSIONS).map(
    lambda t: f"SELECT {t[0]}, {t[1]} FROM customers ORDER BY {t[2]}"
)
HOSTILE = st.one_of(
    st.lists(PIECES, min_size=1, max_size=30).map("".join),
    st.lists(PIECES, max_size=30).map(lambda pieces: f"```sql\nSELECT {''.join(pieces)}\n```"),
    QUERIES,
    ANY_TEXT,
    ANY_TEXT.map(lambda text: f"SELECT {text} FROM customers"),
)


def is_judged(judge, shop, text: str, **config: object) -> None:
    start = time.process_time()
    verdict = judge(text, {"query": RIGHT, **shop}, **config)
    assert time.process_time() - start < LIMIT_S
    assert verdict.is_judgement
    assert 0 <= verdict.score <= 1
    assert (verdict.score == 1) == (verdict.failure is None)
    assert len(str(verdict.diagnostics)) < 2000


CONFIGS = st.sampled_from(
    [{}, {"score": "layers"}, {"column_order": "any"}, {"perturb": 1}, {"max_steps": 5000}]
)
QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=200, derandomize=True, **QUIET)
@given(text=HOSTILE, config=CONFIGS)
def test_hostile_text_always_gets_a_verdict_fast(judge, shop, text, config):
    is_judged(judge, shop, text, **config)


@pytest.mark.slow
@settings(max_examples=5_000, **QUIET)
@given(text=HOSTILE, config=CONFIGS)
def test_five_thousand_hostile_texts_get_a_verdict_fast(judge, shop, text, config):
    is_judged(judge, shop, text, **config)


@pytest.mark.slow
@settings(max_examples=50, **QUIET)
@given(unit=HOSTILE.filter(bool))
def test_fifty_hostile_megabytes_get_a_verdict_fast(judge, shop, unit):
    is_judged(judge, shop, filled(unit, MEGABYTE))
    is_judged(judge, shop, filled(unit))
