"""The record of one evaluation: a line of ``evals.jsonl``, from completions and verdicts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from rlvr_core.api.rollouts import FinishReason, Rollout
from rlvr_core.api.verdicts import Json, Status, Verdict
from rlvr_core.evaluate.statistics import wilson
from rlvr_core.records.layout import PARSE_FAILURES, evaluation_file


def evaluation_record(
    *,
    step: int,
    split: str,
    rollouts: Sequence[Rollout],
    verdicts: Mapping[str, Sequence[Verdict]],
    temperature: float,
    max_completion_tokens: int,
    duration_s: float,
) -> dict[str, Json]:
    """Return the line of ``evals.jsonl`` for one evaluation of one split.

    Args:
        step: Steps finished before it; 0 is the untrained model.
        split: Name of the split.
        rollouts: Every completion, at least one.
        verdicts: For each grader one verdict a completion. The first grader is the one that
            rewards the rows; the others only look.
        temperature: Of the sampling.
        max_completion_tokens: Of the sampling.
        duration_s: Wall-clock time of sampling and grading.

    Raises:
        ValueError: When there is no completion, or a grader has another number of verdicts.
    """
    if not rollouts:
        raise ValueError("an evaluation needs at least one completion")
    prompts = len({rollout.row.id for rollout in rollouts})
    count = len(rollouts)
    return {
        "step": step,
        "split": split,
        "weights_version": rollouts[0].weights_version,
        "prompts": prompts,
        "samples_per_prompt": count // prompts if count % prompts == 0 else count / prompts,
        "temperature": temperature,
        "max_completion_tokens": max_completion_tokens,
        "graders": {grader: grader_record(rollouts, given) for grader, given in verdicts.items()},
        "length_mean": sum(rollout.length for rollout in rollouts) / count,
        "truncated_rate": sum(r.finish_reason is FinishReason.LENGTH for r in rollouts) / count,
        "entropy": mean(r.entropy for r in rollouts if r.entropy is not None),
        "file": evaluation_file(step, split),
        "duration_s": duration_s,
    }


def grader_record(rollouts: Sequence[Rollout], verdicts: Sequence[Verdict]) -> dict[str, Json]:
    """Return what one grader says about an evaluation: counts, accuracy and its interval.

    Masked verdicts (errors, abstentions) count for nothing but ``masked``. Several samples of one
    prompt are not independent, so the Wilson interval counts each judged prompt once; with one
    sample a prompt that is the plain interval.
    """
    judged_by_prompt: defaultdict[str, int] = defaultdict(int)
    failures: Counter[str] = Counter()
    passed = 0
    for rollout, verdict in zip(rollouts, verdicts, strict=True):
        if verdict.failure is not None:
            failures[verdict.failure.value] += 1
        if verdict.is_judgement:
            judged_by_prompt[rollout.row.id] += 1
            passed += verdict.status is Status.PASSED
    judged = sum(judged_by_prompt.values())
    accuracy = passed / judged if judged else None
    prompts = len(judged_by_prompt)
    low, high = wilson(0 if accuracy is None else min(accuracy * prompts, prompts), prompts)
    unparsed = sum(failures[name] for name in PARSE_FAILURES)
    return {
        "verdicts": len(verdicts),
        "passed": passed,
        "masked": len(verdicts) - judged,
        "accuracy": accuracy,
        "low": low if judged else None,
        "high": high if judged else None,
        "failures": dict(sorted(failures.items())),
        "parse_failure_rate": unparsed / judged if judged else None,
    }


def mean(values: Iterable[float]) -> float | None:
    """Return the mean, or None when there are no values."""
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else None
