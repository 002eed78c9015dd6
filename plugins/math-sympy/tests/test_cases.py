"""Golden cases of this plugin, the shared cases, and real golds against themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parents[1]
SHARED = PLUGIN.parents[2] / "shared"
CASES = SHARED / "cases" / "math.jsonl"
DATA = SHARED / "data"

needs_cases = pytest.mark.skipif(not CASES.exists(), reason="the shared cases are not here")
needs_data = pytest.mark.skipif(not DATA.exists(), reason="the shared data are not here")


def rows_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def misjudged(rows, judge) -> list[tuple]:
    found = []
    for row in rows:
        verdict = judge(row["completion"], row["ground_truth"]["answer"])
        if verdict.score != row["expected"]:
            found.append(
                (row["id"], row["completion"][:80], row["ground_truth"], verdict.to_json())
            )
    return found


def test_every_golden_case_is_judged_as_expected(judge):
    rows = rows_of(PLUGIN / "golden.jsonl")
    assert sum(row["expected"] == 1 for row in rows) >= 20
    assert sum(row["expected"] == 0 for row in rows) >= 20
    assert misjudged(rows, judge) == []


@needs_cases
def test_every_shared_case_is_judged_as_expected(judge):
    assert misjudged(rows_of(CASES), judge) == []


def gsm8k_rows() -> list[tuple[str, str]]:
    rows = [*rows_of(DATA / "gsm8k_test.jsonl"), *rows_of(DATA / "gsm8k_train_2000.jsonl")]
    return [(row["answer"], row["answer"].split("####")[1].strip()) for row in rows]


@needs_data
def test_every_gsm8k_gold_boxed_is_accepted_against_itself(judge):
    rows = gsm8k_rows()
    assert len(rows) == 3319
    wrong = [gold for _, gold in rows if judge(f"So it is $\\boxed{{{gold}}}$.", gold).score != 1]
    assert wrong == []


@needs_data
def test_every_worked_gsm8k_answer_is_accepted_by_its_marker(judge):
    assert [gold for worked, gold in gsm8k_rows() if judge(worked, gold).score != 1] == []


@needs_data
def test_a_gsm8k_answer_that_is_off_by_one_is_rejected_without_sympy(judge):
    for _, gold in gsm8k_rows():
        near = int(gold.replace(",", "")) + 1
        verdict = judge(f"So it is $\\boxed{{{near}}}$.", gold)
        assert verdict.score == 0, gold
        assert verdict.diagnostics["rung"] == "number", gold


@needs_data
def test_every_math500_gold_is_accepted_against_itself(judge):
    golds = [row["answer"] for row in rows_of(DATA / "math500.jsonl")]
    assert len(golds) == 500
    assert [gold for gold in golds if judge(f"$\\boxed{{{gold}}}$", gold).score != 1] == []


@needs_data
def test_every_math500_gold_is_rejected_against_the_next_one_unless_they_are_equal(judge):
    golds = [row["answer"] for row in rows_of(DATA / "math500.jsonl")]
    neighbours = zip(golds, [*golds[1:], golds[0]], strict=True)
    accepted = [
        (gold, other)
        for gold, other in neighbours
        if gold != other and judge(f"$\\boxed{{{gold}}}$", other).score != 0
    ]
    assert accepted == [("5", "x=5")]
