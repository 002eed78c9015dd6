"""The verifier `steps` keeps a run from starting on references that nothing can align with."""

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("rlvr_plugin_steps")

from stacks import write_stack

from rlvr_core.api.errors import StackError
from rlvr_core.train.prepare import prepare
from rlvr_core.train.run import train

TWO_STEPS = {"steps": ["3 * 4 = 12", "12 - 2 = 10"], "answer": 10}
ONE_STEP = {"steps": ["3 * 4 = 12"], "answer": 12}


def stack_of(folder, model, truths):
    rows = {
        split: [
            {"prompt": f"{split} {number}", "verifier": {"type": "steps", **truth}}
            for number, truth in enumerate(truths)
        ]
        for split in ("train", "dev")
    }
    return write_stack(folder, model, rows, ["steps"], train={"steps": 1})


def test_a_run_does_not_start_on_references_without_structure(tmp_path, tiny_model):
    stack = stack_of(tmp_path / "stack", tiny_model, [TWO_STEPS] * 2 + [ONE_STEP] * 2)

    with pytest.raises(StackError) as caught:
        train(prepare(stack), tmp_path / "run")

    assert caught.value.code == "RLVR-S107"
    assert "2 of 4 references can be aligned with (50%" in caught.value.cause
    assert not (tmp_path / "run" / "metrics.jsonl").exists()


def test_a_run_on_references_with_structure_says_how_many_have_it(tmp_path, tiny_model):
    stack = stack_of(tmp_path / "stack", tiny_model, [TWO_STEPS] * 3 + [ONE_STEP])

    outcome = train(prepare(stack), tmp_path / "run")

    assert outcome.status == "finished"
    events = map(json.loads, (tmp_path / "run" / "events.jsonl").read_text("utf-8").splitlines())
    [audit] = [event for event in events if event["kind"] == "prompt-audit"]
    assert audit["severity"] == "warn"
    assert "3 of 4 references" in audit["reason"]
