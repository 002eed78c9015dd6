"""Golden cases of this plugin."""

from __future__ import annotations

import json
from pathlib import Path

from rlvr_plugin_json_schema import JsonSchema

GOLDEN = Path(__file__).parents[1] / "golden.jsonl"
ROWS = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]


def test_every_golden_case_is_scored_as_expected(judge):
    assert sum(row["expected"] == 1 for row in ROWS) >= 20
    assert sum(row["expected"] == 0 for row in ROWS) >= 20
    assert sum(0 < row["expected"] < 1 for row in ROWS) >= 10
    found = []
    for row in ROWS:
        verdict = judge(row["completion"], row["ground_truth"], **row["config"])
        if verdict.score is None or abs(verdict.score - row["expected"]) > 1e-4:
            found.append((row["id"], row["why"], row["expected"], verdict.to_json()))
    assert found == []


def test_a_reference_completion_passes_where_there_is_one(judge):
    references = 0
    for row in ROWS:
        verifier = JsonSchema(JsonSchema.Config(**row["config"]))
        truth = JsonSchema.GroundTruth.model_validate(row["ground_truth"])
        reference = verifier.reference_completion(truth)
        if reference is not None:
            references += 1
            assert judge(reference, row["ground_truth"], **row["config"]).score == 1, row
    assert references >= 5


def test_an_example_of_the_schema_is_a_reference(judge):
    schema = {"type": "object", "required": ["a"], "examples": [{}, {"a": 1}]}
    verifier = JsonSchema()
    truth = JsonSchema.GroundTruth.model_validate({"schema": schema})
    assert json.loads(verifier.reference_completion(truth)) == {"a": 1}
    expecting = JsonSchema.GroundTruth.model_validate({"schema": schema, "expected": {"a": 2}})
    assert json.loads(verifier.reference_completion(expecting)) == {"a": 2}
    bare = JsonSchema.GroundTruth.model_validate({"schema": {"type": "object"}})
    assert verifier.reference_completion(bare) is None
