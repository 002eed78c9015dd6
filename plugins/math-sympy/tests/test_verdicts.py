"""What a verdict says: status, failure, stage, rung, and nothing about the ground truth."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from pydantic import ValidationError
from rlvr_plugin_math_sympy import MathSympy

from rlvr_core.api import FailureCategory, Stage, Status


@pytest.mark.parametrize(
    ("completion", "gold", "rung"),
    [
        (r"\boxed{42}", "42", "string"),
        (r"\boxed{42.0}", "42", "number"),
        (r"\boxed{\frac{6}{8}}", "0.75", "number"),
        (r"\boxed{\{2, 1\}}", r"\{1, 2\}", "structure"),
        (r"\boxed{(x+1)^2}", "x^2+2x+1", "symbolic"),
        (r"\boxed{43}", "42", "number"),
        (r"\boxed{\frac{1}{7}}", "42", "number"),
    ],
)
def test_the_rung_that_decided_is_named(judge, completion, gold, rung):
    verdict = judge(completion, gold)
    assert verdict.diagnostics["rung"] == rung
    assert verdict.stage is Stage.COMPARE


@pytest.mark.parametrize("completion", ["", "no claim 42", r"\boxed{}", r"\boxed{ }", r"\boxed{4"])
def test_no_answer_is_a_failure_at_the_extract_stage(judge, completion):
    verdict = judge(completion, "42")
    assert (verdict.status, verdict.score) == (Status.FAILED, 0.0)
    assert (verdict.failure, verdict.stage) == (FailureCategory.NO_ANSWER, Stage.EXTRACT)


@pytest.mark.parametrize("gold", ["", "  ", "$$", "nan", "None", "True", "\\text{ }", "word " * 20])
def test_an_unusable_ground_truth_abstains(judge, gold):
    verdict = judge(r"\boxed{7}", gold)
    assert (verdict.status, verdict.score) == (Status.ABSTAINED, None)
    assert verdict.failure is FailureCategory.BAD_GROUND_TRUTH


def test_an_empty_box_against_a_blank_ground_truth_is_no_answer(judge):
    assert judge(r"\boxed{ }", "").failure is FailureCategory.NO_ANSWER


@pytest.mark.parametrize("word", ["nan", "NaN", "None", "True", r"\text{None}", "null", "(nan)"])
def test_a_python_literal_never_earns_credit(judge, word):
    for gold in (word, "0", "1"):
        verdict = judge(rf"\boxed{{{word}}}", gold)
        assert (verdict.status, verdict.score) == (Status.FAILED, 0.0)


def test_any_of_several_ground_truths_matches(judge):
    assert judge(r"\boxed{0.5}", ["7", r"\frac12"]).score == 1
    assert judge(r"\boxed{0.6}", ["7", r"\frac12"]).score == 0
    assert judge(r"\boxed{7}", ["", "7"]).score == 1


@pytest.mark.parametrize("gold", [42, 42.0])
def test_a_number_is_a_ground_truth_too(judge, gold):
    assert judge(r"\boxed{42}", gold).score == 1
    assert judge(r"\boxed{42.001}", gold).score == 0


def test_a_small_float_ground_truth_is_read_as_a_number(judge):
    assert judge(r"\boxed{0.00001}", 1e-5).score == 1


@pytest.mark.parametrize(
    ("text", "gold"),
    [("-5", "-5"), ("−5", "-5"), ("$1,000", "1000"), ("5.0", "5"), ("5.", "5"), ("-0", "0")],
)
def test_signs_separators_and_trailing_points_are_part_of_a_number(judge, text, gold):
    for form in (rf"\boxed{{{text}}}", f"The answer is {text}"):
        assert judge(form, gold).score == 1, form
    assert judge(rf"\boxed{{{text}}}", gold.removeprefix("-") + "1").score == 0
    if gold == "-5":
        assert judge(rf"\boxed{{{text}}}", "5").score == 0


@pytest.mark.parametrize("answer", [[], True, False])
def test_a_ground_truth_that_names_no_answer_is_refused(answer):
    with pytest.raises(ValidationError):
        MathSympy.GroundTruth(answer=answer)


@pytest.mark.parametrize("answer", ["", "nan", "True", ["4"], 0, 1, 0.5])
def test_text_and_numbers_stay_ground_truths_as_they_are(answer):
    assert MathSympy.GroundTruth(answer=answer).answer == answer


def test_diagnostics_are_small_valid_text_without_the_ground_truth(judge):
    verdict = judge(r"\boxed{" + "9\ud800\x00" * 3000 + "}", "SECRET")
    assert len(verdict.diagnostics["answer"]) <= 200
    text = json.dumps(verdict.to_json(), ensure_ascii=False)
    text.encode("utf-8")
    assert "SECRET" not in text


def test_tolerance_is_absolute_and_never_applies_to_integers(judge):
    assert judge(r"\boxed{3.15}", "3.14").score == 0
    assert judge(r"\boxed{3.15}", "3.14", tolerance=0.02).score == 1
    assert judge(r"\boxed{3.17}", "3.14", tolerance=0.02).score == 0
    assert judge(r"\boxed{3.14}", r"\pi", tolerance=0.02).score == 1
    assert judge(r"\boxed{\frac{22}{7}}", r"\pi", tolerance=0.02).score == 1
    assert judge(r"\boxed{41.99}", "42", tolerance=0.02).score == 0
    assert judge(r"\boxed{\sqrt{1763}}", "42", tolerance=0.02).score == 0


def test_flexible_takes_the_last_number_only_without_a_box_or_a_claim(judge):
    flexible = {"extraction": "flexible"}
    assert judge("41 + 1 = 42", "42").failure is FailureCategory.NO_ANSWER
    assert judge("41 + 1 = 42.", "42", **flexible).score == 1
    assert judge("42 or 43", "42", **flexible).score == 0
    assert judge(r"\boxed{41} and then 42", "42", **flexible).score == 0
    assert judge("The answer is 41. See page 42", "42", **flexible).score == 0
    assert judge("The answer is not 42", "42", **flexible).score == 0
    assert judge("<think>42", "42", **flexible).score == 0


@pytest.mark.parametrize(
    "config", [{"tolerance": 0}, {"tolerance": -1}, {"extraction": "loose"}, {"precision": 3}]
)
def test_a_wrong_config_is_refused(config):
    with pytest.raises(ValidationError):
        MathSympy.Config(**config)


def test_every_config_field_is_described():
    assert all(field.description for field in MathSympy.Config.model_fields.values())


def test_plain_rows_never_import_sympy():
    code = """
