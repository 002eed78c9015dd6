from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from rlvr_core.api.errors import RlvrError
from rlvr_core.api.rollouts import Message, Row
from rlvr_core.cli import data as cli
from rlvr_core.data.arithmetic import make_arithmetic
from rlvr_core.data.check import check_data, prompt_key

from .conftest import Lines, good

app = typer.Typer()
app.command()(cli.make)
app.command()(cli.check)


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def row(row_id: str, prompt: Any, answer: str = "1", verifier: str = "m") -> Row:
    truth: Mapping[str, Any] = {"answer": answer}
    return Row(id=row_id, prompt=prompt, verifier=verifier, ground_truth=truth)


def test_sizes_routes_and_lengths_are_counted() -> None:
    chat = (Message("user", "abc"), Message("assistant", "d"), Message("user", "efgh"))
    rows = [row("1", "ab"), row("2", chat, verifier="n"), row("3", "abcd")]
    report = check_data({"train": rows})
    summary = report.to_json()["splits"]["train"]
    assert summary == {
        "rows": 3,
        "by_verifier": {"m": 2, "n": 1},
        "prompt_characters": {"min": 2, "median": 4, "max": 8},
        "repeated_prompts": 0,
    }
    assert report.ok


def test_a_prompt_in_two_splits_is_a_problem_however_it_is_spaced() -> None:
    train = [row("t1", "What is  3 + 4?"), row("t2", "other")]
    dev = [row("d1", "what is 3 + 4?\n"), row("d2", "another")]
    report = check_data({"train": train, "dev": dev})
    assert report.problems == ["train and dev share 1 prompts (in dev: d1)"]


def test_prompts_differ_when_their_words_or_turns_differ() -> None:
    assert prompt_key("a b") != prompt_key("ab")
    assert prompt_key("a") == prompt_key((Message("user", "A"),))
    assert prompt_key((Message("user", "a"), Message("user", "b"))) != prompt_key("a b")


def test_repeats_are_a_note_in_train_and_a_problem_elsewhere() -> None:
    rows = [row("1", "a"), row("2", "a"), row("3", "a"), row("4", "b")]
    train = check_data({"train": rows})
    assert train.ok
    assert train.notes == [
        "train: 2 rows repeat the prompt of an earlier row; "
        "the most common stands 3 times (1, 2, 3)"
    ]
    dev = check_data({"dev": rows})
    assert not dev.ok
    assert dev.problems[0].startswith("dev: 2 rows repeat")


def test_equal_prompts_with_different_answers_are_a_problem() -> None:
    report = check_data({"train": [row("1", "a", "1"), row("2", "a", "2")]})
    assert report.problems == [
        "train: rows '1' and '2' have the same prompt and different ground truths"
    ]


def test_the_demo_data_has_no_problems(tmp_path: Path) -> None:
    paths = make_arithmetic(tmp_path)
    result = run("check", *paths.values(), "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == 0
    assert report["ok"]
    assert {name: split["rows"] for name, split in report["splits"].items()} == {
        "train": 2000,
        "dev": 200,
        "transfer": 200,
        "gate": 200,
    }


def test_bad_rows_and_overlap_end_with_exit_code_one(lines: Lines) -> None:
    train = lines(good(), good(prompt=""))
    dev = lines(good(), name="dev.jsonl")
    result = run("check", train, dev)
    assert result.exit_code == 1
    assert f"problem: {train}:2: prompt is empty" in result.stdout
    assert "problem: train and dev share 1 prompts" in result.stdout


def test_files_of_equal_names_are_told_apart(lines: Lines, tmp_path: Path) -> None:
    first = lines(good())
    other = tmp_path / "other" / "train.jsonl"
    other.parent.mkdir()
    other.write_bytes(first.read_bytes())
    result = run("check", first, other, "--json")
    assert set(json.loads(result.stdout)["splits"]) == {str(first), str(other)}
    assert result.exit_code == 1


def test_making_data_prints_what_was_made(tmp_path: Path) -> None:
    result = run(
        "make", "arithmetic", "--out", tmp_path, "--train", 50, "--verifier", "exact-match"
    )
    assert result.exit_code == 0
    assert f"train        50 rows  {tmp_path / 'train.jsonl'}" in result.stdout
    first = json.loads((tmp_path / "train.jsonl").read_text().splitlines()[0])
    assert first["verifier"]["type"] == "exact-match"


def test_an_unknown_kind_of_data_is_named(tmp_path: Path) -> None:
    result = run("make", "arithmetics", "--out", tmp_path)
    assert isinstance(result.exception, RlvrError)
    assert "did you mean 'arithmetic'?" in str(result.exception)


STACK = """
model: smollm2
data:
  train: {path: train.jsonl}
  dev: {path: dev.jsonl}
verifiers: [exact-match]
train: {steps: 1, learning_rate: 1e-6}
"""


@pytest.mark.skipif(
    not any(point.name == "exact-match" for point in entry_points(group="rlvr.verifiers")),
    reason="rlvr-core is not installed here, so its plugins cannot be found by name",
)
def test_a_stack_routes_rows_and_checks_their_ground_truth(lines: Lines, tmp_path: Path) -> None:
    lines(good(verifier={"type": "exact_match", "answer": "7"}))
    lines(good(verifier={"type": "exact-match", "anser": "7"}), name="dev.jsonl")
    stack = tmp_path / "stack.yaml"
    stack.write_text(STACK)
    result = run("check", stack)
    assert result.exit_code == 1
    assert "exact-match 1" in result.stdout
    assert f"{tmp_path / 'dev.jsonl'}:1: verifier.anser unknown key" in result.stdout


def test_a_stack_stands_alone(tmp_path: Path) -> None:
    result = run("check", tmp_path / "stack.yaml", tmp_path / "dev.jsonl")
    assert isinstance(result.exception, RlvrError)
    assert "stands beside other files" in str(result.exception)


def test_values_of_a_stack_are_replaced_as_for_every_verb(tmp_path: Path, lines: Lines) -> None:
    verifier = {"type": "exact-match", "answer": "4"}
    lines(good(id="b", prompt="2 + 2", verifier=verifier), name="other.jsonl")
    stack = tmp_path / "stack.yaml"
    stack.write_text(STACK)
    result = run("check", stack, "data.train.path=other.jsonl", "data.dev=null")
    assert result.exit_code == 0, result.output
    assert "prompts of 5 to 5 characters" in result.stdout
