"""References that cannot be aligned with are found before training."""

from __future__ import annotations

import json

import pytest
from rlvr_plugin_steps import Steps, measure_coverage
from rlvr_plugin_steps.cli import main
from rlvr_plugin_steps.coverage import fault_of
from rlvr_plugin_steps.truth import Truth

from rlvr_core.api import Row, Severity

GOOD = {"steps": ["The farm sells 14 * 6 = 84.", "It keeps 84 / 4 = 21."], "answer": 21}
ONE_STEP = {"steps": ["The farm sells 14 * 6 = 84."], "answer": 84}
ALL_ALIKE = {"steps": ["We look again."] * 4, "answer": "yes"}
ONE_THAT_WEIGHS = {**GOOD, "weights": [1, 0]}
STEPS_IN_STEPS = {"steps": ["Step 1: do it. Step 2: do that.", "Go on to the end."], "answer": 3}


@pytest.mark.parametrize(
    ("truth", "fault"),
    [
        (GOOD, None),
        (ONE_STEP, "one step"),
        (STEPS_IN_STEPS, "not itself"),
        (ALL_ALIKE, "order does not matter"),
        (ONE_THAT_WEIGHS, "half is as good"),
    ],
)
def test_what_makes_a_reference_useless_is_named(truth, fault):
    assert fault_of(Truth.model_validate(truth)) == fault


def rows(good: int, bad: int, verifier: str = "steps") -> list[Row]:
    truths = [GOOD] * good + [ONE_STEP] * bad
    return [
        Row(id=str(number), prompt="?", verifier=verifier, ground_truth=truth)
        for number, truth in enumerate(truths)
    ]


def test_training_rows_below_the_least_coverage_are_refused():
    (finding,) = Steps(name="steps").rlvr_audit_prompts(rows(5, 5))
    assert finding.severity is Severity.REFUSE
    assert "5 of 10 references" in finding.message
    assert "5 one step" in finding.message
    assert [row.id for row in finding.rows] == ["5", "6", "7", "8", "9"]


def test_training_rows_with_enough_coverage_are_not():
    (finding,) = Steps(name="steps").rlvr_audit_prompts(rows(6, 4))
    assert finding.severity is Severity.WARN
    assert Steps(name="steps").rlvr_audit_prompts(rows(6, 0)) == []


def test_rows_of_other_verifiers_are_not_looked_at():
    assert Steps(name="mine").rlvr_audit_prompts(rows(0, 3, "other")) == []
    mixed = [*rows(2, 1, "mine"), *rows(0, 9, "other")]
    (finding,) = Steps(name="mine").rlvr_audit_prompts(mixed)
    assert "2 of 3" in finding.message


def test_coverage_counts_how_steps_can_be_checked():
    truth = {"steps": ["All is well.", "There are 5 birds.", "2 + 3 = 5", "3 * 5 = 15"],
             "answer": 15}  # fmt: skip
    coverage = measure_coverage([Truth.model_validate(truth)])
    assert (coverage.checkable, coverage.numeric, coverage.median_steps) == (0.5, 0.25, 4)


def written(folder, truths) -> str:
    file = folder / "rows.jsonl"
    lines = [
        json.dumps({"prompt": "?", "verifier": {"type": "steps", **truth}}) for truth in truths
    ]
    file.write_text("\n".join(lines) + "\n", "utf-8")
    return str(file)


def test_the_report_is_a_table_or_json_and_its_exit_code_is_the_verdict(tmp_path, capsys):
    file = written(tmp_path, [GOOD] * 3 + [ONE_STEP])
    assert main(["coverage", file]) == 0
    table = capsys.readouterr().out
    assert "75.0%" in table
    assert "fewer than two steps" in table
    assert main(["coverage", file, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "rows": 4, "usable": 3, "share": 0.75, "least": 0.6, "is_enough": True,
        "faults": {"one step": 1}, "median_steps": 2.0, "checkable": 1.0, "numeric": 0.0,
    }  # fmt: skip
    assert main(["coverage", written(tmp_path, [GOOD, ONE_STEP])]) == 1
    assert "too few" in capsys.readouterr().out


def test_rows_that_cannot_be_read_are_named_by_line(tmp_path, capsys):
    file = tmp_path / "rows.jsonl"
    good = {"prompt": "?", "verifier": {"type": "steps", **GOOD}}
    bad = {"prompt": "?", "verifier": {"type": "steps", "steps": [], "answer": 1}}
    lines = [json.dumps(good), "{", "[]", json.dumps(bad)]
    file.write_text("\n".join(lines), "utf-8")
    assert main(["coverage", str(file)]) == 2
    said = capsys.readouterr().err
    assert [f"line {number}:" in said for number in (1, 2, 3, 4)] == [False, True, True, True]
    assert main(["coverage", str(tmp_path / "none")]) == 2
    assert main(["coverage", written(tmp_path, [GOOD]), "--type", "other"]) == 2
