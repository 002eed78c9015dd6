"""The built-in verifier `exact-match`."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from rlvr_core.api import FailureCategory, FinishReason, Status, Verdict, VerifyRow
from rlvr_core.builtin.exact_match import ExactMatch


def judge(completion: str, answer: str | list[str], **config: Any) -> Verdict:
    finish_reason = config.pop("finish_reason", FinishReason.STOP)
    verifier = ExactMatch(ExactMatch.Config(**config))
    truth = ExactMatch.GroundTruth(answer=answer)
    return verifier.verify_row(
        VerifyRow(
            id="r",
            prompt="",
            completion=completion,
            ground_truth=truth,
            finish_reason=finish_reason,
        )
    )


@pytest.mark.parametrize(
    ("completion", "answer", "config", "passes"),
    [
        ("Paris", "Paris", {}, True),
        (" Paris\n", "Paris", {}, True),
        ("paris", "Paris", {}, False),
        ("paris", "Paris", {"fold_case": True}, True),
        ("STRASSE", "straße", {"fold_case": True}, True),
        ("New \n York", "New York", {}, True),
        ("New  York", "New York", {"collapse_whitespace": False}, False),
        ("The capital is Paris", "Paris", {}, False),
        ("Paris", ["Lutetia", "Paris"], {}, True),
        ("“Paris”.", "Paris", {}, False),
        ("“Paris”.", "Paris", {"strip_punctuation": True}, True),
        (".5", "5", {"strip_punctuation": True}, False),
        ("-5", "5", {"strip_punctuation": True}, False),
        ("5%", "5", {"strip_punctuation": True}, False),
        ("１２", "12", {}, False),
        ("１２", "12", {"nfkc": True}, True),
        ("e\u0301t\u00e9", "\u00e9te\u0301", {}, True),
        ("first\nParis\n\n", "Paris", {"extract": "last-line"}, True),
        ("so: 3\nAnswer: 4\nbye", "4", {"extract": "after", "marker": "Answer:"}, True),
        ("Answer: 3\nAnswer:\n4", "4", {"extract": "after", "marker": "Answer:"}, True),
        ("answer: 4", "4", {"extract": "after", "marker": "Answer:"}, False),
        ("<think>Paris</think>London", "London", {}, True),
        ("<think>Paris</think>London", "Paris", {}, False),
        ("(B)", "B", {"choices": "ABCD"}, True),
        ("**B**", "B", {"choices": "ABCD"}, True),
        ("B. Paris", "B", {"choices": "ABCD"}, True),
        ("B) or C)", "B", {"choices": "ABCD"}, False),
        ("A dog", "A", {"choices": "ABCD"}, False),
        ("A, B", "A", {"choices": "ABCD"}, False),
        ("E", "B", {"choices": "ABCD"}, False),
        ("b", "B", {"choices": "ABCD"}, False),
        ("b", "B", {"choices": "ABCD", "fold_case": True}, True),
    ],
)
def test_what_counts_as_equal(completion, answer, config, passes):
    verdict = judge(completion, answer, **config)
    assert verdict.status is (Status.PASSED if passes else Status.FAILED)
    assert verdict.score == float(passes)


@pytest.mark.parametrize("completion", ["", "  \n", "<think>Paris", "</think>a<think>Paris"])
def test_no_answer_is_said(completion):
    assert judge(completion, "Paris").failure is FailureCategory.NO_ANSWER


def test_a_cut_completion_without_an_answer_is_truncated():
    verdict = judge("<think>Par", "Paris", finish_reason=FinishReason.LENGTH)
    assert verdict.failure is FailureCategory.TRUNCATED


def test_an_answer_that_is_no_choice_is_bad_ground_truth():
    verdict = judge("B", "Paris", choices="ABCD")
    assert (verdict.status, verdict.failure) == (
        Status.ABSTAINED,
        FailureCategory.BAD_GROUND_TRUTH,
    )


@pytest.mark.parametrize("answer", ["", " ", [], ["x", ""]])
def test_empty_answers_are_refused(answer):
    with pytest.raises(ValidationError):
        ExactMatch.GroundTruth(answer=answer)


@pytest.mark.parametrize("config", [{"extract": "after"}, {"marker": "x"}, {"choices": "abc"}])
def test_settings_that_contradict_each_other_are_refused(config):
    with pytest.raises(ValidationError):
        ExactMatch.Config(**config)


def test_the_verdict_never_tells_the_answer():
    assert "Paris" not in str(judge("London", "Paris").diagnostics)
