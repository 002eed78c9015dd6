from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rlvr_core.api.errors import StackError
from rlvr_core.config.load import load_stack

from .conftest import STACK

Write = Callable[[str], Path]


def problems(path: Path, *overrides: str) -> list[str]:
    """Return the lines of the error that loading raises."""
    with pytest.raises(StackError) as caught:
        load_stack(path, overrides)
    assert caught.value.code == "RLVR-S102"
    lines = caught.value.message.split("\n  ")
    return lines[1:] if len(lines) > 1 else lines


def changed(before: str, after: str) -> str:
    assert before in STACK
    return STACK.replace(before, after)


def test_a_stack_loads(write: Write) -> None:
    stack = load_stack(write(STACK)).stack

    assert stack.train.learning_rate == 1e-6
    assert stack.samplers == []
    assert [(entry.name, entry.plugin, entry.weight) for entry in stack.verifiers] == [
        ("exact-match", "exact-match", 1.0),
        ("other", "exact-match", 0.5),
    ]
    assert stack.verifiers[1].config == {"fold_case": True}


def test_parts_are_located_by_file_line_and_column(write: Write) -> None:
    file = load_stack(write(STACK), ["train.steps=4"])

    assert file.locate(("model",)) == "stack.yaml:1:8"
    assert file.locate(("data", "dev", "path")) == "stack.yaml:4:15"
    assert file.locate(("verifiers", 0)) == "stack.yaml:6:5"
    assert file.locate(("verifiers", 1, "weight")) == "stack.yaml:7:42"
    assert file.locate(("verifiers", 1, "config", "fold_case")) == "stack.yaml:8:18"
    assert file.locate(("verifiers", 1, "config", "absent")) == "stack.yaml:7:5"
    assert file.locate(("train", "warmup_steps")) == "stack.yaml:12:1"
    assert file.locate(("evaluate", "every")) == "stack.yaml:1:1"
    assert file.locate(("train", "steps")) == "command line: train.steps"


def test_all_problems_are_reported_at_once_in_the_order_of_the_file(write: Write) -> None:
    text = changed("model: smollm2", "modl: smollm2")
    text = text.replace("weight: 0.5", "weight: '0.5'").replace("  steps: 10", "  steps: 1.5")

    found = problems(write(text), "train.warmup=3")

    assert [line.partition(": ")[0] for line in found] == [
        "stack.yaml:1:1",
        "stack.yaml:1:1",
        "stack.yaml:7:42",
        "stack.yaml:13:10",
        "command line",
    ]


WORDING = {
    ("model: smollm2", "model: smollm2\nmodl: x"): (
        "stack.yaml:2:1: modl: unknown key; did you mean 'model'? Allowed: schema_version, model"
    ),
    ("  steps: 10\n", ""): "stack.yaml:12:1: train.steps: is required, and missing",
    ("steps: 10", "steps: ten"): (
        "stack.yaml:13:10: train.steps: must be a whole number, got 'ten'"
    ),
    ("steps: 10", "steps: '10'"): "got '10'; remove the quotes",
    ("steps: 10", "steps: true"): "must be a whole number, got true",
    ("steps: 10", "steps: 0"): "train.steps: must be at least 1, got 0",
    ("rate: 1e-6", "rate: 0"): "train.learning_rate: must be greater than 0, got 0",
    ("rate: 1e-6", "rate: .inf"): "train.learning_rate: must be a finite number",
    ("rate: 1e-6", "rate: 1e-6\n  precision: bf61"): (
        "train.precision: must be 'auto', 'bf16' or 'fp32' (did you mean 'bf16'?), got 'bf61'"
    ),
    ("model: smollm2", "model: 3"): "model: must be a string, got 3; put it in quotes",
    ("model: smollm2", "model: ''"): "model: must not be empty",
    ("model: smollm2", 'model: "a\\0b"'): "model: must not hold a NUL character",
    ("model: smollm2", "model: x\nrollout:"): (
        "rollout: must be a mapping of keys to values, got nothing"
    ),
    ("  - grpo", "  - grpo: 3"): "advantage[0]: the settings of 'grpo' must be a mapping",
    ("  - grpo", "  - grpo:\n    ddof: 0"): "settings must be indented below the plugin name",
    ("  - grpo", "  - [grpo]"): "advantage[0]: must be a plugin name",
    ("  - grpo", "  - .grpo"): "advantage[0].name: must match the pattern",
    ("model: smollm2", "model: x\nschema_version: 2"): "schema_version: must be 1, got 2",
}


@pytest.mark.parametrize("change", WORDING, ids=lambda change: change[1][:30])
def test_problems_are_said_in_plain_words(write: Write, change: tuple[str, str]) -> None:
    [line] = problems(write(changed(*change)))

    assert WORDING[change] in line


def test_a_missing_list_of_verifiers_is_said(write: Write) -> None:
    [line] = problems(
        write(STACK.partition("verifiers:")[0] + "train: {steps: 1, learning_rate: 1e-3}")
    )

    assert "verifiers: is required, and missing" in line


def test_an_empty_list_of_verifiers_is_said(write: Write) -> None:
    [line] = problems(write(STACK), "verifiers=[]")

    assert line == "command line: verifiers: must hold at least 1 item"


