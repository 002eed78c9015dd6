"""What a verdict says, and which ground truths are refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from rlvr_plugin_steps import Steps

from rlvr_core.api import FailureCategory, FinishReason, Status

TRUTH = {"steps": ["The secret is 12 * 8 = 96.", "Then 96 - 24 = 72 hidden ones."], "answer": 72}
RIGHT = "12*8=96\n96-24=72\nThe answer is 72."


@pytest.mark.parametrize(
    ("completion", "failure", "stage"),
    [
        ("", "no_answer", "extract"),
        ("12*8=96\n96-24=72", "no_answer", "extract"),
        ("<think>" + RIGHT, "no_answer", "extract"),
        ("12*8=96\n96-24=72\nThe answer is 73.", "wrong_answer", "compare"),
        ("The answer is 72.", "constraint", "compare"),
        (RIGHT + "x" * 200_000, "resource_limit", "extract"),
    ],
)
def test_every_way_to_fail_has_its_category_and_stage(judge, completion, failure, stage):
    verdict = judge(completion, TRUTH)
    assert verdict.status is Status.FAILED
    assert (verdict.failure.value, verdict.stage.value) == (failure, stage)


@pytest.mark.parametrize("completion", ["", "12*8=96", "<think>so"])
def test_an_answer_that_was_cut_off_is_told_apart(judge, completion):
    verdict = judge(completion, TRUTH, finish_reason=FinishReason.LENGTH)
    assert verdict.failure is FailureCategory.TRUNCATED


def test_diagnostics_say_how_it_went_and_nothing_of_the_ground_truth(judge):
    verdict = judge("1+1=3\nThe answer is 5.", TRUTH)
    assert verdict.diagnostics == {
        "answer": "wrong", "steps": 1, "matched": 0, "precision": 0.0, "recall": 0.0,
        "wrong_lines": 1,
    }  # fmt: skip
    text = json.dumps(verdict.to_json())
    assert not any(word in text for word in ("secret", "hidden", "96", "72"))


def test_the_pass_mark_decides_what_passes(judge):
    half = "12*8=96\nThe answer is 72."
    assert judge(half, TRUTH, pass_mark=0.6).status is Status.PASSED
    assert judge(half, TRUTH, pass_mark=0.75).status is Status.FAILED


def test_an_answer_alone_may_never_pass():
    with pytest.raises(ValidationError, match="less than `pass_mark`"):
        Steps.Config(answer_share=0.8, pass_mark=0.75)


@pytest.mark.parametrize(
    ("truth", "reason"),
    [
        ({"steps": ["a b"]}, "Field required"),
        ({"answer": 1}, "Field required"),
        ({**TRUTH, "steps": []}, "there are 0 steps"),
        ({**TRUTH, "steps": "  \n"}, "there are 0 steps"),
        ({**TRUTH, "steps": ["a b", " - "]}, "step 2 says nothing"),
        ({**TRUTH, "steps": ["a b", "The answer is 72."]}, "step 2 only states an answer"),
        ({**TRUTH, "steps": ["a b"] * 65}, "1 to 64 can be aligned"),
        ({**TRUTH, "steps": "a b\n" * 20_000}, "more than 50,000 characters"),
        ({**TRUTH, "steps": ["a b" * 20_000]}, "more than 50,000 characters"),
        ({**TRUTH, "steps": "a b\nc d\n#### 73"}, "ends in the answer '73'"),
        ({**TRUTH, "answer": True}, "no answers"),
        ({**TRUTH, "answer": " "}, "one line that is not blank"),
        ({**TRUTH, "answer": []}, "one line that is not blank"),
        ({**TRUTH, "answer": "7\n2"}, "one line that is not blank"),
        ({**TRUTH, "weights": [1]}, "1 weights for 2 steps"),
        ({**TRUTH, "weights": [1, -1]}, "0 or more"),
        ({**TRUTH, "weights": [0, 0]}, "some must be more"),
        ({**TRUTH, "weights": [1, float("nan")]}, "finite"),
        ({**TRUTH, "more": 1}, "Extra inputs"),
    ],
)
def test_a_ground_truth_that_cannot_judge_is_refused_with_the_reason(truth, reason):
    with pytest.raises(ValidationError) as caught:
        Steps.GroundTruth.model_validate(truth)
    assert reason in str(caught.value)


def test_any_of_several_answers_is_right(judge):
    truth = {**TRUTH, "answer": ["72", "six dozen"]}
    assert judge(RIGHT.replace("is 72", "is six dozen"), truth).score == pytest.approx(1.0)


def test_a_false_line_of_the_reference_is_forgiven(judge):
    truth = {"steps": "100 / 3 = 33\n33 * 2 = 66\n#### 66", "answer": 66}
    assert judge(truth["steps"], truth).score == pytest.approx(1.0)
    assert judge("100/3 = 33\n33*2 = 67\n#### 66", truth).diagnostics["wrong_lines"] == 1


WORDS = st.lists(st.sampled_from(["apples", "9", "3.5", "so", "=", "+", "The", "x", "每", "价"]),
                 min_size=1, max_size=9).map(" ".join)  # fmt: skip


@settings(max_examples=100, deadline=None, derandomize=True)
@given(steps=st.lists(WORDS, min_size=1, max_size=6), answer=st.integers())
def test_a_listed_reference_scores_one_against_itself(judge, steps, answer):
    truth = {"steps": steps, "answer": answer}
    try:
        read = Steps.GroundTruth.model_validate(truth)
    except ValidationError:
        return
    completion = Steps().reference_completion(read)
    assert judge(completion, truth).score == pytest.approx(1.0)
