"""Whatever a completion holds, a verdict comes back within the deadline, and no worker is lost."""
# ruff: noqa: E501 - lines of programs

from __future__ import annotations

import random
import time

import pytest

ROWS = {
    "values": {"tests": ["assert f(1) == 2", "assert f(2) == 3"]},
    "inside": {"tests": ["for x in (1, 2):\n    assert f(x) == x + 1"]},
    "program": {"tests": [{"stdin": "1\n", "stdout": "2\n"}]},
}
DEADLINE_S = 10.0
PIECES = [
    "import os\n", "import sys, gc\n", "import threading\n", "def f(x):\n    return x + 1\n",
    "def f(x):\n    return f(x)\n", "def f(*a):\n    yield from f(*a)\n", "print('x' * 10**6)\n",
    "os.fork()\n", "os.close(3)\n", "os.write(3, b'V' + b'\\xff' * 99)\n", "os.write(3, b'P' * 5)\n",
    "os.dup2(1, 3)\n", "os.kill(1, 9)\n", "os.kill(os.getppid(), 19)\n", "os.setsid()\n",
    "sys.setrecursionlimit(10**9)\n", "def f(x):\n    return [f] * x\n", "f = type('f', (int,), {})\n",
    "del __builtins__\n", "__builtins__ = {}\n", "sys.modules.clear()\n", "sys.stdout = None\n",
    "raise MemoryError\n", "raise GeneratorExit\n", "while 1: pass\n", "1 / 0\n", "lambda: (yield)\n",
    "x = '" + "(" * 9000 + "'\n", "(" * 300 + ")" * 300 + "\n", "f = lambda x: 9 ** 9 ** 9\n",
    "class f(list):\n    __iter__ = __len__ = __eq__ = None\n", "\x00", "\ud800", "```", "```python\n",
    "<think>", "</think>\n", "\t", "    ", "import ctypes; ctypes.string_at(0)\n",
    "f = lambda x: {2**61 - 1 + i * (2**61 - 1): 0 for i in range(40000)}\n",
    "os.environ.clear()\n", "gc.freeze(); gc.disable()\n", "f = lambda x: float('nan')\n",
    "threading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start()\n", "@f\ndef f(x): pass\n",
    "type(lambda: 0).__code__ = 1\n", "def f(x):\n    os.execv('/bin/true', ['true'])\n", "🙂 = 1\n",
    "f = lambda x: memoryview(b'2')\n", "import builtins; builtins.__import__ = None\n",
]  # fmt: skip


def hostile(seed: int) -> str:
    """Return a completion made of pieces that break things, the same for the same seed."""
    draw = random.Random(seed)
    body = "".join(draw.choice(PIECES) for _ in range(draw.randint(1, 12)))
    return body if draw.random() < 0.2 else f"```python\n{body}\n```"


def judge_all(judge, seeds):
    for seed in seeds:
        for kind, truth in ROWS.items():
            if seed % len(ROWS) != list(ROWS).index(kind):
                continue
            start = time.monotonic()
            verdict = judge(hostile(seed), truth, test_time_limit_s=0.5)
            assert verdict.is_judgement, (seed, verdict)
            assert time.monotonic() - start < DEADLINE_S, seed


def test_thirty_hostile_completions_get_a_verdict_in_time(judge):
    judge_all(judge, range(30))


@pytest.mark.slow
def test_three_hundred_hostile_completions_get_a_verdict_in_time(judge):
    judge_all(judge, range(1000, 1300))


@pytest.mark.parametrize(
    ("source", "score"),
    [
        pytest.param("1 is 1\n" * 5000 + "def f(x):\n    return x + 1\n", 1.0, id="warnings"),
        pytest.param("f = lambda x: " + "-" * 30000 + "x\n", 0.0, id="minus signs"),
        pytest.param("f = lambda x: x" + ".a" * 30000 + "\n", 0.0, id="attributes"),
        pytest.param("f = lambda x: " + "x if x else " * 9000 + "x\n", 0.0, id="conditions"),
    ],
)
def test_an_answer_that_is_hard_to_compile_is_judged(judge, source, score):
    verdict = judge(f"```python\n{source}```", ROWS["values"])
    assert verdict.score == score, verdict
