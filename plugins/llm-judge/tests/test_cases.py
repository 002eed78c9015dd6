"""Golden cases: some need no judge, the others are labels to calibrate a judge with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rlvr_plugin_llm_judge.labels import read_labelled
from rlvr_plugin_llm_judge.rubric import CORRECT

GOLDEN = Path(__file__).parents[1] / "golden.jsonl"
ROWS = [json.loads(line) for line in GOLDEN.read_text("utf-8").splitlines()]


def test_the_cases_are_labelled_rows_of_both_kinds():
    rows = read_labelled(GOLDEN, [CORRECT])
    assert sum(row.expected == 1 for row in rows) >= 20
    assert sum(row.expected == 0 for row in rows) >= 20
    assert len({row["id"] for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_gated_cases_ask_no_judge_and_all_others_come_back_as_the_judge_says(
    serve, settings, judge, row
):
    def knowing(asked):
        is_row = asked.blocks["answer"] != "" and row["expected"] == 1
        return asked.verdict(correct=is_row and asked.blocks["task"] == row["prompt"])

    one = serve(knowing)
    verdict = judge(row["completion"], settings(one), row["ground_truth"], row["prompt"])
    assert verdict.score == row["expected"], row["why"]
    assert (one.asked == []) == (row["kind"] == "gate")
