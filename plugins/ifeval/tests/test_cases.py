"""Golden cases of this plugin, the shared cases, and the published prompts."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest
from pydantic import ValidationError
from rlvr_plugin_ifeval import IFEval, official, strict

PLUGIN = Path(__file__).parents[1]
SHARED = PLUGIN.parents[2] / "shared"
CASES = SHARED / "cases" / "ifeval.jsonl"
PROMPTS = SHARED / "data" / "ifeval_prompts.jsonl"

needs_cases = pytest.mark.skipif(not CASES.exists(), reason="the shared cases are not here")
needs_data = pytest.mark.skipif(not PROMPTS.exists(), reason="the shared data are not here")


def rows_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def score(judge, row: dict, **config) -> float:
    """Return the score; a ground truth that is refused scores nothing."""
    try:
        return judge(row["completion"], row["ground_truth"], **config).score
    except ValidationError:
        return 0.0


def test_every_golden_case_is_judged_as_expected(judge):
    rows = rows_of(PLUGIN / "golden.jsonl")
    wrong = [row for row in rows if score(judge, row) != row["expected"]]
    assert wrong == []


def test_every_kind_has_golden_cases_that_pass_and_that_fail():
    scores = defaultdict(set)
    for row in rows_of(PLUGIN / "golden.jsonl"):
        if len(row["ground_truth"]["constraints"]) == 1:
            scores[row["ground_truth"]["constraints"][0]["type"]].add(row["expected"])
    assert set(scores) == set(strict.CHECKS) == set(official.CHECKS)
    assert len(scores) == 25
    assert all(found == {0, 1} for found in scores.values())


@needs_cases
def test_every_shared_case_is_judged_as_expected(judge):
    rows = rows_of(CASES)
    assert len(rows) == 96
    assert [row for row in rows if score(judge, row) != row["expected"]] == []


@needs_cases
def test_the_official_mode_repeats_the_published_verdict_on_the_shared_cases(judge):
    rows = [row for row in rows_of(CASES) if row["official"] is not None]
    assert len(rows) == 85
    assert [row for row in rows if score(judge, row, mode="official") != row["official"]] == []


def published_truths() -> list[dict]:
    keys = ("instruction_id_list", "kwargs")
    return [{key: row[key] for key in keys} for row in rows_of(PROMPTS)]


@needs_data
def test_the_ground_truth_of_every_published_prompt_loads():
    truths = [IFEval.GroundTruth.model_validate(truth) for truth in published_truths()]
    assert len(truths) == 541
    assert {found.type for truth in truths for found in truth.constraints} == set(strict.CHECKS)


@needs_data
@pytest.mark.parametrize("mode", ["strict", "official"])
@pytest.mark.parametrize("blank", ["", " \n\t\n ", "\u3000"])
def test_a_blank_response_satisfies_no_published_prompt(judge, mode, blank):
    for truth in published_truths():
        for loose in (False, True):
            verdict = judge(blank, truth, mode=mode, score="share", loose=loose)
            assert (verdict.score, verdict.failure.value) == (0, "no_answer")


def test_a_reference_completion_passes_and_golden_truths_have_one(judge):
    verifier = IFEval()
    without = set()
    for row in rows_of(PLUGIN / "golden.jsonl"):
        truth = IFEval.GroundTruth.model_validate(row["ground_truth"])
        reference = verifier.reference_completion(truth)
        if reference is None:
            without.add(row["kind"])
        else:
            assert judge(reference, row["ground_truth"]).score == 1
    assert without <= {"language"}


def test_contradictions_have_no_reference_completion():
    contradiction = {
        "constraints": [
            {"type": "keywords:existence", "kwargs": {"keywords": ["cat"]}},
            {"type": "keywords:forbidden_words", "kwargs": {"forbidden_words": ["cat"]}},
        ]
    }
    truth = IFEval.GroundTruth.model_validate(contradiction)
    assert IFEval().reference_completion(truth) is None


@needs_data
def test_most_published_prompts_have_a_reference_completion():
    verifier = IFEval()
    truths = [IFEval.GroundTruth.model_validate(truth) for truth in published_truths()]
    assert sum(verifier.reference_completion(truth) is not None for truth in truths) >= 480
