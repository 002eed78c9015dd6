"""Golden cases of this plugin."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from rlvr_plugin_sql_exec import SqlExec

GOLDEN = Path(__file__).parents[1] / "golden.jsonl"
ROWS = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]


def test_every_golden_case_is_scored_as_expected(judge):
    kinds = Counter(row["kind"] for row in ROWS)
    assert kinds["pass"] >= 20
    assert kinds["fail"] >= 20
    assert kinds["near-miss"] >= 10
    found = []
    for row in ROWS:
        verdict = judge(row["completion"], row["ground_truth"], **row["config"])
        if verdict.score != row["expected"]:
            found.append((row["id"], row["why"], row["expected"], verdict.to_json()))
    assert found == []


def test_only_passing_cases_pass():
    assert all((row["expected"] == 1) == (row["kind"] == "pass") for row in ROWS)


def test_the_reference_completion_passes_where_there_is_one(judge):
    references = 0
    for row in ROWS:
        verifier = SqlExec(SqlExec.Config(**row["config"]))
        truth = SqlExec.GroundTruth.model_validate(row["ground_truth"])
        reference = verifier.reference_completion(truth)
        if reference is not None:
            references += 1
            assert judge(reference, row["ground_truth"], **row["config"]).score == 1, row
    assert references >= 50
