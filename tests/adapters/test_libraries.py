"""What holds of the adapters for libraries where these are not installed, and of their guards."""

from __future__ import annotations

import importlib.util

import pytest

import rlvr_core
from rlvr_core.adapters.dealing import SHARES, deal
from rlvr_core.adapters.reasoning_gym import guard_of, is_formula, is_literal
from rlvr_core.api import EnvironmentFault, StackError
from rlvr_core.cli.main import main

PARSES = "from sympy.parsing.sympy_parser import parse_expr\nvalue = parse_expr(answer)\n"
EVALUATES = "matrix = eval(answer)\n"
COMPARES = "return ast.literal_eval(answer) == self.evaluate(entry)\n"
OWN_PARSER = "def parse_expr(text):\n    return text\nvalue = parse_expr(answer)\n"


def is_missing(module):
    found = importlib.util.find_spec(module)
    return found is None or found.origin is None  # a folder of that name is no library


@pytest.mark.parametrize(
    ("plugin", "module", "config"),
    [("reasoning-gym", "reasoning_gym", {}), ("verifiers", "verifiers", {"taskset": "made"})],
)
def test_a_missing_library_is_named_with_the_line_that_installs_it(plugin, module, config, capsys):
    if not is_missing(module):
        pytest.skip(f"{module} is installed")
    rows = [{"completion": "1", "ground_truth": {"task": "a", "entry": {}, "data": {}}}]
    with pytest.raises(EnvironmentFault) as caught:
        rlvr_core.verify(plugin, rows, config=config, workers=1)
    assert caught.value.code == "RLVR-E101"
    assert f'pip install "rlvr-core[{plugin}]"' in str(caught.value)
    with pytest.raises(SystemExit) as left:
        main(["data", "make", f"{plugin}:task", "--out", "nowhere"])
    assert left.value.code == 4
    assert "RLVR-E101" in capsys.readouterr().err


def test_data_of_an_unknown_library_names_those_that_are_known(capsys):
    with pytest.raises(SystemExit) as left:
        main(["data", "make", "reasoning_gim:chain_sum", "--out", "nowhere"])
    assert left.value.code == StackError.exit_code
    assert "reasoning-gym:…, verifiers:…" in capsys.readouterr().err


def test_arithmetic_takes_no_settings(capsys):
    with pytest.raises(SystemExit) as left:
        main(["data", "make", "arithmetic", "--out", "nowhere", "--set", "a=1"])
    assert left.value.code == StackError.exit_code
    assert "--set 'a=1' cannot be used" in capsys.readouterr().err


def test_the_guard_follows_from_what_the_scorer_does_with_an_answer():
    assert guard_of(PARSES) is is_formula
    assert guard_of(EVALUATES) is is_literal
    for source in (COMPARES, OWN_PARSER, "return answer == entry['answer']\n"):
        assert guard_of(source)("open('/etc/passwd')")


@pytest.mark.parametrize(
    "text", ["2*x**3 - 4/7 + C", "exp(-x)*sin(2*x)", "(51 - 3) * 7", "1e5 + 2.5", "-x^2", "3·√2"]
)
def test_formulas_are_formulas(text):
    assert is_formula(text)


@pytest.mark.parametrize(
    "text",
    [
        "open(x)",
        "(open)(x)",
        "exec (x)",
        "x.__class__",
        "x .real",
        "2 .real",
        "a; b",
        "'open(x)'",
        '"a" "b"',
        "[open][0](x)",
        "(lambda x: x)(1)",
        "lambda: 1",
        "{x}",
        "x\\y",
        "x if y else z",
        "__import__",
        "ｏpen(1)",
    ],
)
def test_what_could_run_is_no_formula(text):
    assert not is_formula(text)


@pytest.mark.parametrize("text", ["0 1 2\n3 4 5", "[[0, 1], [2]]", "['A', 'B']", '{"a": true}', ""])
def test_literals_are_literals(text):
    assert is_literal(text)


@pytest.mark.parametrize(
    "text", ["[open('a')]", "f'{exit()}'", "a.b", "[x for x in y]", "[" * 9000, "1" * 20_000 + "]"]
)
def test_what_eval_would_run_is_no_literal(text):
    assert not is_literal(text)


def test_problems_are_dealt_by_their_text_alone():
    sizes = {"train": 50, "dev": 5, "gate": 5}
    problems = [(f"problem {number}", number) for number in range(500)]
    first = deal(problems, sizes)
    assert {split: len(found) for split, found in first.items()} == sizes
    again = deal([*problems[::-1], *problems], dict.fromkeys(SHARES, 500))
    for split, found in first.items():
        assert set(found) <= set(again[split])
    assert sum(len(found) for found in again.values()) == 500
    assert abs(len(again["train"]) - 400) < 40
