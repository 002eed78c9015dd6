"""The tests of math-verify against the plugin math-sympy: counts, and each difference by name.

    python benchmarks/peers/math_verify_suite.py CHECKOUT

CHECKOUT is a copy of github.com/huggingface/Math-Verify, or its unpacked source archive. Its tables
of ground truth, prediction and expected result are read, not run. math-verify takes any expression
in a text for an answer, where math-sympy wants a box or a marker: a prediction that claims nothing
to it is judged once more with the formula that ends it, or all of it, in a box: counted apart.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rlvr_plugin_math_sympy import MathSympy
from rlvr_plugin_math_sympy.extract import find_answer

from rlvr_core.api import FailureCategory, Verdict, VerifyBatch, VerifyRow

FORMULA = re.compile(r"\$\$(.+?)\$\$|\$(.+?)\$|\\\[(.+?)\\\]|\\\((.+?)\\\)", re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    counts: Counter[str] = Counter()
    for path in sorted((parser.parse_args().checkout / "tests").glob("test_*.py")):
        for test, line, gold, prediction, expected in tables(path):
            form, verdict = judged(prediction, gold)
            same = (verdict.score == 1) == bool(expected)
            counts[f"{form}: {'same' if same else 'different'}"] += 1
            if not same:
                kind = "false pass" if verdict.score == 1 else "false fail"
                place = f"{path.name}:{line} {test}"
                print(f"{kind}  {place}: {prediction[-90:]!r} for {gold[-60:]!r}")
    print(", ".join(f"{name} {count}" for name, count in sorted(counts.items())))


def tables(path: Path) -> Iterator[tuple[str, int, str, str, int]]:
    """Yield (test, line, ground truth, prediction, expected) of every parametrised table."""
    for function in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(function, ast.FunctionDef):
            continue
        for decorator in function.decorator_list:
            if isinstance(decorator, ast.Call) and len(decorator.args) == 2:
                rows = decorator.args[1]
                for row in rows.elts if isinstance(rows, ast.List) else []:
                    found = literal(row)
                    if found is not None:
                        yield (function.name, row.lineno, *found)


def literal(row: ast.expr) -> tuple[str, str, int] | None:
    """Return a row of two texts and a result; None for a row of another kind."""
    try:
        value = ast.literal_eval(row)
    except ValueError:
        return None
    match value:
        case (str(gold), str(prediction), int(expected)):
            return gold, prediction, expected
    return None


def judged(prediction: str, gold: str) -> tuple[str, Verdict]:
    """Return how the prediction was given, and what is said about it."""
    claim = find_answer(gold)
    wanted = claim.text if claim else gold
    verdict = judge(prediction, wanted)
    if verdict.failure is not FailureCategory.NO_ANSWER:
        return "as written", verdict
    formulas = list(FORMULA.finditer(prediction))
    if formulas and not prediction[formulas[-1].end() :].strip(" ."):
        prediction = next(filter(None, formulas[-1].groups()))
    return "in a box", judge(f"\\boxed{{{prediction}}}", wanted)


def judge(completion: str, gold: str) -> Verdict:
    verifier = MathSympy(MathSympy.Config())
    truth = MathSympy.GroundTruth(answer=gold)
    row = VerifyRow(id="row", prompt="", completion=completion, ground_truth=truth)
    return verifier.rlvr_verify(VerifyBatch(rows=[row]))[0]


if __name__ == "__main__":
    main()
