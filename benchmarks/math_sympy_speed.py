"""Print how long math-sympy takes a row: medians and tails, warm, imports excluded.

Usage: python benchmarks/math_sympy_speed.py [GSM8K_FILE.jsonl] [MATH_FILE.jsonl]
Files hold `answer`: worked GSM8K answers with `####`, and MATH golds. Without files, made-up rows.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from itertools import pairwise
from pathlib import Path

from rlvr_plugin_math_sympy import MathSympy

from rlvr_core.api import VerifyBatch, VerifyRow


def gsm_golds(path: str | None) -> list[str]:
    if path is None:
        return [f"{number:,}" for number in range(1, 40_000, 17)]
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["answer"].split("####")[-1].strip() for line in lines]


def math_golds(path: str | None) -> list[str]:
    if path is None:
        return ["\\frac{3}{4}", "2\\sqrt{2}", "x^2+2x+1", "(1,\\frac12)", "[0,1)", "\\pi"] * 50
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["answer"] for line in lines]


def measure(name: str, pairs: list[tuple[str, str]]) -> None:
    verifier = MathSympy(MathSympy.Config())
    times_ms = []
    for answer, gold in pairs:
        row = VerifyRow(
            id="",
            prompt="",
            completion=f"Some working, 3 + 4 = 7.\nThe result is $\\boxed{{{answer}}}$.",
            ground_truth=MathSympy.GroundTruth(answer=gold),
        )
        start = time.perf_counter()
        verifier.rlvr_verify(VerifyBatch(rows=[row]))
        times_ms.append((time.perf_counter() - start) * 1e3)
    times_ms.sort()
    tail = times_ms[int(len(times_ms) * 0.9)]
    print(
        f"{name:<34} {len(pairs):>6} rows  median {statistics.median(times_ms):.4f} ms"
        f"  p90 {tail:.4f} ms  max {times_ms[-1]:.2f} ms"
    )


def main() -> None:
    files = [*sys.argv[1:3], None, None]
    gsm, maths = gsm_golds(files[0]), math_golds(files[1])
    measure("(warm-up)", [("\\overline{x}", "x+1")])
    measure("GSM8K-like, right", [(gold, gold) for gold in gsm])
    measure("GSM8K-like, wrong", list(pairwise(gsm)))
    measure("MATH-like, right", [(gold, gold) for gold in maths])
    measure("MATH-like, wrong", list(pairwise(maths)))


if __name__ == "__main__":
    main()
