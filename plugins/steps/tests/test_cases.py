"""Golden cases of this plugin, and the worked answers of GSM8K where they are at hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rlvr_plugin_steps import Steps, measure_coverage

PLUGIN = Path(__file__).parents[1]
GSM8K = PLUGIN.parents[2] / "shared" / "data" / "gsm8k_test.jsonl"


def rows_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


GOLDEN = rows_of(PLUGIN / "golden.jsonl")


def test_every_golden_case_is_scored_as_expected(judge):
    kinds = [row["kind"] for row in GOLDEN]
    assert kinds.count("pass") >= 20
    assert kinds.count("fail") >= 20
    assert kinds.count("near") >= 10
    found = []
    for row in GOLDEN:
        verdict = judge(row["completion"], row["ground_truth"], **row["config"])
        if verdict.score is None or abs(verdict.score - row["expected"]) > 1e-4:
            found.append((row["id"], row["why"], row["expected"], verdict.to_json()))
    assert found == []


def test_golden_cases_pass_or_fail_as_their_kind_says(judge):
    for row in GOLDEN:
        verdict = judge(row["completion"], row["ground_truth"], **row["config"])
        assert (verdict.failure is None) == (row["kind"] == "pass"), row["id"]
        if row["kind"] == "fail":
            assert verdict.score <= 0.2, row["id"]


def test_the_reference_completion_of_every_golden_truth_scores_one(judge):
    for row in GOLDEN:
        truth = Steps.GroundTruth.model_validate(row["ground_truth"])
        reference = Steps().reference_completion(truth)
        assert judge(reference, row["ground_truth"]).score == pytest.approx(1.0), row["id"]


@pytest.fixture(scope="module")
def worked() -> list[dict]:
    """Return the 1,319 worked answers as ground truths."""
    if not GSM8K.exists():
        pytest.skip("the 1,319 worked answers of GSM8K are not here")
    answers = [row["answer"] for row in rows_of(GSM8K)]
    return [{"steps": one, "answer": one.rpartition("####")[2].strip()} for one in answers]


def assert_sound(judge, worked: list[dict], step: int = 1) -> None:
    """Judge one worked answer in `step` as its own and as that of the row after it."""
    for number in range(0, len(worked), step):
        truth = worked[number]
        assert judge(truth["steps"], truth).score == pytest.approx(1.0), number
        other = judge(worked[number - 1]["steps"], truth)
        assert other.failure is not None, number
        if other.diagnostics["answer"] == "wrong":
            assert other.score <= 0.1, number


def test_a_worked_answer_is_accepted_and_that_of_another_row_is_not(judge, worked):
    assert len(worked) == 1319
    assert_sound(judge, worked, step=8)


@pytest.mark.slow
def test_every_worked_answer_is_accepted_and_the_next_rows_is_not(judge, worked):
    assert_sound(judge, worked)


def assert_covered(truths: list[dict]) -> None:
    coverage = measure_coverage([Steps.GroundTruth.model_validate(truth) for truth in truths])
    assert coverage.rows == len(truths)
    assert coverage.share > 0.95


def test_worked_answers_can_be_aligned_with(worked):
    assert_covered(worked[::8])


@pytest.mark.slow
def test_all_worked_answers_can_be_aligned_with(worked):
    assert_covered(worked)
