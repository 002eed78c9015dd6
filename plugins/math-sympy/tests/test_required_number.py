"""``require_number``: where a number is asked for, a calculation is no answer."""

from __future__ import annotations

import pytest

from rlvr_core.api import FailureCategory, Stage, Status

CALCULATIONS = [
    "12 + 30", "42+0", "6*7", "6(7)", r"2\cdot 21", r"\max(24,64)", r"\sqrt{1764}", "7!/120",
    "42^1", r"\frac{84}{2}", "84/2", "42/1", r"\frac{12.6}{0.3}", "84:2", "-(-42)",
    r"\lfloor 42.5\rfloor", "(12+30)", "x = 6*7", "42 = 12 + 30", r"12+30 \text{ cm}",
    "(6)*7 apples", "3.5 dozen", "|-42|", r"42 \pm 0", r"\{12+30\}", r"\text{It is }12+30",
]  # fmt: skip
NUMBERS = [
    "42", "42.0", "042", "+42", "(42)", "x = 42", "42 = x", "S=42", "12 + 30 = 42", "12+30=x=42",
    r"\$42", "42 apples", r"42 \text{ cm}", "42°", r"4.2\times 10^{1}", "4.2e1", r"4200\%",
    r"\text{42}", r"\mathbf{42}", "四十二", "42, 42",
]  # fmt: skip
OTHER_PAIRS = [
    ("2^{3}", "8", 0), ("8", "8", 1), ("1.5 million", "1,500,000", 1), ("1,234", "1234", 1),
    ("1/2", "0.5", 1), ("½", "0.5", 1), ("0.5", r"\frac{1}{2}", 1), (r"1-\frac12", r"\frac12", 0),
    (r"\frac{-3}{4}", "-0.75", 1), (r"2\frac{1}{3}", r"\frac73", 1), ("2 1/3", "7/3", 1),
    (r"2+\frac13", "7/3", 0), (r"\frac12", r"50\%", 1), (r"50\%", "0.5", 1), ("4/2", "4/2", 1),
    ("4/2", "2", 0), ("8/4", "4/2", 0), (r"0.\overline{3}", "1/3", 1), ("0.333...", "1/3", 1),
    ("12+30", "x = 42", 0), ("12+30", "42 apples", 0), ("12+30", r"\$42", 0), ("12+30", 42, 0),
    ("42", 42.0, 1),
]  # fmt: skip


@pytest.mark.parametrize("text", CALCULATIONS)
def test_a_calculation_is_no_number(judge, text):
    verdict = judge(rf"\boxed{{{text}}}", "42", require_number=True)
    assert (verdict.status, verdict.score) == (Status.FAILED, 0.0)
    assert (verdict.failure, verdict.stage) == (FailureCategory.WRONG_ANSWER, Stage.COMPARE)
    assert verdict.diagnostics["rung"] == "form"


@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_counts_however_it_is_written(judge, text):
    assert judge(rf"\boxed{{{text}}}", "42", require_number=True).score == 1


@pytest.mark.parametrize("text", ["43", "x = 41", "12 + 30 = 43", "hello"])
def test_a_wrong_answer_stays_wrong(judge, text):
    assert judge(rf"\boxed{{{text}}}", "42", require_number=True).score == 0


@pytest.mark.parametrize(("text", "gold", "score"), OTHER_PAIRS)
def test_fractions_decimals_and_powers(judge, text, gold, score):
    assert judge(rf"\boxed{{{text}}}", gold, require_number=True).score == score


@pytest.mark.parametrize(("text", "gold"), [("2+x", "x+2"), ("(1+1,2)", "(2,2)"), ("B", "B")])
def test_ground_truths_that_are_no_numbers_are_compared_as_before(judge, text, gold):
    assert judge(rf"\boxed{{{text}}}", gold, require_number=True).score == 1


def test_one_number_among_the_ground_truths_is_enough_but_each_counts_as_written(judge):
    golds = ["42", "12+30"]
    assert judge(r"\boxed{6*7}", golds, require_number=True).score == 0
    assert judge(r"\boxed{12 + 30}", golds, require_number=True).score == 1


def test_without_it_a_calculation_is_compared_by_value(judge):
    assert judge(r"\boxed{12 + 30}", "42").score == 1
    assert judge(r"\boxed{\frac{84}{2}}", "42").score == 1
