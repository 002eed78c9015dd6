"""The graded cases beside the repository: correct, wrong and hostile answers."""

from __future__ import annotations

import json

import pytest


@pytest.mark.slow
def test_every_shared_case_is_scored_as_expected(judge, shared_folder):
    lines = (shared_folder / "cases" / "code.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) > 50
    found = []
    for row in rows:
        verdict = judge(row["completion"], row["ground_truth"], test_time_limit_s=2, time_limit_s=5)
        if verdict.score is None or abs(verdict.score - row["expected"]) > 1e-3:
            found.append((row["id"], row["why"], row["expected"], verdict.to_json()))
    assert found == []
