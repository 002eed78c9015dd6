"""What a verdict says, and which ground truths are refused."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError
from rlvr_plugin_f1_extraction import F1Extraction

from rlvr_core.api import FailureCategory, FinishReason, Stage, Status

LIMA = {"text": "Lima", "type": "PLACE"}
TRUTH = {"entities": [LIMA, {"text": "Ada Brun", "type": "PERSON"}]}


@pytest.mark.parametrize(
    ("completion", "failure", "stage"),
    [
        ("", "no_answer", "extract"),
        ("Lima and Ada Brun", "no_answer", "extract"),
        ("<think>[]", "no_answer", "extract"),
        ('[{"text": "Lima", ', "malformed", "parse"),
        ('[{"text": "Lima"},]', "malformed", "parse"),
        ('[{"text": NaN}]', "malformed", "parse"),
        ("null", "constraint", "parse"),
        ('"Lima"', "constraint", "parse"),
        ("42", "constraint", "parse"),
        ("[]", "wrong_answer", "compare"),
        (json.dumps([LIMA]), "wrong_answer", "compare"),
    ],
)
def test_every_way_to_fail_has_its_category_and_stage(judge, completion, failure, stage):
    verdict = judge(completion, TRUTH)
    assert verdict.status is Status.FAILED
    assert (verdict.failure.value, verdict.stage.value) == (failure, stage)


@pytest.mark.parametrize("completion", ["", '[{"text": "Li', "I think"])
def test_an_answer_that_was_cut_off_is_told_apart(judge, completion):
    verdict = judge(completion, TRUTH, finish_reason=FinishReason.LENGTH)
    assert verdict.failure is FailureCategory.TRUNCATED


def test_a_missing_required_type_is_a_broken_constraint(judge):
    verdict = judge(json.dumps([LIMA]), {**TRUTH, "required": ["person", "place"]})
    assert (verdict.score, verdict.failure) == (0.0, FailureCategory.CONSTRAINT)
    assert verdict.diagnostics["required_missing"] == 1


def test_a_share_of_the_entities_fails_with_its_score(judge):
    verdict = judge(json.dumps([LIMA]), TRUTH)
    assert verdict.score == pytest.approx(2 / 3)
    assert verdict.diagnostics == {"precision": 1.0, "recall": 0.5, "claimed": 1, "malformed": 0}


def test_entities_that_are_not_in_the_source_are_counted(judge):
    made_up = {"text": "Quito", "type": "PLACE"}
    verdict = judge(json.dumps([LIMA, made_up]), {"entities": [LIMA], "source": "In Lima."})
    assert verdict.diagnostics["ungrounded"] == 1
    assert verdict.stage is Stage.COMPARE


def test_diagnostics_never_hold_the_ground_truth(judge):
    for completion in ("", "[]", "null", "[1]", '[{"text": "x", "type": "y"}]'):
        verdict = judge(completion, {**TRUTH, "source": "Ada Brun in Lima", "required": ["PLACE"]})
        assert "Lima" not in json.dumps(verdict.to_json())
        assert "PLACE" not in json.dumps(verdict.to_json())


def test_offsets_without_any_in_the_ground_truth_abstain(judge):
    verdict = judge("[]", TRUTH, offsets=True)
    assert (verdict.status, verdict.failure) == (
        Status.ABSTAINED,
        FailureCategory.BAD_GROUND_TRUTH,
    )


def test_a_truth_without_types_needs_none_in_the_answer(judge):
    truth = {"entities": [{"text": "Lima"}]}
    assert judge('["Lima"]', truth).score == 1
    assert judge('[{"text": "lima", "type": "anything"}]', truth).score == 1


@pytest.mark.parametrize(
    "truth",
    [
        {},
        {"entities": None},
        {"entities": "Lima"},
        {"entities": ["Lima"]},
        {"entities": [{"type": "PLACE"}]},
        {"entities": [{"text": " ", "type": "PLACE"}]},
        {"entities": [{"text": "\u200b", "type": "PLACE"}]},
        {"entities": [{"text": "Lima", "type": ""}]},
        {"entities": [{"text": "Lima", "type": 3}]},
        {"entities": [LIMA, {"text": "Quito"}]},
        {"entities": [{**LIMA, "start": 0}]},
        {"entities": [{**LIMA, "start": 4, "end": 4}]},
        {"entities": [{**LIMA, "start": -1, "end": 3}]},
        {"entities": [{**LIMA, "start": "0", "end": "4"}]},
        {"entities": [{**LIMA, "start": 0, "end": 4}, LIMA]},
        {"entities": [{**LIMA, "label": "x"}]},
        {"entities": [LIMA], "required": ["PERSON"]},
        {"entities": [], "required": ["PLACE"]},
        {"entities": [LIMA], "source": "In Quito."},
        {"entities": [{**LIMA, "start": 0, "end": 4}], "source": "In Lima."},
        {"entities": [LIMA] * 1001},
    ],
)
def test_an_odd_ground_truth_is_refused(truth):
    with pytest.raises(ValidationError):
        F1Extraction.GroundTruth.model_validate(truth)
