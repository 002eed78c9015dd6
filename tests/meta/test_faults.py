"""Every fault of ``docs/explanation/faults.md`` has a test that exists, or a reason."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from source import ROOT

PAGE = ROOT / "docs" / "explanation" / "faults.md"
ROW = re.compile(r"^\| ([A-Z]\d+) \|(.*)\|$", re.MULTILINE)
TEST = re.compile(r"`((?:tests|plugins)/[^`]*?\.py)::(test_\w+)`")
REASON = re.compile(r"(Not offered|Cannot happen): [^.]+\.")
COUNTS = {"T": 27, "V": 23, "O": 14, "R": 18, "X": 13, "P": 28, "S": 29}
"""Rows of each section: one that goes missing is noticed."""


def rows() -> list[tuple[str, str]]:
    """Return (id, answer) of every row."""
    return [(name, cells.split("|")[-1].strip()) for name, cells in ROW.findall(PAGE.read_text())]


@cache
def functions_of(file: Path) -> frozenset[str]:
    """Return the tests that stand at the top of a module, where pytest finds them."""
    tree = ast.parse(file.read_text("utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize(("name", "answer"), rows(), ids=[name for name, _ in rows()])
def test_a_fault_has_a_test_that_exists_or_a_reason(name, answer):
    tests = TEST.findall(answer)

    assert tests or REASON.match(answer), "neither a test nor a reason"
    for file, test in tests:
        path = ROOT / file
        assert path.is_file(), f"there is no {file}"
        assert path.name.startswith("test_"), f"pytest does not look into {file}"
        assert test in functions_of(path), f"{file} has no {test}"
    assert answer.count("::") == len(tests), "a test is not written as one"


def test_no_row_is_missing_or_stands_twice():
    names = [name for name, _ in rows()]

    assert len(names) == len(set(names))
    assert {letter: sum(name[0] == letter for name in names) for letter in COUNTS} == COUNTS


def test_every_test_of_the_faults_folder_answers_a_fault():
    answered = {test for _, answer in rows() for _, test in TEST.findall(answer)}
    tests = {
        test
        for file in (ROOT / "tests" / "faults").glob("test_*.py")
        for test in functions_of(file)
        if test.startswith("test_")
    }

    assert tests - answered <= CONTROLS


CONTROLS = {
    "test_ordinary_prompts_have_nothing_odd",
    "test_a_prompt_that_repeats_with_another_answer_is_no_such_thing",
    "test_fewer_prompts_than_a_step_takes_is_said",
    "test_remarks_stand_in_the_dry_run",
    "test_a_tuple_of_verdicts_is_as_good_as_a_list",
    "test_a_warning_of_clipping_survives_a_resume",
}
"""Tests of the faults folder that show what is no fault, or a detail of an answer."""
