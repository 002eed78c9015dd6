"""Print how long math-sympy takes a row, and math-verify beside it: warm, imports excluded.

    python benchmarks/math_sympy_speed.py [GSM8K_FILE.jsonl MATH_FILE.jsonl] [--beside-math-verify]

Files hold `answer`: worked GSM8K answers with `####`, and MATH golds. Without files, made-up rows.
Each ground truth is judged against itself ("right") and against the next row's ("wrong").
`--beside-math-verify` judges the same completions with math-verify in the same run, on the main
thread and without its time limits; it needs `math-verify`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from rlvr_plugin_math_sympy import MathSympy

from rlvr_core.api import VerifyBatch, VerifyRow

Judge = Callable[[str, str], bool]
Pairs = Sequence[tuple[str, str]]
WARM_UP = ("\\overline{x}", "x+1")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="*", help="GSM8K, then MATH")
    parser.add_argument("--beside-math-verify", action="store_true")
    arguments = parser.parse_args()
    gsm, maths = golds(arguments.files)
    sets = {
        "GSM8K, right": [(gold, gold) for gold in gsm],
        "GSM8K, wrong": list(pairwise(gsm)),
        "MATH, right": [(gold, gold) for gold in maths],
        "MATH, wrong": list(pairwise(maths)),
    }
    ours_s = measure("math-sympy", math_sympy(), sets)
    if arguments.beside_math_verify:
        theirs_s = measure("math-verify", math_verify(), sets)
        print(f"all rows: math-sympy {ours_s:.2f} s, math-verify {theirs_s:.2f} s, ", end="")
        print(f"{theirs_s / ours_s:.0f} times the throughput")


def golds(files: Sequence[Path]) -> tuple[list[str], list[str]]:
    """Return the answers of both files, or made-up ones."""
    if not files:
        made = ["\\frac{3}{4}", "2\\sqrt{2}", "x^2+2x+1", "(1,\\frac12)", "[0,1)", "\\pi"] * 50
        return [f"{number:,}" for number in range(1, 40_000, 17)], made
    gsm, maths = (
        [json.loads(line)["answer"] for line in path.read_text("utf-8").splitlines()]
        for path in files
    )
    return [answer.split("####")[-1].strip() for answer in gsm], maths


def math_sympy() -> Judge:
    verifier = MathSympy(MathSympy.Config())

    def judged(completion: str, gold: str) -> bool:
        truth = MathSympy.GroundTruth(answer=gold)
        row = VerifyRow(id="", prompt="", completion=completion, ground_truth=truth)
        return verifier.rlvr_verify(VerifyBatch(rows=[row]))[0].score == 1

    return judged


def math_verify() -> Judge:
    from math_verify import parse, verify

    def judged(completion: str, gold: str) -> bool:
        # A ground truth is LaTeX: without the dollars its fractions are not found.
        wanted = parse(f"${gold}$", parsing_timeout=None)
        found = parse(completion, parsing_timeout=None)
        return verify(wanted, found, timeout_seconds=None)

    return judged


def measure(name: str, judge: Judge, sets: dict[str, Pairs]) -> float:
    """Print the times of each set, and return the seconds of all rows."""
    judge(completion_of(WARM_UP[0]), WARM_UP[1])
    total_s = 0.0
    for title, pairs in sets.items():
        times_ms, passed = [], 0
        for answer, gold in pairs:
            completion = completion_of(answer)
            start = time.perf_counter()
            passed += judge(completion, gold)
            times_ms.append((time.perf_counter() - start) * 1e3)
        total_s += sum(times_ms) / 1e3
        ordered = sorted(times_ms)
        p90 = ordered[len(ordered) * 9 // 10]
        print(
            f"{name:<11}  {title:<13} {len(pairs):>6} rows, {passed:>5} passed"
            f"  median {statistics.median(ordered):.3f} ms  p90 {p90:.3f} ms"
            f"  max {ordered[-1]:.1f} ms  {len(pairs) / sum(times_ms) * 1e3:.0f} rows/s"
        )
    return total_s


def completion_of(answer: str) -> str:
    return f"Some working, 3 + 4 = 7.\nThe result is $\\boxed{{{answer}}}$."


if __name__ == "__main__":
    main()
