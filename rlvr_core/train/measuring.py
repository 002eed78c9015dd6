"""Measuring a split with a run's engine and verifiers, all processes together."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlvr_core.api.rollouts import Rollout, Row
from rlvr_core.api.verdicts import Json, Verdict
from rlvr_core.evaluate.measure import Exam, Measured, measure, own_grader
from rlvr_core.evaluate.record import evaluation_record
from rlvr_core.train.runtime import Runtime


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredSplit:
    """One split's completions and verdicts, of all processes, and the line for ``evals.jsonl``."""

    rollouts: Sequence[Rollout]
    verdicts: Mapping[str, Sequence[Verdict]]
    """By grader."""
    record: dict[str, Json]


def measure_split(
    runtime: Runtime, split: str, rows: Sequence[Row], *, step: int, weights_version: int
) -> MeasuredSplit:
    """Sample and grade all rows of a split; every process does its share.

    Args:
        runtime: The parts of the run.
        split: Its name.
        rows: All of its rows.
        step: For the record: steps finished before.
        weights_version: Of the policy.
    """
    started = time.perf_counter()
    measured = measure_share(runtime, split, rows, weights_version)
    rollouts = runtime.gather(measured.rollouts)
    verdicts = {grader: runtime.gather(given) for grader, given in measured.verdicts.items()}
    exam = _exam(runtime)
    record = evaluation_record(
        step=step,
        split=split,
        rollouts=rollouts,
        verdicts=verdicts,
        temperature=exam.temperature,
        max_completion_tokens=exam.max_completion_tokens,
        duration_s=time.perf_counter() - started,
    )
    return MeasuredSplit(rollouts=rollouts, verdicts=verdicts, record=record)


def measure_share(
    runtime: Runtime, split: str, rows: Sequence[Row], weights_version: int
) -> Measured:
    """Sample and grade this process's share of some rows."""
    return measure(
        runtime.engine,
        runtime.tokenizer,
        runtime.judge,
        runtime.share_of_rank(rows),
        _exam(runtime),
        own_grader=own_grader(rows),
        split=split,
        weights_version=weights_version,
    )


def _exam(runtime: Runtime) -> Exam:
    """Return how the stack's evaluations are done."""
    stack = runtime.stack
    return Exam(
        seed=stack.seed,
        samples_per_prompt=stack.evaluate.samples_per_prompt,
        temperature=stack.evaluate.temperature or stack.rollout.temperature,
        max_completion_tokens=stack.rollout.max_completion_tokens,
        also=tuple(stack.evaluate.also),
    )
