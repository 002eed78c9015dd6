"""The check that the policy which learns is the one that sampled."""

from __future__ import annotations

import math

from rlvr_core.api.rollouts import Rollout
from rlvr_core.selfcheck.bench import Bench
from rlvr_core.selfcheck.measure import plain
from rlvr_core.selfcheck.result import Found, failed, ok
from rlvr_core.train.step import collect

TOLERANCE = 1e-3
"""Largest difference of log-probabilities between cached decoding and a training pass, float32."""


def ratio(bench: Bench) -> Found:
    """Compare log-probabilities of sampler and training pass; the first ratio must be exactly 1.

    Rollouts that a sampler drew under another prompt than they are trained under are left out.
    """
    with bench.open() as opened:
        groups = collect(opened.runtime, opened.session).groups
        rollouts = [rollout for group in groups for rollout in group.rollouts]
        same = [one for one in rollouts if one.sampled_under == one.trained_under]
        trained = opened.runtime.policy_logps(same)
        apart, tokens = 0.0, 0
        for rollout in same:
            if problem := _incomplete(rollout):
                return problem
            sampled = [logp for one in rollout.segments if one.is_sampled for logp in one.logps]
            pairs = zip(sampled, trained[id(rollout)].tolist(), strict=True)
            apart = max([apart, *(_distance(one, other) for one, other in pairs)])
            tokens += rollout.length
    temperature = bench.prepared.resolved.stack.rollout.temperature
    what = f"log-probabilities of {tokens} sampled tokens at temperature {temperature:g}"
    if apart > TOLERANCE:
        worst = "the ids, log-probabilities or prompts are not those that were sampled"
        return failed(f"{what}, sampler against training pass: {worst}", apart, TOLERANCE)
    learnt = plain(bench)
    if learnt.ratio_error:
        return failed("the ratio of the first update is not exactly 1", learnt.ratio_error, 0.0)
    exact = "; ratio exactly 1 on policy" if learnt.has_signal else ""
    return ok(f"{what}{exact}", apart, TOLERANCE)


def _incomplete(rollout: Rollout) -> Found | None:
    for segment in rollout.segments:
        if segment.is_sampled and len(segment.logps) != len(segment.token_ids):
            return failed(
                f"row {rollout.row.id!r}, sample {rollout.sample_index}: "
                f"{len(segment.token_ids)} sampled tokens, {len(segment.logps)} log-probabilities"
            )
    return None


def _distance(first: float, second: float) -> float:
    """Return how far apart two numbers are; infinity where one is not finite."""
    distance = abs(first - second)
    return distance if math.isfinite(distance) else math.inf
