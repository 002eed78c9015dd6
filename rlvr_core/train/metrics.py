"""The record of one step: a line of ``metrics.jsonl``, from the groups and the update."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from rlvr_core.api.rollouts import FinishReason, Group
from rlvr_core.api.verdicts import Json, Status
from rlvr_core.evaluate.agreement import count_agreement
from rlvr_core.records.layout import PARSE_FAILURES
from rlvr_core.train.update import UpdateResult


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """Wall-clock seconds of one step on the main process."""

    collect_s: float
    """Sampling and verification, which overlap."""
    train_s: float


def step_record(
    *,
    step: int,
    epoch: float,
    groups: Sequence[Group],
    kept: Sequence[bool],
    rounds: int,
    result: UpdateResult,
    weights_version: int,
    weights_fingerprint: str,
    learning_rate: float,
    times: StepTimes,
) -> dict[str, Json]:
    """Return the line of ``metrics.jsonl`` for one step; keys without a value are None.

    Args:
        step: 1-based.
        epoch: Passes over the training split so far.
        groups: Every group of the step, over all processes.
        kept: For each group, whether it was trained on.
        rounds: Rounds of new prompts the step took.
        result: What the updates did.
        weights_version: Updates behind the weights after the step.
        weights_fingerprint: Of the weights after the step.
        learning_rate: Of the step's updates.
        times: How long the step took.
    """
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    verdicts = [rollout.verdict for rollout in rollouts if rollout.verdict is not None]
    judged = [verdict for verdict in verdicts if verdict.is_judgement]
    failures = Counter(verdict.failure.value for verdict in verdicts if verdict.failure)
    rewards = [rollout.reward for rollout in rollouts if rollout.reward is not None]
    entropies = [rollout.entropy for rollout in rollouts if rollout.entropy is not None]
    tokens = sum(rollout.length for rollout in rollouts)
    step_s = times.collect_s + times.train_s
    unparsed = sum(failures[name] for name in PARSE_FAILURES)
    return {
        "step": step,
        "epoch": round(epoch, 6),
        "reward_mean": fmean(rewards) if rewards else None,
        "pass_rate": _share(sum(v.status is Status.PASSED for v in judged), len(judged)),
        "groups": len(groups),
        "useful_groups": sum(
            not group.is_dead and is_kept for group, is_kept in zip(groups, kept, strict=True)
        ),
        "kept_groups": sum(kept),
        "rollouts": len(rollouts),
        "masked": len(rollouts) - len(rewards),
        "errors": sum(verdict.status is Status.ERROR for verdict in verdicts),
        "length_mean": tokens / len(rollouts),
        "truncated_rate": _share(
            sum(r.finish_reason is FinishReason.LENGTH for r in rollouts), len(rollouts)
        ),
        "entropy": fmean(entropies) if entropies else None,
        "parse_failure_rate": _share(unparsed, len(judged)),
        "failures": dict(sorted(failures.items())),
        "agreement": count_agreement((one.verifier, one.diagnostics) for one in verdicts),
        **_of_update(result),
        "learning_rate": learning_rate,
        "tokens": tokens,
        "tokens_per_s": tokens / step_s if step_s else None,
        "collect_s": times.collect_s,
        "train_s": times.train_s,
        "step_s": step_s,
        "weights_version": weights_version,
        "weights_fingerprint": weights_fingerprint,
        "rounds": rounds,
    }


def _of_update(result: UpdateResult) -> Mapping[str, Json]:
    return {
        **result.means(),
        "updates": result.updates,
        "skipped_updates": result.skipped_updates,
        "trained_tokens": int(result.trained_tokens),
    }


def _share(count: int, total: int) -> float | None:
    return count / total if total else None
