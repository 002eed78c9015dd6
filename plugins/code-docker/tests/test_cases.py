"""Golden cases of this plugin."""

from __future__ import annotations

import json
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden.jsonl"
ROWS = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]


def test_every_golden_case_is_scored_as_expected(judge):
    assert sum(row["expected"] == 1 for row in ROWS) >= 20
    assert sum(row["expected"] == 0 for row in ROWS) >= 20
    assert sum(0 < row["expected"] < 1 for row in ROWS) >= 10
    found = []
    for row in ROWS:
        verdict = judge(row["completion"], row["ground_truth"])
        if verdict.score is None or abs(verdict.score - row["expected"]) > 1e-4:
            found.append((row["id"], row["why"], row["expected"], verdict.to_json()))
    assert found == []
