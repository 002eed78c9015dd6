"""Measuring the policy on a held-out split.

Each completion's randomness is keyed by (run seed, split, row, sample) and not by the step, so two
evaluations of one run, or of its control arm, draw the same numbers and can be compared row by row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlvr_core.api.rollouts import Rollout, Row
from rlvr_core.api.verdicts import Verdict
from rlvr_core.rollout.engine import Engine
from rlvr_core.rollout.sampling import Draw, SamplingSettings, sample_rollouts
from rlvr_core.rollout.tokens import PromptTokenizer
from rlvr_core.verification.judge import Judge

OWN = "verifier"
"""Name of the grader that stands for each row's own verifier when rows have different ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exam:
    """How a split is measured; two exams that differ here are not compared."""

    seed: int
    samples_per_prompt: int
    temperature: float
    max_completion_tokens: int
    also: Sequence[str] = ()
    """Verifiers that grade in addition to each row's own."""


@dataclass(slots=True, kw_only=True, eq=False)
class Measured:
    """The completions of one split and what each grader says of them."""

    rollouts: list[Rollout]
    verdicts: Mapping[str, list[Verdict]]
    """By grader, the row's own verifier first."""


def own_grader(rows: Sequence[Row]) -> str:
    """Return what the rows' own verifiers are called among the graders."""
    names = {row.verifier for row in rows}
    return names.pop() if len(names) == 1 else OWN


def measure(
    engine: Engine,
    tokenizer: PromptTokenizer,
    judge: Judge,
    rows: Sequence[Row],
    exam: Exam,
    *,
    own_grader: str,
    split: str,
    weights_version: int,
) -> Measured:
    """Sample and grade every row of a split.

    Args:
        engine: Samples from the current weights.
        tokenizer: Encodes prompts, decodes completions.
        judge: Gives verdicts.
        rows: What to measure on.
        exam: How.
        own_grader: What to call the rows' own verifiers among the graders.
        split: Part of every draw's key.
        weights_version: Of the policy; the engine's must be the same.

    Returns:
        Rollouts in row order. Their prompts are the rows' own: wrappers of prompts are for
        training.
    """
    draws = [
        Draw(row=row, sample_index=index, sampled_under=row.prompt, trained_under=row.prompt)
        for row in rows
        for index in range(exam.samples_per_prompt)
    ]
    settings = SamplingSettings(
        key=(exam.seed, "evaluation", split),
        max_tokens=exam.max_completion_tokens,
        temperature=exam.temperature,
        weights_version=weights_version,
    )

    judge.begin(f"{split} at version {weights_version}")

    def submit(rollout: Rollout) -> None:
        judge.submit(rollout)
        for verifier in exam.also:
            judge.submit(rollout, verifier)

    rollouts = sample_rollouts(engine, tokenizer, draws, settings, submit)
    verdicts = {own_grader: judge.verdicts(rollouts)}
    for rollout, verdict in zip(rollouts, verdicts[own_grader], strict=True):
        rollout.verdict = verdict
    for verifier in exam.also:
        verdicts[verifier] = judge.verdicts(rollouts, verifier)
    return Measured(rollouts=rollouts, verdicts=verdicts)
