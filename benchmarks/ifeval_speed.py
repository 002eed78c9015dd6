"""Print how long ifeval takes a response, beside the checkers of lm-evaluation-harness.

Usage: python benchmarks/ifeval_speed.py PROMPTS.jsonl [--peer]
PROMPTS.jsonl holds the published prompts (`prompt`, `instruction_id_list`, `kwargs`). Responses are
made up from the prompts' own text, one for each prompt. `--peer` times the other checkers on the
same rows in the same run; it needs `lm_eval`, `nltk` with punkt_tab, `langdetect`, `immutabledict`.
Imports and one full round come before the clock. How many verdicts are equal is printed as well.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time

from rlvr_plugin_ifeval import IFEval

from rlvr_core.api import VerifyBatch, VerifyRow

ROUNDS = 3


def responses(rows: list[dict]) -> list[str]:
    """Return a response of ordinary length for each prompt: five other prompts, as paragraphs."""
    prompts = [row["prompt"] for row in rows]
    step = len(prompts) // 5
    shifted = [prompts[index:] + prompts[:index] for index in range(1, 5 * step, step)]
    return ["\n\n".join(parts) for parts in zip(*shifted, strict=True)]


def ours(rows: list[dict], mode: str) -> Callable[[int, str], list[bool]]:
    verifier = IFEval(IFEval.Config(mode=mode))
    keys = ("instruction_id_list", "kwargs")
    truths = [IFEval.GroundTruth.model_validate({key: row[key] for key in keys}) for row in rows]

    def judged(index: int, response: str) -> list[bool]:
        row = VerifyRow(id="", prompt="", completion=response, ground_truth=truths[index])
        return verifier.rlvr_verify(VerifyBatch(rows=[row]))[0].diagnostics["followed"]

    return judged


def peer(rows: list[dict]) -> Callable[[int, str], list[bool]]:
    from lm_eval.tasks.ifeval.utils import InputExample, test_instruction_following_strict

    inputs = [
        InputExample(row["key"], row["instruction_id_list"], row["prompt"], row["kwargs"])
        for row in rows
    ]

    def judged(index: int, response: str) -> list[bool]:
        return test_instruction_following_strict(inputs[index], response).follow_instruction_list

    return judged


def measure(
    name: str, judged: Callable[[int, str], list[bool]], texts: list[str]
) -> tuple[float, list[list[bool]]]:
    """Print and return the CPU milliseconds a row, the median of the rounds; and the verdicts."""
    verdicts = [judged(index, text) for index, text in enumerate(texts)]
    rounds_ms = []
    for _ in range(ROUNDS):
        start = process_time()
        for index, text in enumerate(texts):
            judged(index, text)
        rounds_ms.append((process_time() - start) / len(texts) * 1e3)
    median = statistics.median(rounds_ms)
    print(f"{name:<24} {len(texts):>5} rows  {median:.4f} ms a row (CPU, median of {ROUNDS})")
    return median, verdicts


def main() -> None:
    rows = [json.loads(line) for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()]
    texts = responses(rows)
    strict_ms, _ = measure("ifeval, strict", ours(rows, "strict"), texts)
    official_ms, official = measure("ifeval, official", ours(rows, "official"), texts)
    if "--peer" not in sys.argv[2:]:
        return
    peer_ms, published = measure("lm-evaluation-harness", peer(rows), texts)
    pairs = [
        (one, other)
        for mine, theirs in zip(official, published, strict=True)
        for one, other in zip(mine, theirs, strict=True)
    ]
    equal = sum(one == other for one, other in pairs)
    print(f"faster by: strict {peer_ms / strict_ms:.1f}x, official {peer_ms / official_ms:.1f}x")
    print(f"equal verdicts, official against the peer: {equal} of {len(pairs)}")


if __name__ == "__main__":
    main()
