"""Experiments on the form of verdicts, and on what they may depend on."""

from __future__ import annotations

import json
import math
import pickle
import random
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from rlvr_core.api.plugin import Verifier, VerifyBatch
from rlvr_core.api.verdicts import FailureCategory, Stage, Status, Verdict
from rlvr_core.testing.apart.bench import Bench, BrokenError, key_of, same, verify
from rlvr_core.verification.contract import FAILURES, MAX_DIAGNOSTICS_BYTES, ContractError

LARGE_BATCH = 257


def one_verdict_a_row(bench: Bench) -> str:
    """R10."""
    verifier = bench.new()
    rows = bench.rows(verifier)
    batch = VerifyBatch(rows=tuple(rows))
    verdicts = verifier.rlvr_verify(batch)
    if isinstance(verdicts, str | bytes) or not isinstance(verdicts, Sequence):
        raise BrokenError(f"returned a {type(verdicts).__name__}, which is no sequence")
    if len(verdicts) != len(rows):
        raise BrokenError(f"returned {len(verdicts)} verdicts on {len(rows)} rows")
    for verdict in verdicts:
        if not isinstance(verdict, Verdict):
            raise BrokenError(f"returned a {type(verdict).__name__} in place of a Verdict")
    return f"{len(rows)} verdicts on {len(rows)} rows"


def empty_batch(bench: Bench) -> str:
    """R11."""
    try:
        verdicts = bench.new().rlvr_verify(VerifyBatch(rows=()))
    except Exception as exc:
        raise BrokenError(f"a batch of no rows raises {exc!r}") from exc
    if not isinstance(verdicts, Sequence) or len(verdicts):
        raise BrokenError(f"a batch of no rows returns {verdicts!r}")
    return "no rows, no verdicts"


def sizes(bench: Bench) -> str:
    """R12."""
    verifier = bench.new()
    rows = bench.rows(verifier)
    # Quick rows only: the size is what is tested here.
    first = rows[0]
    for size in (1, LARGE_BATCH):
        try:
            verdicts = verify(verifier, [first] * size)
        except Exception as exc:
            raise BrokenError(f"a batch of {size} rows raises {exc!r}") from exc
        if len({(verdict.status, verdict.score) for verdict in verdicts}) != 1:
            raise BrokenError(f"{size} times the same row in one batch got different verdicts")
    return f"batches of 1 and {LARGE_BATCH}"


def scores(bench: Bench) -> str:
    """R13."""
    verifier, verdicts = _judged(bench)
    lowest, highest = verifier.score_range
    for verdict in verdicts:
        score: Any = verdict.score
        if score is None:
            continue
        if (
            isinstance(score, bool)
            or not isinstance(score, int | float)
            or not math.isfinite(score)
        ):
            raise BrokenError(f"a score is {score!r}")
        if not lowest <= score <= highest:
            raise BrokenError(f"a score is {score!r}, outside of [{lowest:g}, {highest:g}]")
    return f"{len(verdicts)} scores in [{lowest:g}, {highest:g}]"


def agreement(bench: Bench) -> str:
    """R14."""
    verifier, verdicts = _judged(bench)
    mark = verifier.score_range[1] if verifier.pass_mark is None else verifier.pass_mark
    for verdict in verdicts:
        problem = _disagreement(verdict, mark)
        if problem:
            raise BrokenError(problem)
    return f"{len(verdicts)} verdicts, pass mark {mark:g}"


def _disagreement(verdict: Verdict, mark: float) -> str:
    status, failure, score = verdict.status, verdict.failure, verdict.score
    if status not in tuple(Status):
        return f"{status!r} is no Status"
    if failure is not None and failure not in tuple(FailureCategory):
        return f"{failure!r} is no FailureCategory"
    if verdict.stage is not None and verdict.stage not in tuple(Stage):
        return f"{verdict.stage!r} is no Stage"
    if failure not in FAILURES[status]:
        return f"status {status} goes with failure {failure}"
    if verdict.is_judgement != (score is not None):
        return f"status {status} goes with score {score}"
    if score is not None and (score >= mark) != (status is Status.PASSED):
        return f"status {status} goes with score {score}, and the pass mark is {mark:g}"
    return ""


def plain_data(bench: Bench) -> str:
    """R15."""
    _, verdicts = _judged(bench)
    largest = 0
    for verdict in verdicts:
        try:
            pickle.loads(pickle.dumps(verdict))  # noqa: S301 - made one line before
        except Exception as exc:
            raise BrokenError(f"a verdict does not pickle: {exc!r}") from exc
        try:
            text = json.dumps(dict(verdict.diagnostics), allow_nan=False, ensure_ascii=False)
        except (TypeError, ValueError) as exc:
            raise BrokenError(f"diagnostics are not JSON: {exc}") from exc
        largest = max(largest, len(text.encode("utf-8", "surrogatepass")))
    if largest > MAX_DIAGNOSTICS_BYTES:
        raise BrokenError(f"diagnostics take {largest} bytes, more than {MAX_DIAGNOSTICS_BYTES}")
    return f"diagnostics of {largest} bytes at most"


def input_untouched(bench: Bench) -> str:
    """R16."""
    verifier = bench.new()
    rows = bench.rows(verifier)
    before = [_contents(row) for row in deepcopy(rows)]
    verify(verifier, rows)
    for row, content in zip(rows, before, strict=True):
        if _contents(row) != content:
            raise BrokenError(f"judging case {row.id} changed its row")
    return f"{len(rows)} rows are as they were"


def _contents(row: Any) -> str:
    truth = row.ground_truth.model_dump(mode="python")
    return repr((row.id, row.prompt, row.completion, truth, dict(row.metadata)))


def repeated(bench: Bench) -> str:
    """R30."""
    verifier = bench.new()
    rows = bench.rows(verifier)
    same(rows, _keys(verifier, rows), _keys(verifier, rows), "judged twice")
    return f"{len(rows)} rows judged twice by one instance"


def permuted(bench: Bench) -> str:
    """R31."""
    verifier = bench.new()
    rows = bench.rows(verifier)
    order = list(range(len(rows)))
    random.Random(0).shuffle(order)
    shuffled = _keys(verifier, [rows[place] for place in order])
    back = [key for _, key in sorted(zip(order, shuffled, strict=True))]
    same(rows, _keys(bench.new(), rows), back, "in another order")
    return f"{len(rows)} rows in another order"


def split(bench: Bench) -> str:
    """R32."""
    verifier = bench.new()
    rows = bench.rows(verifier)
    apart = [key for row in rows for key in _keys(verifier, [row])]
    same(rows, _keys(bench.new(), rows), apart, "alone and in a batch")
    return f"{len(rows)} rows alone and in one batch"


def keys_of_golden_rows(bench: Bench) -> str:
    """R33, one half: what this process says; the parent compares two of them."""
    verifier = bench.new()
    bench.data["keys"] = _keys(verifier, bench.rows(verifier))
    return ""


def _keys(verifier: Verifier, rows: Sequence[Any]) -> list[str]:
    return [key_of(verdict) for verdict in verify(verifier, rows)]


def _judged(bench: Bench) -> tuple[Verifier, list[Verdict]]:
    """Return the verdicts on every golden row, and on completions that are in none."""
    verifier = bench.new()
    rows = bench.rows(verifier)
    try:
        return verifier, verify(verifier, rows)
    except ContractError as exc:
        raise BrokenError(str(exc)) from exc
