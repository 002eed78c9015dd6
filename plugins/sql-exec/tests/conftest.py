"""What the tests of this plugin share: the plugin class itself, called as core calls it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rlvr_plugin_sql_exec import SqlExec

from rlvr_core.api import FinishReason, Verdict, VerifyBatch, VerifyRow

Judge = Callable[..., Verdict]

SCHEMA = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT, age INTEGER);
CREATE TABLE orders (
  id INTEGER PRIMARY KEY,
  customer_id INTEGER NOT NULL REFERENCES customers (id),
  amount REAL NOT NULL,
  day TEXT NOT NULL
);
"""
DATA = {
    "customers": [
        [1, "Ada", "Lima", 36],
        [2, "Bo", "Oslo", 36],
        [3, "Cy", "Lima", 41],
        [4, "Di", None, 29],
        [5, "Eve", "Quito", None],
    ],
    "orders": [
        [1, 1, 10.0, "2024-01-05"],
        [2, 1, 2.5, "2024-02-01"],
        [3, 2, 7.25, "2024-02-11"],
        [4, 3, 10.0, "2024-03-02"],
        [5, 4, 0.1, "2024-03-02"],
        [6, 4, 0.2, "2024-03-09"],
    ],
}
SHOP = {"schema": SCHEMA, "data": DATA}


@pytest.fixture(scope="session")
def shop() -> dict:
    """Return the database of the ground truths: customers and their orders."""
    return SHOP


@pytest.fixture(scope="session")
def judge() -> Judge:
    """Return a function that judges one completion against one ground truth."""

    def judged(
        completion: str,
        ground_truth: dict,
        finish_reason: FinishReason = FinishReason.STOP,
        **config: object,
    ) -> Verdict:
        verifier = SqlExec(SqlExec.Config(**config))
        truth = SqlExec.GroundTruth.model_validate(ground_truth)
        row = VerifyRow(
            id="row",
            prompt="",
            completion=completion,
            ground_truth=truth,
            finish_reason=finish_reason,
        )
        (verdict,) = verifier.rlvr_verify(VerifyBatch(rows=[row]))
        return verdict

    return judged


@pytest.fixture(scope="session")
def ask(judge: Judge, shop: dict) -> Judge:
    """Return a function that judges one query of the shop against the right one."""

    def asked(sql: str, right: str, **config: object) -> Verdict:
        return judge(f"```sql\n{sql}\n```", {"query": right, **shop}, **config)

    return asked
