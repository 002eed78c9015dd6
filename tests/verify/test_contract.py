"""What a verifier returns is checked row by row, and what it raises is blamed on the right row."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from supervision import rows

from rlvr_core.api import FailureCategory, Status

PLAIN = "yes"


@pytest.mark.parametrize(
    ("completion", "expected_words"),
    [
        ("none", "expected a Verdict, got None"),
        ("nan", "expected a finite score, got nan"),
        ("range", "expected a score in [-1, 1], got 7.5"),
        ("noscore", "expected a number as score with status passed, got None"),
        ("unmarked", "status passed does not fit score 0.5 and pass mark 1"),
        ("mismatch", "expected with status failed one of these failures"),
        ("scored_abstention", "expected no score with status abstained, got 0.0"),
        ("unserialisable", "expected diagnostics that are JSON"),
        ("nan_diagnostics", "expected diagnostics that are JSON"),
        ("large", "expected at most 4096 bytes of diagnostics as JSON, got 5011"),
    ],
)
def test_a_breach_is_an_error_of_its_row_alone(judge, completion, expected_words):
    before, broken, after = judge("Tricky", [PLAIN, completion, PLAIN])
    assert (before.status, after.status) == (Status.PASSED, Status.PASSED)
    assert broken.status is Status.ERROR
    assert broken.failure is FailureCategory.CONTRACT_VIOLATION
    assert broken.score is None
    assert expected_words in broken.diagnostics["message"]


@pytest.mark.parametrize(
    ("completion", "words"),
    [("raise no such file", "ValueError: no such file"), ("sysexit bye", "SystemExit: bye")],
)
def test_an_exception_is_an_error_of_its_row_alone(judge, completion, words):
    before, broken, after = judge("Tricky", [PLAIN, completion, PLAIN])
    assert (before.status, after.status) == (Status.PASSED, Status.PASSED)
    assert broken.failure is FailureCategory.VERIFIER_EXCEPTION
    assert words in broken.diagnostics["message"]
    assert "fixture_verifiers.py" in broken.diagnostics["traceback"][-1]


def test_what_the_row_printed_is_shown_with_its_exception(judge):
    (broken,) = judge("Tricky", ["raise x"])
    assert broken.diagnostics["output"] == "before the end"


def test_a_missing_backend_is_told_from_a_broken_verifier(judge):
    (broken,) = judge("Tricky", ["backend"])
    assert broken.status is Status.ERROR
    assert broken.failure is FailureCategory.BACKEND_UNAVAILABLE
    assert "the judge does not answer" in broken.diagnostics["message"]


def test_one_row_cannot_take_all_memory(judge):
    before, broken, after = judge("Tricky", [PLAIN, "memory", PLAIN])
    assert "MemoryError" in broken.diagnostics["message"]
    assert (before.status, after.status) == (Status.PASSED, Status.PASSED)


def test_unusable_ground_truth_abstains_and_says_why(make_engine):
    with make_engine("Plain") as engine:
        (good,) = rows(["yes"])
        bad = replace(good, id="bad", ground_truth={"answr": 1})
        verdict, judged = engine.judge("plain", [bad, good])
    assert verdict.status is Status.ABSTAINED
    assert verdict.failure is FailureCategory.BAD_GROUND_TRUTH
    assert "answr" in verdict.diagnostics["message"]
    assert judged.status is Status.PASSED


def test_any_text_survives_the_way_back(judge):
    (verdict,) = judge("Tricky", ["unicode"])
    assert verdict.diagnostics == {"text": "答案\ud800\x00é" * 200}


@pytest.mark.parametrize(
    ("fault", "words"), [("short", "expected 3 verdicts"), ("none", "got None")]
)
def test_a_batch_of_the_wrong_length_is_an_error_of_every_row(judge, fault, words):
    verdicts = judge("Batch", [PLAIN] * 3, config={"fault": fault})
    assert {verdict.failure for verdict in verdicts} == {FailureCategory.CONTRACT_VIOLATION}
    assert all(words in verdict.diagnostics["message"] for verdict in verdicts)


def test_a_batch_that_raises_is_tried_row_by_row(judge):
    verdicts = judge("Batch", [PLAIN, "raise", PLAIN])
    statuses = [verdict.status for verdict in verdicts]
    assert statuses == [Status.PASSED, Status.ERROR, Status.PASSED]
    assert "cannot do this one" in verdicts[1].diagnostics["message"]


def test_verdicts_are_stamped_by_core(judge):
    (verdict,) = judge("Plain", [PLAIN])
    version, _, digest = verdict.version.partition("+")
    assert verdict.verifier == "plain"
    assert version == "0.1.0"
    assert len(digest) == 12
    assert 0 < verdict.latency_s < 1
    assert json.loads(json.dumps(verdict.to_json()))["status"] == "passed"


def test_the_version_changes_with_the_settings_and_not_with_the_run(judge):
    versions = [
        judge("Plain", [PLAIN], config=config)[0].version for config in ({}, {}, {"answer": "yes"})
    ]
    assert versions[0] == versions[1] != versions[2]


def test_the_lowest_score_may_be_negative(judge):
    (verdict,) = judge("Tricky", ["partly -0.5"])
    assert (verdict.status, verdict.score) == (Status.FAILED, -0.5)
