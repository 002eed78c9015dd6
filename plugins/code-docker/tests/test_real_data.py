"""HumanEval and MBPP: their own solutions pass, other tasks' solutions do not."""

from __future__ import annotations

import gzip
import json

import pytest


def fenced(code):
    return f"```python\n{code}\n```"


@pytest.fixture(scope="module")
def human_eval(shared_folder):
    with gzip.open(shared_folder / "data" / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as file:
        tasks = [json.loads(line) for line in file]
    return [
        (
            task["prompt"] + task["canonical_solution"],
            {
                "tests": [task["test"]],
                "entry_point": task["entry_point"],
                "context": task["prompt"],
            },
        )
        for task in tasks
    ]


@pytest.fixture(scope="module")
def mbpp(shared_folder):
    lines = (shared_folder / "data" / "mbpp.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        (task["code"], {"tests": task["test_list"], "setup": task["test_setup_code"]})
        for task in map(json.loads, lines)
    ]


def failures(judge, tasks):
    found = []
    for number, (code, truth) in enumerate(tasks):
        verdict = judge(fenced(code), truth, test_time_limit_s=8)
        if verdict.score != 1:
            found.append((number, verdict.to_json()))
    return found


def test_some_solutions_pass(judge, human_eval, mbpp):
    assert failures(judge, human_eval[::16]) == []
    assert failures(judge, mbpp[::100]) == []


def test_some_solutions_of_the_next_task_fail(judge, human_eval):
    for (_, truth), (code, _) in zip(human_eval[::20], human_eval[1::20], strict=False):
        assert judge(fenced(code), truth).status.value == "failed"


@pytest.mark.slow
def test_all_solutions_pass(judge, human_eval, mbpp):
    assert (len(human_eval), len(mbpp)) == (164, 974)
    assert failures(judge, human_eval) == []
    assert failures(judge, mbpp) == []


@pytest.mark.slow
def test_hardly_any_solution_of_the_next_task_passes(judge, human_eval):
    truths = [truth for _, truth in human_eval]
    codes = [code for code, _ in human_eval]
    scores = [
        judge(fenced(code), truth).score
        for truth, code in zip(truths, codes[1:] + codes[:1], strict=True)
    ]
    assert scores.count(1.0) == 0
    assert sum(scores) / len(scores) < 0.05
