"""The verifier `python`: reward functions of TRL, of verl and plain ones."""

from __future__ import annotations

import re

import pytest

import rlvr_core
from rlvr_core.adapters.functions import RewardFunction
from rlvr_core.adapters.python_function import PythonFunction
from rlvr_core.api import Row, StackError, Status

CHAT = [{"role": "user", "content": "1 + 1?"}]

CODE = """
import asyncio
from functools import partial

def plain(completion, answer, scale=1.0):
    return scale * float(completion == answer)

def plain_with_facts(completion, prompt, finish_reason, metadata, level):
    facts = (completion, prompt, finish_reason, metadata, level)
    return float(facts == ("2", "1 + 1?", "stop", {"level": 3}, 3))

def first_name(text, answer):
    return float(text == answer)

def trl(completions, answer, **kwargs):
    assert "completion_ids" not in kwargs and kwargs["prompts"] == ["1 + 1?"], kwargs
    return [float(one == right) for one, right in zip(completions, answer, strict=True)]

def trl_chat(prompts, completions, answer, completion_ids=None):
    assert prompts == [[{"role": "user", "content": "1 + 1?"}]]
    return [float(one[0]["content"] == right) for one, right in zip(completions, answer)]

async def trl_async(completions, answer, **kwargs):
    await asyncio.sleep(0)
    return [float(one == right) for one, right in zip(completions, answer)]

def trl_none(completions, **kwargs):
    return [None for _ in completions]

def trl_two(completions, **kwargs):
    return [1.0, 1.0]

def trl_needs_ids(completions, completion_ids):
    return [1.0]

def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    assert extra_info == {"index": 7} and data_source == "made", (extra_info, data_source)
    return {"score": float(solution_str == ground_truth), "pred": solution_str}

def verl_answer(solution_str, ground_truth, **kwargs):
    return solution_str == ground_truth

def unclear(a, b):
    return 1.0

def returns(completion, value):
    return {"nan": float("nan"), "inf": float("inf"), "text": "1.0", "seven": 7.5, "none": None,
            "true": True, "list": [1.0], "empty": {}}[value]

def raises(completion):
    raise KeyError(completion)

def leaves(completion):
    raise SystemExit(3)

class Number:
    def item(self):
        return 1.0

def numpy_like(completion):
    return Number()

with_partial = partial(plain, scale=0.5)
not_callable = 3
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("functions") / "rewards.py"
    path.write_text(CODE, "utf-8")
    return lambda name: f"{path}:{name}"


@pytest.fixture(scope="module")
def judged(place):
    def judge(name, *rows, **config):
        defaults = {"completion": "2", "prompt": "1 + 1?", "ground_truth": {"answer": "2"}}
        return rlvr_core.verify(
            "python",
            [{**defaults, **row} for row in rows],
            config={"function": place(name), **config},
            workers=1,
        )

    return judge


RIGHT, WRONG = {"completion": "2"}, {"completion": "3"}
VERL = {"ground_truth": "2", "data_source": "made", "extra_info": {"index": 7}}


def test_a_plain_function_gets_keys_of_the_ground_truth_by_name(judged):
    verdicts = judged("plain", RIGHT, WRONG, {"ground_truth": {"answer": "2", "scale": 0.5}})
    assert [verdict.score for verdict in verdicts] == [1.0, 0.0, 0.5]
    assert [verdict.status for verdict in verdicts] == ["passed", "failed", "failed"]
    assert {verdict.verifier for verdict in verdicts} == {"python"}


def test_a_plain_function_may_ask_for_more_facts(judged):
    [verdict] = judged("plain_with_facts", {"ground_truth": {}, "metadata": {"level": 3}})
    assert verdict.score == 1.0, verdict


def test_the_first_parameter_of_a_plain_function_may_have_any_name(judged):
    assert [one.score for one in judged("first_name", RIGHT, WRONG, signature="plain")] == [1, 0]


def test_a_partial_is_a_function(judged):
    assert [one.score for one in judged("with_partial", RIGHT, pass_mark=0.5)] == [0.5]


@pytest.mark.parametrize("name", ["trl", "trl_async"])
def test_a_function_of_trl_gets_lists_of_one(judged, name):
    assert [verdict.score for verdict in judged(name, RIGHT, WRONG)] == [1.0, 0.0]


def test_a_function_of_trl_gets_messages_when_the_prompt_is_one(judged):
    rows = [{**row, "prompt": CHAT} for row in (RIGHT, WRONG)]
    assert [verdict.score for verdict in judged("trl_chat", *rows)] == [1.0, 0.0]


def test_none_is_no_verdict(judged):
    [verdict] = judged("trl_none", {})
    assert (verdict.status, verdict.score) == (Status.ABSTAINED, None)


def test_a_function_of_verl_gets_its_own_columns(judged):
    rows = [{**row, "ground_truth": VERL} for row in (RIGHT, WRONG)]
    assert [verdict.score for verdict in judged("compute_score", *rows)] == [1.0, 0.0]


def test_a_function_of_verl_is_content_with_an_answer(judged):
    assert [verdict.score for verdict in judged("verl_answer", RIGHT, WRONG)] == [1.0, 0.0]


def test_what_is_no_score_breaks_the_contract(judged):
    expected = {
        "nan": "expected a finite score, got nan",
        "inf": "expected a finite score, got inf",
        "text": "expected a number as score",
        "list": "expected a number as score",
        "seven": "expected a score in [0, 1], got 7.5",
        "empty": "expected a mapping with 'score'",
    }
    verdicts = judged("returns", *({"ground_truth": {"value": value}} for value in expected))
    for verdict, said in zip(verdicts, expected.values(), strict=True):
        assert (verdict.status, verdict.failure) == (Status.ERROR, "contract_violation")
        assert said in verdict.diagnostics["message"]


def test_true_none_and_numbers_of_libraries(judged):
    rows = [{"ground_truth": {"value": value}} for value in ("true", "none")]
    assert [verdict.score for verdict in judged("returns", *rows)] == [1.0, None]
    assert judged("numpy_like", {})[0].score == 1.0


def test_a_list_of_another_length_breaks_the_contract(judged):
    [verdict] = judged("trl_two", {})
    assert verdict.failure == "contract_violation"
    assert "expected a list of one reward, got list [1.0, 1.0]" in verdict.diagnostics["message"]


@pytest.mark.parametrize(("name", "said"), [("raises", "KeyError: '2'"), ("leaves", "SystemExit")])
def test_an_exception_is_an_error_of_the_function(judged, name, said):
    [verdict] = judged(name, {})
    assert (verdict.status, verdict.score) == (Status.ERROR, None)
    assert said in verdict.diagnostics["message"]


def test_a_row_that_lacks_an_argument_says_which(judged):
    [verdict] = judged("plain", {"ground_truth": {"solution": "2"}})
    assert verdict.status is Status.ERROR
    assert "says nothing for answer" in verdict.diagnostics["message"]
    assert "it has solution" in verdict.diagnostics["message"]


def test_the_score_range_is_that_of_the_settings(judged):
    rows = [{"ground_truth": {"value": value}} for value in ("seven", "true")]
    verdicts = judged("returns", *rows, score_range=[-10, 10], pass_mark=7.5)
    assert [(one.score, one.status) for one in verdicts] == [(7.5, "passed"), (1.0, "failed")]


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("nothing", {}, "has no function 'nothing'; it has"),
        ("not_callable", {}, "has no function 'not_callable'"),
        ("unclear", {}, "say `signature: trl`, `verl` or `plain`"),
        ("trl_needs_ids", {}, "completion_ids, which only TRL's trainer has"),
        ("plain", {"score_range": [1, 1]}, "`score_range` must be [lowest, highest]"),
        ("plain", {"pass_mark": 2}, "`pass_mark` must lie in `score_range`"),
    ],
)
def test_a_function_that_cannot_be_used_is_refused_with_the_stack(judged, name, settings, said):
    with pytest.raises(StackError) as caught:
        judged(name, {}, **settings)
    assert caught.value.code == "RLVR-S102"
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("rewards.py", "must be written `path.py:function` or `module:function`"),
        ("no/such.py:f", "there is no file"),
        ("no_such_module_at_all:f", "No module named 'no_such_module_at_all'"),
        ("json:no_such_thing", "json has no function 'no_such_thing'"),
    ],
)
def test_a_place_that_leads_nowhere_says_so(place, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        RewardFunction(place)


def test_a_file_that_raises_when_imported_says_so(tmp_path):
    (tmp_path / "bad.py").write_text("import sys\nsys.exit('goodbye')\n", "utf-8")
    with pytest.raises(ValueError, match=r"bad\.py cannot be imported: SystemExit: goodbye"):
        RewardFunction(f"{tmp_path}/bad.py:f")


def test_a_function_of_a_module_is_found(judged):
    [verdict] = rlvr_core.verify(
        "python",
        [{"completion": "1", "ground_truth": {}}],
        config={"function": "fractions:Fraction", "signature": "plain"},
        workers=1,
    )
    assert verdict.score == 1.0, verdict


def test_neighbours_of_the_file_can_be_imported(tmp_path):
    (tmp_path / "rlvr_made_neighbour.py").write_text("ANSWER = '2'\n", "utf-8")
    code = "from rlvr_made_neighbour import ANSWER\n\ndef f(completion):\n"
    (tmp_path / "rewards.py").write_text(f"{code}    return completion == ANSWER\n", "utf-8")
    [verdict] = rlvr_core.verify(
        "python",
        [{"completion": "2", "ground_truth": {}}],
        config={"function": f"{tmp_path}/rewards.py:f"},
        workers=1,
    )
    assert verdict.score == 1.0, verdict


def test_the_version_changes_with_the_function(tmp_path):
    file = tmp_path / "rewards.py"
    config = {"function": f"{file}:f"}
    file.write_text("def f(completion):\n    return 1.0\n", "utf-8")
    settings = PythonFunction.Config(**config)
    parts = [PythonFunction.version_parts(settings)]
    row = {"completion": "2", "ground_truth": {}}
    versions = [rlvr_core.verify("python", [row], config=config, workers=1)[0].version]
    file.write_text("def f(completion):\n    return 0.5\n", "utf-8")
    parts.append(PythonFunction.version_parts(settings))
    versions.append(rlvr_core.verify("python", [row], config=config, workers=1)[0].version)
    assert len(set(parts)) == len(set(versions)) == 2


def test_the_version_of_a_function_in_a_module_is_that_of_its_file():
    config = PythonFunction.Config(function="json:loads", signature="plain")
    assert len(PythonFunction.version_parts(config)) == 64


def test_rows_that_lack_an_argument_are_refused_before_the_first_step(place):
    config = PythonFunction.Config(function=place("plain"))
    verifier = PythonFunction(config, name="mine")
    rows = [
        Row(id="a", prompt="?", verifier="mine", ground_truth={"answer": "2"}),
        Row(id="b", prompt="?", verifier="mine", ground_truth={"solution": "2"}),
        Row(id="c", prompt="?", verifier="other", ground_truth={}),
    ]
    [finding] = verifier.rlvr_audit_prompts(rows=rows, session=None)
    assert (finding.severity, list(finding.rows)) == ("refuse", rows[1:2])
    assert "1 rows say nothing for 'answer'" in finding.message
