"""Tasks of the real library ``verifiers``, both ways. Run by ``make test-adapters``."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest
import verifiers.v1 as vf

import rlvr_core
from rlvr_core.adapters.verifiers_library import load_taskset
from rlvr_core.adapters.verifiers_rows import make_verifiers
from rlvr_core.adapters.verifiers_task import VerifiersTask
from rlvr_core.api import DataError, StackError
from rlvr_core.cli.main import main

pytestmark = pytest.mark.adapters

# The taskset is found as an installed one is; workers look for modules where this process does.
sys.path.insert(0, str(Path(__file__).parent / "tasksets"))

SIZES = {"train": 20, "dev": 5, "gate": 5}
TASKSET = "rlvr_made_addition"
WIDE = {"taskset": TASKSET, "score_range": [0, 1.5]}


def rows_of(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    paths = make_verifiers(tmp_path_factory.mktemp("data"), TASKSET, SIZES)
    return {split: rows_of(path) for split, path in paths.items()}


def judge(completions, data, **config):
    given = [{"completion": text, "ground_truth": {"data": data}} for text in completions]
    return rlvr_core.verify("verifiers", given, config={**WIDE, **config}, workers=1)


def test_rows_hold_the_prompt_and_the_task(rows):
    assert {split: len(found) for split, found in rows.items()} == SIZES
    row = rows["train"][0]
    data = row["verifier"]["data"]
    assert row["prompt"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": data["prompt"]},
    ]
    assert row["verifier"]["type"] == "verifiers"
    questions = [one["prompt"][1]["content"] for found in rows.values() for one in found]
    assert len(set(questions)) == 30


def test_the_rewards_of_the_task_decide(rows):
    data = rows["train"][0]["verifier"]["data"]
    right, wrong, long = judge([data["answer"], "-1", "twelve or so"], data)
    assert [one.score for one in (right, wrong, long)] == [1.5, 0.5, 0.0]
    assert [one.status for one in (right, wrong, long)] == ["passed", "failed", "failed"]
    assert right.diagnostics["rewards"] == {"exact": 1.0, "short": 0.5}


def test_a_reward_that_raises_is_an_error_and_no_zero(rows):
    [verdict] = judge(["stumble"], rows["train"][0]["verifier"]["data"])
    assert (verdict.status, verdict.score) == ("error", None)
    assert "the reward stumbled" in verdict.diagnostics["message"]


def test_a_pass_mark_may_be_lower(rows):
    [verdict] = judge(["-1"], rows["train"][0]["verifier"]["data"], pass_mark=0.5)
    assert verdict.status == "passed"


@pytest.mark.parametrize(
    ("needs", "said"),
    [
        ("container", "it needs a container"),
        ("runtime", "its reward looks looks into the runtime"),
        ("setup", "it prepares the runtime of the model (setup)"),
    ],
)
def test_tasks_that_a_reply_does_not_decide_are_refused(tmp_path, needs, said):
    with pytest.raises(StackError) as caught:
        make_verifiers(tmp_path, TASKSET, SIZES, {"needs": needs})
    assert caught.value.code == "RLVR-S106"
    assert said in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_an_unknown_taskset_and_unknown_settings_are_refused(tmp_path):
    for taskset, settings in (("no_such_taskset_at_all", {}), (TASKSET, {"tusks": 3})):
        with pytest.raises(StackError, match="cannot be used"):
            make_verifiers(tmp_path, taskset, SIZES, settings)
    with pytest.raises(StackError) as caught:
        rlvr_core.verify("verifiers", [], config={"taskset": "no_such_taskset_at_all"})
    assert caught.value.code == "RLVR-S102"


def test_the_version_is_that_of_library_and_taskset():
    config = VerifiersTask.Config(taskset=TASKSET)
    assert VerifiersTask.version_parts(config).keys() == {"verifiers"}


def test_the_command_makes_and_checks_data(tmp_path, capsys):
    out = str(tmp_path / "data")
    sizes = ["--train", "8", "--dev", "2", "--gate", "2"]
    with pytest.raises(SystemExit) as left:
        main(["data", "make", f"verifiers:{TASKSET}", "--out", out, *sizes, "--set", "tasks=100"])
    assert left.value.code == 0
    assert "train" in capsys.readouterr().out
    with pytest.raises(SystemExit) as left:
        main(["data", "check", f"{out}/train.jsonl", f"{out}/dev.jsonl"])
    assert left.value.code == 0


def trace_of(task, reply):
    node = vf.MessageNode(message={"role": "assistant", "content": reply}, sampled=True)
    return vf.Trace(
        task=vf.TraceTask(type="AdditionTask", data=task.data),
        agent=vf.AgentInfo(config=vf.AgentConfig()),
        nodes=[node],
    )


@pytest.fixture
def plugged(tmp_path):
    """A taskset whose reward is a verifier of ours, plugged as the library documents it."""

    def make(**options):
        path = tmp_path / f"hooks_{len(options)}.py"
        path.write_text(
            "from rlvr_core.adapters import verifiers_reward\n"
            f"reward = verifiers_reward('exact-match', workers=1, **{options!r})\n",
            "utf-8",
        )
        rewards = {"exact": {"fn": f"{path}:reward", "weight": 2.0}, "short": {"weight": 0.0}}
        taskset = load_taskset(TASKSET, {"task": {"rewards": rewards}})
        return next(iter(taskset))

    return make


def test_a_verifier_is_a_reward_of_a_task(plugged):
    task = plugged()
    for reply, score in (("1", 1.0), ("2", 0.0)):
        trace = trace_of(task, reply)
        asyncio.run(task.score(trace))
        assert trace.rewards["exact"].score == score
        assert trace.reward == 2 * score


def test_a_field_may_have_another_name_and_a_missing_one_is_an_error_of_the_task(plugged):
    task = plugged(columns={"answer": "prompt"})
    trace = trace_of(task, "What is 0 + 1?")
    asyncio.run(task.score(trace))
    assert trace.rewards["exact"].score == 1.0
    bad = plugged(columns={"answer": "solution"}, timeout_s=5.0)
    with pytest.raises(vf.TaskError) as caught:
        asyncio.run(bad.score(trace_of(bad, "1")))
    assert isinstance(caught.value.__cause__, DataError)


def test_the_example_of_the_page_makes_a_reward():
    page = "use-verifiers-in-your-trainer.md"
    text = (Path(__file__).parents[2] / "docs" / "how-to" / page).read_text("utf-8")
    [code] = [
        block
        for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        if "verifiers_reward" in block
    ]
    found = {}
    exec(compile(code, page, "exec"), found)
    assert asyncio.iscoroutinefunction(found["reward"])