import sys
from rlvr_core.api import VerifyBatch, VerifyRow
from rlvr_plugin_math_sympy import MathSympy
pairs = [("42", "42"), ("43", "42"), ("1/2", "0.5"), ("1,234", "1234"), ("(2,1)", "(1,2)"),
         ("50%", "0.5"), ("2 apples", "2"), ("2^{10}", "1024"), ("B", "(B)")]
rows = [VerifyRow(id="", prompt="", completion="\\\\boxed{%s}" % a,
                  ground_truth=MathSympy.GroundTruth(answer=g)) for a, g in pairs]
scores = [v.score for v in MathSympy(MathSympy.Config()).rlvr_verify(VerifyBatch(rows=rows))]
assert scores == [1, 0, 1, 1, 0, 1, 1, 1, 1], scores
assert "sympy" not in sys.modules and "latex2sympy2_extended" not in sys.modules
"""
    path = [entry for entry in sys.path if entry]
    environment = {"PYTHONPATH": ":".join(path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "words", ["no solution", "No real solutions", r"\text{no solution}", "无解"]
)
def test_no_solution_is_the_empty_set_and_nothing_else_is(judge, words):
    for gold in (r"\emptyset", r"\text{no solutions}", r"\{\}"):
        assert judge(rf"\boxed{{{words}}}", gold).score == 1.0
    for gold in ("0", r"\{0\}", "x=1"):
        assert judge(rf"\boxed{{{words}}}", gold).score == 0.0
