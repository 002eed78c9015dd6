"""Whatever a verifier returns or raises becomes a verdict of its row, and never a silent number."""

from __future__ import annotations

import pytest

from rlvr_core.api import FailureCategory, Status

from .conftest import open_judge

NO_VERDICTS = {
    "none": "expected a Verdict, got None",
    "float": "expected a Verdict, got float 1.0",
    "text": "expected a Verdict, got str '1.0'",
    "mapping": "expected a Verdict, got dict {'score': 1.0}",
    "class": "expected a Verdict, got type",
    "score_nan": "expected a finite score, got nan",
    "score_inf": "expected a finite score, got inf",
    "score_minus_inf": "expected a finite score, got -inf",
    "score_huge_integer": "expected a finite score, got inf",
    "score_beyond": "expected a score in [0, 1], got 1.5",
    "score_text": "got str '1.0'",
    "score_true": "got bool True",
    "score_list": "got list [1.0]",
    "score_decimal": "got Decimal",
    "score_tensor": "got Tensor",
}
RAISES = {
    "raise": "ValueError: cannot read it",
    "recurse": "RecursionError",
    "interrupt": "KeyboardInterrupt",
    "leave": "SystemExit",
    "end_generator": "GeneratorExit",
    "raise_unprintable": "UnprintableError, whose message cannot be shown",
    "raise_much": "ValueError: \0\0",
}
PLAIN = ("judge", "a")


@pytest.fixture(scope="module")
def odd():
    with open_judge("odd") as judge:
        yield judge
        assert judge.health().restarts == 0, "no row may cost a worker"


@pytest.mark.parametrize("does", NO_VERDICTS)
def test_an_answer_that_is_no_verdict_is_an_error_that_names_its_type(odd, does):
    before, broken, after = odd(PLAIN, (does, "a"), PLAIN)

    assert (before.status, after.status) == (Status.PASSED, Status.PASSED)
    assert (broken.status, broken.score) == (Status.ERROR, None)
    assert broken.failure is FailureCategory.CONTRACT_VIOLATION
    assert NO_VERDICTS[does] in broken.diagnostics["message"]


@pytest.mark.parametrize("does", RAISES)
def test_whatever_a_verifier_raises_is_an_error_of_its_row_alone(odd, does):
    before, broken, after = odd(PLAIN, (does, "a"), PLAIN)

    assert (before.status, after.status) == (Status.PASSED, Status.PASSED)
    assert (broken.status, broken.score) == (Status.ERROR, None)
    assert broken.failure is FailureCategory.VERIFIER_EXCEPTION
    assert RAISES[does] in broken.diagnostics["message"]


@pytest.mark.parametrize(
    ("does", "score"),
    [("score_float32", 0.25), ("score_fraction", 0.25), ("score_int64", 1.0)],
)
def test_numbers_of_other_libraries_are_scores(odd, does, score):
    [verdict] = odd((does, "a"))

    assert verdict.score == score
    assert type(verdict.score) is float


def test_a_verifier_may_bound_itself_with_signals(odd):
    [verdict] = odd(("alarm", "a"))

    assert (verdict.status, verdict.failure) == (Status.FAILED, FailureCategory.TIME_LIMIT)


def test_signals_on_a_thread_are_a_counted_error_and_no_zero():
    with open_judge("odd-service") as judge:
        [verdict] = judge(("alarm", "a"))

    assert (verdict.status, verdict.score) == (Status.ERROR, None)
    assert "signal only works in main thread" in verdict.diagnostics["message"]


FORMS = {
    "one_less": "expected 3 verdicts from rlvr_verify, one a row, got 2",
    "one_more": "expected 3 verdicts from rlvr_verify, one a row, got 4",
    "one": "expected a sequence of 3 verdicts from rlvr_verify, got Verdict",
    "none": "expected a sequence of 3 verdicts from rlvr_verify, got None",
    "text": "got str '111'",
    "generator": "got generator",
    "mapping": "got dict",
    "array": "got ndarray",
    "scores": "expected a Verdict, got float 1.0",
    "huge_scores": "expected a finite score, got inf",
}


@pytest.fixture(scope="module")
def miscounting():
    with open_judge("odd-batch") as judge:
        yield judge
        assert judge.health().restarts == 0, "no batch may cost a worker"


@pytest.mark.parametrize("form", FORMS)
def test_a_batch_of_another_form_is_an_error_of_every_row(miscounting, form):
    verdicts = miscounting(*[(form, "a")] * 3)

    assert {verdict.failure for verdict in verdicts} == {FailureCategory.CONTRACT_VIOLATION}
    assert all(FORMS[form] in verdict.diagnostics["message"] for verdict in verdicts)


def test_a_tuple_of_verdicts_is_as_good_as_a_list(miscounting):
    verdicts = miscounting(("tuple", "a"), ("tuple", "b"))

    assert [verdict.score for verdict in verdicts] == [1.0, 0.0]


def test_an_odd_completion_always_gets_a_verdict():
    from rlvr_core import verify

    texts = ["", " ", "\0" * 10, "a" * 1_000_000, "{[(" * 99, "\ud800", "\u202e\u200b", "a\r\n"]
    rows = [{"completion": text, "ground_truth": {"answer": "a"}} for text in texts]

    verdicts = verify("exact-match", rows, workers=1)

    assert {verdict.status for verdict in verdicts} <= {Status.PASSED, Status.FAILED}
    assert [verdict.score for verdict in verdicts] == [0, 0, 0, 0, 0, 0, 0, 1]
