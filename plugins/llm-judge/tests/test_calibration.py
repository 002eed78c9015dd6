"""Calibration: what is measured, what is written down, and what it holds for."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError
from rlvr_plugin_llm_judge import LlmJudge
from rlvr_plugin_llm_judge.calibration import Agreement, read_calibration, unproven
from rlvr_plugin_llm_judge.command import main
from rlvr_plugin_llm_judge.figures import counted, rows_to_prove, wilson
from rlvr_plugin_llm_judge.rubric import CORRECT, Criterion

from rlvr_core.api import Status

RUBRIC = [{"name": "correct", "text": "It is right."}, {"name": "clear", "text": "c", "levels": 3}]


def labelled(right, wrong, mistaken=0):
    """Return labelled rows, of which the honest judge gets `mistaken` wrong."""
    truth = {"reference": "42"}
    rows = [(f"Row {n}: it is 42.", 1) for n in range(right)]
    rows += [(f"Row {n}: it is {43 + n}.", 0) for n in range(wrong)]
    rows += [(f"Mistaken {n}: it is 42.", 0) for n in range(mistaken)]
    return [
        {"prompt": "6 * 7?", "completion": text, "ground_truth": truth, "expected": expected}
        for text, expected in rows
    ]


@pytest.fixture
def calibrate(tmp_path, capsys):
    """Return a function that runs the command: (exit code, output, path of the calibration)."""

    def run(config, rows, *arguments):
        (tmp_path / "config.yaml").write_text(json.dumps(config), "utf-8")
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        (tmp_path / "labelled.jsonl").write_text("\n".join(lines), "utf-8")
        out = tmp_path / "calibration.json"
        files = [str(tmp_path / "config.yaml"), str(tmp_path / "labelled.jsonl")]
        code = main(["calibrate", *files, "--out", str(out), *arguments])
        printed = capsys.readouterr()
        return code, printed.out + printed.err, out

    return run


def test_a_judge_that_agrees_on_enough_rows_is_proven(serve, settings, calibrate):
    code, printed, out = calibrate(settings(serve()), labelled(30, 30, 1))
    assert code == 0, printed
    assert "agreement: 60 of 61, 98.4% (95 % interval" in printed
    assert "Cohen's kappa: 0.97" in printed
    assert "It may train" in printed
    made = read_calibration(str(out))
    assert made.counts.model_dump() == {
        "passed_right": 30, "passed_wrong": 1, "failed_right": 30, "failed_wrong": 0,
    }  # fmt: skip
    assert made.judges[0].reported == "rules-1"
    assert len(made.wrong) == 30
    assert unproven(made, [CORRECT]) == []


def test_agreement_that_the_rows_do_not_prove_is_told_from_too_little(serve, settings, calibrate):
    code, printed, _ = calibrate(settings(serve()), labelled(10, 10))
    assert (code, "about 35 labels at this rate" in printed) == (5, True), printed
    code, printed, out = calibrate(settings(serve()), labelled(30, 30, 10))
    assert code == 1
    assert "It may not train: its verdict agrees with 60 of 70 labels" in printed
    assert unproven(read_calibration(str(out)), [CORRECT])


def test_a_judge_that_fails_everything_is_not_proven_by_rows_that_are_mostly_wrong(
    serve, settings, calibrate
):
    strict = serve(lambda asked: asked.verdict(correct=False))
    code, printed, _ = calibrate(settings(strict), labelled(3, 97))
    assert "97 of 100" in printed
    assert "only 3 of 100 labelled rows have the rarer label" in printed
    assert code != 0


def test_a_judge_that_never_gives_a_verdict_is_written_down_as_such(serve, settings, calibrate):
    code, printed, out = calibrate(settings(serve(lambda asked: "hm")), labelled(2, 2))
    assert code == 4
    assert "0 abstained, 4 errors" in printed
    assert "asked twice" in printed
    assert unproven(read_calibration(str(out)), [CORRECT])


def test_every_criterion_of_a_rubric_must_be_proven(serve, settings, calibrate):
    def rule(asked):
        is_right = asked.blocks["answer"].endswith("42.")
        return asked.verdict(correct=is_right, clear=3 if is_right else 0)

    rows = labelled(40, 40)
    for row in rows:
        row["criteria"] = {"correct": bool(row["expected"]), "clear": 3 * row["expected"]}
    config = settings(serve(rule), criteria=RUBRIC)
    assert calibrate(config, rows)[0] == 0
    for row in rows[:20]:
        row["criteria"]["clear"] = 2
    code, printed, _ = calibrate(config, rows)
    assert (code, "criterion 'clear' agrees with 60 of 80" in printed) == (1, True)
    for row in rows:
        del row["criteria"]["clear"]
    code, printed, _ = calibrate(config, rows)
    assert (code, "criterion 'clear' was compared with no label" in printed) == (5, True)


def test_the_judge_of_a_stack_is_found_by_its_plugin_or_name(serve, settings, calibrate):
    config = {**settings(serve()), "timeout_s": 30, "calibration": "not-there-yet.json"}
    stack = {"model": "m", "verifiers": ["exact-match", {"llm_judge": config}]}
    assert calibrate(stack, labelled(25, 25))[0] == 0
    stack["verifiers"].append({"second": {**config, "plugin": "llm-judge"}})
    code, printed, _ = calibrate(stack, labelled(25, 25))
    assert (code, "it has llm_judge, second" in printed) == (2, True)
    assert calibrate(stack, labelled(25, 25), "--verifier", "second")[0] == 0


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("{", "not JSON"),
        ({"completion": "x"}, "expected: Field required"),
        ({"completion": "x", "expected": 2}, "expected: "),
        (
            {"completion": "x", "expected": 1, "ground_truth": {"answer": "x"}},
            "ground_truth.answer",
        ),
        ({"completion": "x", "expected": 1, "criteria": {"other": 1}}, "no such criterion"),
        ({"completion": "x", "expected": 1, "criteria": {"correct": 2}}, "true or false"),
    ],
)
def test_labelled_rows_that_cannot_be_used_are_named_by_line(serve, settings, calibrate, row, said):
    code, printed, out = calibrate(settings(serve()), [*labelled(1, 1), row])
    assert code == 2
    assert "line 3" in printed
    assert said in printed
    assert not out.exists()


@pytest.mark.parametrize("text", ["- a", "judges: []", "judges: [", "verifiers: [exact-match]", ""])
def test_settings_of_no_judge_are_refused(tmp_path, capsys, text):
    (tmp_path / "config.yaml").write_text(text, "utf-8")
    (tmp_path / "rows.jsonl").write_text("", "utf-8")
    files = [str(tmp_path / "config.yaml"), str(tmp_path / "rows.jsonl")]
    assert main(["calibrate", *files, "--out", str(tmp_path / "out.json")]) == 2
    assert "error[RLVR-S10" in capsys.readouterr().err


def test_an_endpoint_that_answers_as_several_models_cannot_be_calibrated(
    serve, settings, calibrate, honest_rule
):
    one = serve()

    def rule(asked):
        one.model = f"rules-{asked.number % 2}"
        return honest_rule(asked)

    config = settings(one)
    one.rule = rule
    code, printed, _ = calibrate(config, labelled(4, 4), "--concurrency", "1")
    assert (code, "several models" in printed) == (2, True)


def changed_prompt(config):
    config["criteria"] = [{"name": "correct", "text": "Something else."}]


def changed_model(config):
    config["judges"][0]["model"] = "another"


def changed_length(config):
    config["judges"][0]["max_tokens"] = 100


def changed_mark(config):
    config["pass_mark"] = 0.5


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (changed_prompt, "another prompt or rubric"),
        (changed_model, "it was made for rules-1 at"),
        (changed_length, "other settings"),
        (changed_mark, "other settings"),
    ],
)
def test_a_calibration_of_another_judge_is_refused(serve, settings, calibrate, change, reason):
    config = settings(serve())
    _, _, out = calibrate(config, labelled(25, 25))
    config.update(calibration=str(out), deadline_s=3, canary_every=4)
    assert LlmJudge.Config.model_validate(config).calibrated.counts.total == 50
    change(config)
    with pytest.raises(ValidationError, match=reason):
        LlmJudge.Config.model_validate(config)


@pytest.mark.parametrize("content", ["", "{}", "[]", "{", '{"schema_version": 2}', "\x00"])
def test_a_file_that_is_no_calibration_is_refused(tmp_path, content):
    path = tmp_path / "calibration.json"
    path.write_text(content, "utf-8")
    with pytest.raises(ValueError, match="is no calibration"):
        read_calibration(str(path))


def test_another_model_behind_the_same_name_is_noticed(serve, settings, calibrate, judge):
    one = serve()
    config = settings(one)
    _, _, out = calibrate(config, labelled(25, 25))
    config["calibration"] = str(out)
    assert judge("It is 42.", config).status is Status.PASSED
    one.model = "rules-2"
    verdict = judge("It is 42.", config)
    assert verdict.status is Status.ERROR
    assert "answers as 'rules-2', and was calibrated as 'rules-1'" in verdict.diagnostics["message"]


def test_another_calibration_makes_another_version_of_the_verifier(serve, settings, calibrate):
    one = settings(serve())
    found = [LlmJudge.version_parts(LlmJudge.Config.model_validate(one))]
    for wrong in (30, 31):
        _, _, out = calibrate(one, labelled(30, wrong))
        config = LlmJudge.Config.model_validate({**one, "calibration": str(out)})
        found.append(LlmJudge.version_parts(config))
    assert found[0] is None
    assert len(set(found)) == 3


def test_the_interval_is_the_published_one():
    assert wilson(80, 100) == pytest.approx((0.7112, 0.8666), abs=5e-5)
    assert wilson(95, 100) == pytest.approx((0.8882, 0.9785), abs=5e-5)
    assert wilson(96, 100)[0] == pytest.approx(0.902, abs=5e-4)
    assert wilson(0, 0) == (0.0, 1.0)
    assert rows_to_prove(1.0) == 35
    assert rows_to_prove(0.9) is None


def test_kappa_is_agreement_beyond_chance():
    table = [(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15
    assert counted(table).kappa == pytest.approx(0.4)
    assert counted([(True, True)] * 9).kappa is None
    assert counted([]).kappa is None


def test_a_file_in_which_only_the_shares_were_raised_proves_nothing(serve, settings, calibrate):
    _, _, out = calibrate(settings(serve()), labelled(10, 10))
    made = read_calibration(str(out))
    two = [CORRECT, Criterion(name="more", text="More.")]
    raised = made.model_copy(update={"criteria": {"more": Agreement(agreeing=9, total=9)}})
    assert len(unproven(raised, two)) == 3
