"""Whatever a completion holds, a verdict comes back, and fast."""

from __future__ import annotations

import os
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlvr_core.testing.hostile_texts import MEGABYTE, filled, hostile_texts

LIMIT_S = 10.0  # the deadline a stack gives by default
COSTLY_LIMIT_S = 1.0
TOWERS = [
    "9^{9^9}", "9^9^9", "5^{5^{5^{5^5}}}", "99999999!", "(10^6)!", "((9!)!)!", "10^{10^5}",
    r"\binom{10^9}{5\cdot 10^8}", r"\binom{99999}{50000}", r"\sum_{k=1}^{10^{12}} k",
    r"\sum_{k=1}^{300} k^{k}", r"\prod_{k=1}^{300} k!", "(x+1)^{100000}", "((2x)^{99999})^{99999}",
    "((x+y)^{1000})^{1000}", "e^{e^{e^{e^{10}}}}", "e^{10^{10}}", r"\sin(10^{10^{10}})",
    "x^{x^{x^{x^x}}}", "1e999999", r"1\times 10^{999999999999}", r"\sqrt[100]{2^{30000}+1}",
    r"\sqrt[99999]{2}", r"\sqrt{" + "9" * 1900 + "}", r"(1+\sqrt2)^{99999}", "0^0", "1/0",
    r"\infty-\infty", r"\ln 0", r"\log_1 5", r"\int_0^1 e^{e^{x^2}}\sin(x^x) dx",
]  # fmt: skip
BULK = [
    "(" * 50_000 + "1" + ")" * 50_000, "{" * 1000 + "1" + "}" * 1000, "1" * 100_000, "x" * 100_000,
    "-" * 100_000 + "1", "+".join(["1"] * 40_000), r"\sqrt{" * 60 + "2" + "}" * 60, "sqrt" * 200,
    "0." + "3" * 100_000, r"\frac{1}{" * 55 + "1" + "}" * 55, "\x00" * 1000, "\ud800" * 1000,
    "^" * 1000, "3" + "!" * 100, r"\text{" * 300, "1 or " * 400, "1," * 50_000, r"1\pm1" * 50,
    "<".join("x" * 200), "1:" * 500 + "1", "|" * 100, r"\sin " * 100 + "x", "亿" * 100,
    ",".join(f"x^{i}" for i in range(200)), r"\cup".join(["(0,1)"] * 100), " " * 100_000,
    r"\boxed{" * 5000, r"\boxed{1} or " * 5000, "answer is " * 5000, "<answer>" * 20_000,
    "<think>" * 5000, "答案是" * 5000, "#### " * 5000 + "1", ". " * 50_000, "\n" * 100_000,
    "<!--" * 50_000, "<!-- -->" * 20_000, "<del>" * 40_000, "~~4 " * 50_000, r"\phantom{" * 20_000,
    r"\cancel" * 20_000, "0." * 50_000, r"0.\overline{" * 9_000, r"0.\overline{3}" * 9_000,
    "0." + "3" * 30_000 + "...", "1" * 5_000 + r".\overline{3}", "..." * 40_000, "A. 3 " * 20_000,
    "1 = " * 500 + "1", r"\pi = " * 200 + r"\sqrt{7}", "4" + " dozen" * 200,
    "4" + " thousand" * 5_000,
]  # fmt: skip
GOLDS = ["5", "x^2+1", r"\pi", "(1,2)", r"\{1,2\}", "x>2"]


def timed(judge, completion, gold):
    start = time.process_time()
    verdict = judge(completion, gold)
    return verdict, time.process_time() - start


@pytest.fixture(scope="module", autouse=True)
def _warm(judge):
    judge(r"\boxed{\overline{x}}", "x+1")


@pytest.mark.slow
@pytest.mark.parametrize("text", [*TOWERS, *BULK], ids=range(len(TOWERS) + len(BULK)))
def test_a_costly_answer_is_judged_fast_and_never_right(judge, text):
    for completion in (rf"\boxed{{{text}}}", f"The answer is {text}", text):
        for gold in GOLDS:
            verdict, seconds = timed(judge, completion, gold)
            assert verdict.score == 0, (completion[:80], gold)
            assert seconds < COSTLY_LIMIT_S, (completion[:80], gold)


@pytest.mark.parametrize("text", TOWERS)
def test_a_costly_answer_against_itself_is_judged_fast(judge, text):
    verdict, seconds = timed(judge, rf"\boxed{{{text}}}", text)
    assert verdict.score == 1
    assert seconds < COSTLY_LIMIT_S


CODE = [
    "__import__('os').system('touch {mark}')", "open('{mark}','w').write('x')", "exit()",
    "().__class__.__bases__[0].__subclasses__()", "lambda: 42", "[x for x in range(10**10)]",
    "eval('1')", "S(42)", "gold", "answer", "self.config", "{0.__class__}", "%s" * 50,
]  # fmt: skip


@pytest.mark.parametrize("code", CODE)
def test_code_in_an_answer_is_never_run(judge, code, tmp_path):
    mark = tmp_path / "ran"
    for gold in ("0", "1", "42", "x"):
        verdict, seconds = timed(judge, rf"\boxed{{{code.replace('{mark}', str(mark))}}}", gold)
        assert verdict.score == 0
        assert seconds < COSTLY_LIMIT_S
    assert not os.path.exists(mark)


PIECES = [
    r"\frac{", r"\sqrt{", r"\sqrt[", "^{", "_{", "{", "}", "(", ")", "[", "]", r"\{", r"\}", "x",
     "y", "e", "i", "2", "9", "99999", "0.333", "1e5", "!", "+", "-", "*", "/", r"\cdot ", "=", "<",
     r"\in ", r"\cup ", r"\sin ", r"\log_", r"\binom{", r"\sum_{k=1}^{", r"\int_0^1",
     r"\lim_{x\to 0}",
     r"\begin{pmatrix}", r"\end{pmatrix}", r"\\", "&", ",", ":", " ", r"\text{", "or", r"\pm",
     r"\infty", "|", "%", "$", "°", "^9", r"\left", "\x00", "\ud800", "，", "或", "万", "百分之",
     "½",
     "√", r"\boxed{", "</think>", r"\frac", "e^", "**", "gcd(",
]  # fmt: skip
HOSTILE = hostile_texts(PIECES)


def is_judged(judge, completion, gold):
    verdict, seconds = timed(judge, completion, gold)
    assert verdict.is_judgement
    assert verdict.score in (0.0, 1.0)
    assert seconds < LIMIT_S


QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck)}
FORMS = st.sampled_from(["\\boxed{{{}}}", "The answer is {}", "{}"])


@settings(max_examples=200, derandomize=True, **QUIET)
@given(text=HOSTILE, gold=st.sampled_from(GOLDS), form=FORMS)
def test_hostile_text_always_gets_a_verdict_fast(judge, text, gold, form):
    is_judged(judge, form.format(text), gold)


@pytest.mark.slow
@settings(max_examples=10_000, **QUIET)
@given(text=HOSTILE, gold=st.sampled_from(GOLDS), form=FORMS)
def test_ten_thousand_hostile_texts_get_a_verdict_fast(judge, text, gold, form):
    is_judged(judge, form.format(text), gold)


@pytest.mark.slow
@settings(max_examples=50, **QUIET)
@given(unit=HOSTILE.filter(bool), gold=st.sampled_from(GOLDS), form=FORMS)
def test_fifty_hostile_megabytes_get_a_verdict_fast(judge, unit, gold, form):
    is_judged(judge, form.format(filled(unit, MEGABYTE)), gold)
