from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from rlvr_core.api.errors import DataError, StackError
from rlvr_core.data.arithmetic import SIZES, make_arithmetic

SPLITS = ("train", "dev", "transfer", "gate")


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    paths = make_arithmetic(tmp_path_factory.mktemp("arithmetic"))
    return {split: rows_of(paths[split]) for split in SPLITS}


def understood(text: str) -> tuple[str, tuple[int, ...], int]:
    """Read a question as a person would: its kind, its numbers in order of size, its answer."""
    a, b = (int(number) for number in re.findall(r"\d+", text))
    numbers = tuple(sorted((a, b)))
    if re.fullmatch(r"What is \d+ \+ \d+\?|Add \d+ and \d+\.", text):
        return "sum", numbers, a + b
    if re.fullmatch(r"What is \d+ \* \d+\?|Multiply \d+ by \d+\.", text):
        return "product", numbers, a * b
    if re.fullmatch(r"Which number is larger, \d+ or \d+\?", text):
        return "comparison", numbers, numbers[1]
    assert re.fullmatch(r"Which is smaller: \d+ or \d+\?", text), text
    return "comparison", numbers, numbers[0]


def question(row: dict[str, Any]) -> str:
    return str(row["prompt"][-1]["content"])


def problems(rows: list[dict[str, Any]]) -> set[tuple[str, tuple[int, ...]]]:
    return {understood(question(row))[:2] for row in rows}


def test_every_answer_is_right_by_the_text_of_its_question(made: Any) -> None:
    for split in SPLITS:
        for row in made[split]:
            kind, _, answer = understood(question(row))
            assert row["verifier"] == {"type": "math-sympy", "answer": str(answer)}
            assert row["metadata"]["kind"] == kind


def test_no_problem_stands_in_two_splits_in_either_order(made: Any) -> None:
    for left, right in combinations(SPLITS, 2):
        assert not problems(made[left]) & problems(made[right]), (left, right)


def test_splits_stay_disjoint_across_seeds(made: Any, tmp_path: Path) -> None:
    other = make_arithmetic(tmp_path, seed=7)
    assert not problems(made["train"]) & problems(rows_of(other["dev"]))


def test_worked_examples_are_asked_in_no_split(made: Any) -> None:
    shown = {("sum", (3, 4)), ("comparison", (12, 31))}
    for split in SPLITS:
        assert not shown & problems(made[split])


def test_sizes_and_distinct_held_out_rows(made: Any) -> None:
    assert {split: len(made[split]) for split in SPLITS} == dict(SIZES)
    for split in ("dev", "transfer", "gate"):
        assert len({question(row) for row in made[split]}) == len(made[split]) >= 200
    for split in SPLITS:
        assert len({row["id"] for row in made[split]}) == len(made[split])


def test_kinds_are_thirds_where_there_are_enough_problems(made: Any) -> None:
    for split in ("train", "transfer"):
        counts = Counter(row["metadata"]["kind"] for row in made[split])
        assert max(counts.values()) - min(counts.values()) <= 1
    for split in ("dev", "gate"):
        counts = Counter(row["metadata"]["kind"] for row in made[split])
        assert counts["comparison"] in (66, 67)
        assert counts["product"] >= 18  # all that the split holds of 36 products


def test_any_stretch_of_train_is_mixed(made: Any) -> None:
    for start in range(0, 2000, 200):
        counts = Counter(row["metadata"]["kind"] for row in made["train"][start : start + 200])
        assert min(counts.values()) >= 40


def test_prompts_show_two_worked_examples_as_earlier_turns(made: Any) -> None:
    row = made["train"][0]
    assert row["prompt"][:4] == [
        {"role": "user", "content": "What is 3 + 4?"},
        {"role": "assistant", "content": "3 + 4 = \\boxed{7}"},
        {"role": "user", "content": "Which number is larger, 12 or 31?"},
        {"role": "assistant", "content": "\\boxed{31}"},
    ]
    assert [turn["role"] for turn in row["prompt"][4:]] == ["user"]
    assert row["metadata"].keys() == {"kind", "difficulty", "language", "source", "split"}


def test_without_examples_the_question_asks_for_the_box(tmp_path: Path) -> None:
    paths = make_arithmetic(tmp_path, examples=0)
    for row in rows_of(paths["dev"]):
        (turn,) = row["prompt"]
        assert turn["content"].endswith(" Give the final answer in \\boxed{}.")


def digests(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
    }


def test_same_seed_gives_same_bytes_whatever_the_hash_seed(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; "
        "from rlvr_core.data.arithmetic import make_arithmetic; make_arithmetic(Path(sys.argv[1]))"
    )
    for hash_seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / hash_seed)],
            check=True,
            env={
                **os.environ,
                "PYTHONHASHSEED": hash_seed,
                "PYTHONPATH": os.pathsep.join(sys.path),
            },
        )
    assert digests(tmp_path / "1") == digests(tmp_path / "2")


def test_another_seed_gives_other_rows(made: Any, tmp_path: Path) -> None:
    other = rows_of(make_arithmetic(tmp_path, seed=1)["train"])
    assert [question(row) for row in other] != [question(row) for row in made["train"]]


def test_making_the_same_data_again_changes_nothing(tmp_path: Path) -> None:
    make_arithmetic(tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    make_arithmetic(tmp_path)
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
    assert sorted(before) == ["dev.jsonl", "gate.jsonl", "train.jsonl", "transfer.jsonl"]


def test_other_files_are_never_overwritten_and_nothing_is_half_written(tmp_path: Path) -> None:
    (tmp_path / "dev.jsonl").write_text("mine\n")
    with pytest.raises(DataError, match="RLVR-D103") as caught:
        make_arithmetic(tmp_path)
    assert "dev.jsonl would be overwritten" in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["dev.jsonl"]
    assert (tmp_path / "dev.jsonl").read_text() == "mine\n"


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="RLVR-D103"):
        make_arithmetic(tmp_path / "file" / "data")


def test_too_many_distinct_rows_are_refused_with_the_number_there_is(tmp_path: Path) -> None:
    with pytest.raises(StackError, match=r"--dev 9000 is too many[\s\S]*at most \d+ distinct"):
        make_arithmetic(tmp_path, sizes={**SIZES, "dev": 9000})
    assert not list(tmp_path.iterdir())


def test_examples_are_two_or_none(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="give 2 or 0"):
        make_arithmetic(tmp_path, examples=1)