RULES = {
    ("model: smollm2", "model: x\nevaluate: {splits: [dev, transfer]}"): (
        "stack.yaml:2:26: evaluate.splits[1]: there is no data.transfer"
    ),
    ("model: smollm2", "model: x\nevaluate: {splits: [dev, dev]}"): "'dev' is listed twice",
    ("model: smollm2", "model: x\nevaluate: {also: [othr]}"): (
        "evaluate.also[0]: no verifier of the stack is named 'othr'; did you mean 'other'?"
    ),
    ("model: smollm2", "model: x\nevaluate: {also: [other, other]}"): "'other' is listed twice",
    ("rate: 1e-6", "rate: 1e-6\n  mini_batches: 9"): (
        "train.mini_batches: must be at most rollout.prompts_per_step (8), got 9"
    ),
    ("dev: {path: dev.jsonl}", "dev: {path: train.jsonl}"): (
        "stack.yaml:4:15: data.dev.path: reads the same rows as data.train"
    ),
    ("dev: {path: dev.jsonl}", "dev: {path: ./x/../train.jsonl}"): (
        "stack.yaml:4:15: data.dev.path: reads the same rows as data.train"
    ),
    ("  - grpo", "  - other: {plugin: grpo}"): (
        "stack.yaml:11:5: advantage[0].name: the name 'other' is taken by verifiers[1]"
    ),
    ("model: smollm2", "model: x\ncontrol: exact-match"): (
        "control.name: the name 'exact-match' is taken by verifiers[0]"
    ),
    ("  - grpo", "  - grpo: {timeout_s: 3}"): (
        "stack.yaml:11:12: advantage[0].timeout_s: only has a meaning for a verifier"
    ),
}


@pytest.mark.parametrize("change", RULES, ids=lambda change: change[1][:30])
def test_rules_that_span_keys_are_checked(write: Write, change: tuple[str, str]) -> None:
    [line] = problems(write(changed(*change)))

    assert RULES[change] in line


def test_weights_that_are_all_zero_are_refused(write: Write) -> None:
    [line] = problems(write(STACK), "verifiers.exact-match.weight=0", "verifiers.other.weight=0")

    assert "every reward is 0" in line


def test_rules_are_checked_beside_problems_of_single_keys(write: Write) -> None:
    text = changed("weight: 0.5", "weight: x").replace("dev.jsonl", "train.jsonl")

    assert len(problems(write(text), "train.mini_batches=99")) == 3


def test_the_default_split_is_dropped_without_dev_data(write: Write) -> None:
    path = write(changed("  dev: {path: dev.jsonl}\n", ""))

    assert load_stack(path).stack.evaluate.splits == []


def test_overrides_reach_every_kind_of_key(write: Write) -> None:
    stack = load_stack(
        write(STACK),
        [
            "train.steps=3",
            "evaluate.every=2",
            "evaluate.splits=[dev]",
            "evaluate.splits[0]=transfer",
            "data.transfer.path=t.jsonl",
            "verifiers.exact-match.marker=no",
            "verifiers.other.fold_case=false",
            "verifiers[1].weight=2",
            "advantage.0.ddof=0",
            "control=control-random",
            "control.rate=0.25",
            "monitors=[dead-groups]",
        ],
    ).stack

    assert (stack.train.steps, stack.evaluate.every, stack.evaluate.splits) == (3, 2, ["transfer"])
    assert stack.verifiers[0].config == {"marker": "no"}
    assert stack.verifiers[1].config == {"fold_case": False}
    assert stack.verifiers[1].weight == 2
    assert stack.advantage[0].config == {"ddof": 0}
    assert stack.control is not None
    assert stack.control.config == {"rate": 0.25}
    assert [entry.name for entry in stack.monitors] == ["dead-groups"]


BAD_OVERRIDES = {
    "train.stps=3": "command line: train.stps: unknown key; did you mean 'steps'?",
    "trian.steps=3": "command line: trian.steps: unknown key; did you mean 'train'?",
    "verifiers.othr.weight=1": (
        "command line: verifiers.othr.weight: verifiers has no plugin 'othr'; did you mean 'other'?"
    ),
    "verifiers[7].weight=1": "verifiers has no plugin '7'. In the stack: ",
    "verifiers.other.weight=heavy": (
        "command line: verifiers.other.weight: must be a number, got 'heavy'"
    ),
    "train.steps.x=1": "command line: train.steps.x: cannot be set: train.steps is not a mapping",
    "control.rate=1": "cannot be set: the stack has no control",
}


@pytest.mark.parametrize("override", BAD_OVERRIDES)
def test_an_override_that_cannot_be_is_said(write: Write, override: str) -> None:
    [line] = problems(write(STACK), override)

    assert BAD_OVERRIDES[override] in line


def test_an_override_without_an_equals_sign_is_a_usage_error(write: Write) -> None:
    with pytest.raises(StackError, match=r"train\.steps") as caught:
        load_stack(write(STACK), ["train.steps"])

    assert caught.value.code == "RLVR-S106"


def test_files_that_cannot_be_read_are_named(write: Write) -> None:
    path = write(STACK)
    path.write_bytes(b"model: \xff\xfe")

    for bad, said in (
        (path, "not UTF-8"),
        (Path("none.yaml"), "there is no file"),
        (Path(), "read"),
    ):
        with pytest.raises(StackError, match=said) as caught:
            load_stack(bad)
        assert caught.value.code == "RLVR-S101"


def test_a_file_that_is_no_mapping_is_refused(write: Write) -> None:
    assert problems(write("- a\n- b\n")) == [
        "stack.yaml:1:1: a stack file must be a mapping of keys to values"
    ]
