"""Golden cases of this plugin, and the shared cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rlvr_plugin_f1_extraction import F1Extraction

PLUGIN = Path(__file__).parents[1]
CASES = PLUGIN.parents[2] / "shared" / "cases" / "extraction.jsonl"

needs_cases = pytest.mark.skipif(not CASES.exists(), reason="the shared cases are not here")


def rows_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def misjudged(rows, judge) -> list[tuple]:
    found = []
    for row in rows:
        verdict = judge(row["completion"], row["ground_truth"], **row["config"])
        if verdict.score is None or abs(verdict.score - row["expected"]) > 1e-4:
            found.append((row["id"], row["why"], row["expected"], verdict.to_json()))
    return found


def test_every_golden_case_is_scored_as_expected(judge):
    rows = rows_of(PLUGIN / "golden.jsonl")
    assert sum(row["expected"] == 1 for row in rows) >= 20
    assert sum(row["expected"] == 0 for row in rows) >= 20
    assert sum(0 < row["expected"] < 1 for row in rows) >= 10
    assert misjudged(rows, judge) == []


@needs_cases
def test_every_shared_case_is_scored_as_expected(judge):
    assert misjudged(rows_of(CASES), judge) == []


def test_the_reference_completion_of_every_golden_truth_passes(judge):
    for row in rows_of(PLUGIN / "golden.jsonl"):
        verifier = F1Extraction(F1Extraction.Config(**row["config"]))
        truth = F1Extraction.GroundTruth.model_validate(row["ground_truth"])
        reference = verifier.reference_completion(truth)
        assert judge(reference, row["ground_truth"], **row["config"]).score == 1, row
