"""Tasks of the real library reasoning-gym as data and verifier. Run by ``make test-adapters``."""

from __future__ import annotations

import json

import pytest
import reasoning_gym as library

import rlvr_core
from rlvr_core.adapters.reasoning_gym import Scorer, is_literal
from rlvr_core.adapters.reasoning_gym_rows import make_reasoning_gym
from rlvr_core.api import DataError, StackError
from rlvr_core.cli.main import main

pytestmark = pytest.mark.adapters

SIZES = {"train": 12, "dev": 3, "gate": 3}
CANNOT_BE_WRITTEN = {"arc_agi", "rearc"}
WITHOUT_AN_ANSWER = {"boxnet", "graph_color", "propositional_logic", "rubiks_cube", "rush_hour"}
SLOW = {"knight_swap"}


def rows_of(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def judge(pairs, **config):
    rows = [
        {"completion": text, "ground_truth": {"task": task, "entry": entry}}
        for text, task, entry in pairs
    ]
    return rlvr_core.verify("reasoning-gym", rows, config=config, workers=1)


def entry_of(task, **settings):
    return json.loads(json.dumps(library.create_dataset(task, seed=5, size=3, **settings)[0]))


def test_splits_share_no_problem_and_depend_on_the_seed_alone(tmp_path):
    found = {}
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        paths = make_reasoning_gym(tmp_path / name, "chain_sum", seed, SIZES)
        found[name] = {split: path.read_bytes() for split, path in paths.items()}
    assert found["a"] == found["b"] != found["c"]
    questions = {
        split: {
            row["verifier"]["entry"]["question"]
            for name in ("a", "c")
            for row in rows_of(tmp_path / name / f"{split}.jsonl")
        }
        for split in SIZES
    }
    assert not questions["train"] & questions["dev"] | questions["dev"] & questions["gate"]
    assert not questions["train"] & questions["gate"]


def test_the_answer_in_the_tag_is_scored_by_the_library():
    entry = entry_of("chain_sum")
    right = entry["answer"]
    verdicts = judge(
        [
            (f"I add. <answer>{right}</answer>", "chain_sum", entry),
            (f"<think>{right}</think><answer> {right}\n</answer> done", "chain_sum", entry),
            ("<answer>no idea</answer>", "chain_sum", entry),
            (f"The answer is {right}", "chain_sum", entry),
            (f"<think><answer>{right}</answer>", "chain_sum", entry),
            (f"<answer>{right}", "chain_sum", entry),
        ]
    )
    assert [verdict.status for verdict in verdicts] == ["passed"] * 2 + ["failed"] * 4
    assert [str(one.failure) for one in verdicts[2:]] == ["wrong_answer"] + ["no_answer"] * 3


def test_without_a_tag_the_whole_text_is_the_answer():
    entry = entry_of("chain_sum")
    [verdict] = judge([(f"<think>hm</think> {entry['answer']}", "chain_sum", entry)], tag=None)
    assert verdict.score == 1.0


def test_an_unknown_task_is_abstained():
    [verdict] = judge([("<answer>1</answer>", "no_such_task", {})])
    assert (verdict.status, verdict.failure) == ("abstained", "bad_ground_truth")


def test_every_task_that_can_be_written_accepts_its_own_answer_through_the_verifier():
    pairs = []
    for task in sorted(library.factory.DATASETS):
        if task in {"composite"} | CANNOT_BE_WRITTEN | WITHOUT_AN_ANSWER | SLOW:
            continue
        entry = entry_of(task)
        pairs.append((f"<answer>{entry['answer']}</answer>", task, entry))
    verdicts = judge(pairs, pass_mark=0.99)
    wrong = {
        pair[1]: (verdict.status.value, verdict.score, verdict.failure)
        for pair, verdict in zip(pairs, verdicts, strict=True)
        if verdict.status != "passed"
    }
    assert wrong == {}
    assert len(pairs) >= 90


@pytest.mark.parametrize(
    "task", ["countdown", "puzzle24", "simple_integration", "polynomial_multiplication"]
)
@pytest.mark.parametrize(
    "text",
    [
        "open('{file}', 'w')",
        "(open)('{file}', 'w')",
        "[open][0]('{file}', 'w')",
        "x + 'ope' 'n(\"{file}\", \"w\")'",
        '\'open("{file}", "w")\'',
        "__import__('pathlib').Path('{file}').touch()",
        "(lambda: 0).__globals__",
        "exec(chr(49))",
    ],
)
def test_no_answer_reaches_a_parser_that_would_run_it(task, text):
    assert not Scorer(task).is_safe(text)


@pytest.mark.parametrize("task", ["n_queens", "string_insertion", "spiral_matrix", "binary_matrix"])
def test_no_answer_reaches_eval_that_is_no_literal(task, tmp_path):
    guard = Scorer(task).is_safe
    file = tmp_path / "made"
    for text in (f"open('{file}','w')", f"[open('{file}','w')]", "[].__class__", "f'{exit()}'"):
        assert not guard(text)
    assert all(map(guard, ("[[0, 1], [2, 3]]", "['A', 'B']", "0 1 2\n3 4 5")))
    assert not is_literal("[" * 20_000)


def test_hostile_answers_leave_nothing_and_fail(tmp_path):
    file = tmp_path / "made"
    pairs = [
        (f"<answer>{text}</answer>", task, entry_of(task))
        for task in ("countdown", "n_queens", "simple_integration")
        for text in (f"open('{file}', 'w')", f"[open('{file}', 'w')]", f'\'open("{file}", "w")\'')
    ]
    verdicts = judge(pairs)
    assert not file.exists()
    assert {verdict.status for verdict in verdicts} == {"failed"}


def test_a_task_that_json_cannot_hold_is_refused(tmp_path):
    with pytest.raises(DataError) as caught:
        make_reasoning_gym(tmp_path, "arc_agi", 0, SIZES)
    assert caught.value.code == "RLVR-D102"


@pytest.mark.parametrize(
    ("task", "settings", "said"),
    [
        ("chain_sums", {}, "did you mean 'chain_sum'"),
        ("chain_sum", {"min_tarms": 3}, "does not take these settings"),
        ("coin_flip", {"min_trials": 3, "max_trials": 3}, "too few problems"),
    ],
)
def test_what_the_library_does_not_have_is_refused(tmp_path, task, settings, said):
    sizes = {"train": 400, "dev": 50, "gate": 50} if task == "coin_flip" else SIZES
    with pytest.raises(StackError) as caught:
        make_reasoning_gym(tmp_path, task, 0, sizes, settings)
    assert caught.value.code == "RLVR-S106"
    assert said in str(caught.value)


def test_the_command_makes_data_that_a_stack_can_use(tmp_path, capsys):
    out = str(tmp_path / "data")
    sizes = ["--train", "8", "--dev", "2", "--gate", "2"]
    task = "reasoning-gym:chain_sum"
    with pytest.raises(SystemExit) as left:
        main(["data", "make", task, "--out", out, *sizes, "--set", "max_terms=3"])
    assert left.value.code == 0
    assert "train" in capsys.readouterr().out
    stack = tmp_path / "stack.yaml"
    stack.write_text(
        "model: smollm2\ndata: {train: {path: data/train.jsonl}, dev: {path: data/dev.jsonl}}\n"
        "verifiers: [reasoning-gym]\ntrain: {steps: 1, learning_rate: 1e-5}\n",
        "utf-8",
    )
    with pytest.raises(SystemExit) as left:
        main(["data", "check", str(stack)])
    assert left.value.code == 0
