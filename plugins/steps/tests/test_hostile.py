"""Whatever a completion holds, a verdict comes back, and fast."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

MEGABYTE = 1_000_000
LONGEST = 199_000
"""A little less than the longest answer that is read at all."""
LIMIT_S = 10.0  # the deadline a stack gives by default
TRUTHS = [
    {"steps": ["12 * 8 = 96", "96 / 4 = 24", "96 - 24 = 72"], "answer": 72},
    {"steps": ["3x + 5 = 17", "3x = 12", "x = 4", "(x+1)^2 = 25"], "answer": "x = 4"},
    {"steps": ["Whales are mammals.", "鲸鱼呼吸空气。", "So whales breathe."], "answer": "yes"},
    {"steps": [f"{n} + {n} = {2 * n}, and x + {n} = {n}x" for n in range(60)], "answer": "B"},
]
UNITS = [
    "1+1=2 ", "1+1=3\n", "x+1=1+x\n", "(x+y)^7=1\n", "(a+b)(c+d)=(c+d)(a+b)\n", "((", "))", "[",
    "9", "9.", "9,999", "1:2", "1/", "1 1/2 ", "-", "- ", "+", "=", "= 1\n", "^2", "2^64*", "1. ",
    "\n", "\n=", " ", "Step 1: ", "Step 1\n", "第一步:", "步骤", "①", "½", "²", "\\frac{1}{2}",
    "\\frac{", "\\frac", "\\boxed{", "\\boxed{1}", "}", "{", "\\", "\\\\", "$", "**", "#### ",
    "####\n", "answer ", "answer is ", "The answer is 72. ", "答案是", "<answer>", "<<1", "<<1>>",
    "<think>", "</think>", "of ", "5 of ", "5 apples + ", "5aa", "5 aa bb cc", "eggs/", "plus 3 ",
    "3 plus ", "乘", "3乘3等于9", "\x00", "\ud800", "\u200b", "\ufeff", "ﷺ", "\u0301", "٣", "𝟗=",
    "a", "aa ", "鲸", "a. ", "。", ".", "!", "?) ", "Mr. ", "&=", ">", "> ", "%", "5%", "\\text{",
    "_", "\\sqrt", "\\begin{aligned}", "≈", "3 ≈ 3\n", "\r\n", "\r", "x 3", "3x3", "3 x 3 = 9\n",
]  # fmt: skip


def filled(unit: str, characters: int = LONGEST) -> str:
    return (unit * (characters // len(unit) + 1))[:characters]


def is_judged(judge, text: str, truth: dict) -> None:
    start = time.process_time()
    verdict = judge(text, truth)
    assert time.process_time() - start < LIMIT_S
    assert verdict.is_judgement
    assert 0 <= verdict.score <= 1
    assert (verdict.score >= 0.75) == (verdict.failure is None)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(UNITS)))
def test_a_long_answer_is_judged_fast_and_never_right(judge, number):
    text = filled(UNITS[number])
    for completion in (text, "\\boxed{" + text[:-9], "The answer is " + text):
        start = time.process_time()
        assert judge(completion, TRUTHS[number % len(TRUTHS)]).score < 0.5
        assert time.process_time() - start < LIMIT_S


@pytest.mark.parametrize("unit", UNITS)
def test_a_tenth_of_a_long_answer_is_judged_fast(judge, unit):
    start = time.process_time()
    assert judge(filled(unit, LONGEST // 10), TRUTHS[1]).score < 0.5
    assert time.process_time() - start < LIMIT_S / 4


@pytest.mark.parametrize("unit", ["[", "1+1=2\n", '"', "x"])
def test_an_answer_of_a_megabyte_is_too_long(judge, unit):
    verdict = judge(filled(unit, MEGABYTE), TRUTHS[0])
    assert verdict.failure.value == "resource_limit"


@pytest.mark.parametrize(
    "side",
    ["9^9^9", "9^(9^(9^9))", "2^64^64", "99999999999999999999^64", "1/3" + "*1/7" * 80, "(" * 900,
     "(x+1)^64", "(a+b+c+d)^9", "x^64^64", "-" * 300 + "1", "1/(1-1)", "0^-1", "((x))/((x-x))",
     "9" * 5000, "1e999999", "2^0.5", "2^x", "x^-3", "9!!!!!!"],
)  # fmt: skip
def test_costly_equations_are_judged_fast(judge, side):
    for truth in TRUTHS:
        is_judged(judge, f"{side} = {side}\n\\boxed{{{side}}}\n" * 20, truth)


CODE = ["__import__('os').system('touch {mark}')", "open('{mark}','w').write('x')", "exit()",
        "eval('1')", "lambda: 72", "{0.__class__}", "%s" * 50]  # fmt: skip


@pytest.mark.parametrize("code", CODE)
def test_code_in_an_answer_is_never_run(judge, code, tmp_path):
    mark = tmp_path / "ran"
    code = code.replace("{mark}", str(mark))
    is_judged(judge, f"{code} = 72\n96 - {code} = 72\n\\boxed{{{code}}}", TRUTHS[0])
    assert not mark.exists()


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=80)
HOSTILE = st.one_of(
    st.lists(st.sampled_from([*UNITS, "12 * 8 = 96", "x = 4"]), min_size=1, max_size=40).map(
        "".join
    ),
    ANY_TEXT,
)


@settings(
    max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(text=HOSTILE, truth=st.sampled_from(TRUTHS))
def test_hostile_text_always_gets_a_verdict_fast(judge, text, truth):
    is_judged(judge, text, truth)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=HOSTILE, truth=st.sampled_from(TRUTHS))
def test_ten_thousand_hostile_texts_get_a_verdict_fast(judge, text, truth):
    is_judged(judge, text, truth)


@pytest.mark.slow
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(unit=HOSTILE.filter(bool), truth=st.sampled_from(TRUTHS))
def test_fifty_hostile_megabytes_get_a_verdict_fast(judge, unit, truth):
    is_judged(judge, filled(unit, MEGABYTE), truth)
    is_judged(judge, filled(unit), truth)


ANSWERS = st.one_of(ANY_TEXT, st.lists(st.sampled_from(UNITS), max_size=20).map("".join))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(steps=st.lists(ANY_TEXT, max_size=5) | HOSTILE, answer=ANSWERS)
def test_an_odd_reference_is_refused_or_judges(judge, steps, answer):
    truth = {"steps": steps, "answer": answer}
    try:
        is_judged(judge, "12 * 8 = 96\nThe answer is 72.", truth)
    except ValidationError:
        return
