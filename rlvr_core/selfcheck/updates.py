"""Checks of one update: how rollouts are split, laid out, ordered and masked must not matter."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rlvr_core.api.rollouts import Group
from rlvr_core.api.verdicts import FailureCategory, Status, Verdict
from rlvr_core.selfcheck.bench import Bench
from rlvr_core.selfcheck.made_up import Key, key_of
from rlvr_core.selfcheck.measure import (
    TOLERANCE,
    Arrange,
    Measured,
    advantage_difference,
    gradient_difference,
    measure,
    plain,
)
from rlvr_core.selfcheck.result import Found, failed, not_applicable, ok

NO_SIGNAL = "made-up rewards gave no gradient, so that there was nothing to compare"
NOT_FINITE = "the gradient of made-up rollouts is not finite"


def partition(bench: Bench) -> Found:
    """Compare one micro-batch with several, down to one rollout each."""
    whole = plain(bench)
    if problem := _unusable(whole):
        return problem
    others = [measure(bench, micro_batch_tokens=budget) for budget in (1, *_budgets(bench))]
    counts = sorted({other.micro_batches for other in others} | {whole.micro_batches})
    if len(counts) == 1:
        return not_applicable(
            "only one made-up rollout has an advantage: there is nothing to split"
        )
    what = f"the update from {_enumerated(counts)} micro-batches"
    return _compared(what, whole, others)


def padding(bench: Bench) -> Found:
    """Compare prompts that are computed once a group with padded rows of their own."""
    shared = plain(bench)
    if problem := _unusable(shared):
        return problem
    rows = measure(bench, layout="rows")
    return _compared("the update with shared prompts and with padded rows", shared, [rows])


def permutation(bench: Bench) -> Found:
    """Compare orders of groups and of rollouts within them, from rewards to the gradient."""
    unmoved = plain(bench)
    if problem := _unusable(unmoved):
        return problem
    rewarded = _rewards(bench, lambda groups: groups)
    for arrange in (_reversed, _rotated):
        if problem := _rewards_differ("another order", rewarded, _rewards(bench, arrange)):
            return problem
    others = [measure(bench, arrange) for arrange in (_reversed, _rotated)]
    return _compared("the update from groups and rollouts in three orders", unmoved, others)


def mask(bench: Bench) -> Found:
    """Compare masked rollouts with rollouts that were never there."""
    absent = measure(bench, _without_masked)
    if problem := _unusable(absent):
        return problem
    without, masked = _rewards(bench, _without_masked), _rewards(bench, _masked)
    if problem := _rewards_differ("masked rollouts beside them", without, masked):
        return problem
    what = "the update with masked rollouts (their numbers all NaN) and without them"
    return _compared(what, absent, [measure(bench, _masked)])


def _unusable(measured: Measured) -> Found | None:
    if not measured.is_finite:
        return failed(NOT_FINITE)
    return None if measured.has_signal else not_applicable(NO_SIGNAL)


def _compared(what: str, first: Measured, others: Sequence[Measured]) -> Found:
    if not all(other.is_finite for other in others):
        return failed(NOT_FINITE)
    apart = max(gradient_difference(first, other) for other in others)
    measured = f"{what}, {first.tokens} tokens"
    if apart <= TOLERANCE:
        return ok(measured, apart, TOLERANCE)
    advantages = max(advantage_difference(first, other) for other in others)
    where = (
        f"advantages already differ, by {advantages:.2g} of the largest"
        if advantages > TOLERANCE
        else "advantages are equal, so it is the loss or a token weight"
    )
    return failed(f"{measured}: gradients differ; {where}", apart, TOLERANCE)


def _budgets(bench: Bench) -> list[int]:
    """Return token budgets that make about two and four micro-batches."""
    with bench.open() as opened:
        rollouts = [rollout for group in bench.material.groups() for rollout in group.rollouts]
        positions = sum(
            batch.input_ids_BS.numel() for batch in opened.runtime.micro_batches(rollouts)
        )
    return [positions // 2, positions // 4]


def _rewards(bench: Bench, arrange: Arrange) -> dict[Key, tuple[float | None, bool]]:
    """Return what stages 5 to 7 make of made-up rewards: (reward, whether its group is kept)."""
    with bench.open() as opened:
        hooks, session = opened.runtime.dispatcher, opened.session
        groups = arrange(bench.material.groups())
        hooks.shape_rewards(session, groups)
        hooks.gate_rewards(session, groups)
        kept = hooks.keep_groups(groups, session)
        return {
            key_of(rollout): (rollout.reward, keeps)
            for group, keeps in zip(groups, kept, strict=True)
            for rollout in group.valid
        }


def _rewards_differ(
    when: str,
    first: dict[Key, tuple[float | None, bool]],
    second: dict[Key, tuple[float | None, bool]],
) -> Found | None:
    for key in sorted(first.keys() | second.keys()):
        (reward, kept), (other_reward, other_kept) = (
            one.get(key, (None, False)) for one in (first, second)
        )
        if kept != other_kept:
            said = f"its group is kept: {kept}, with {when}: {other_kept}"
        elif not _equal(reward, other_reward):
            said = f"its reward is {reward}, with {when} {other_reward}"
        else:
            continue
        return failed(f"stages 5 to 7, row {key[0]!r}, sample {key[1]}: {said}")
    return None


def _equal(first: float | None, second: float | None) -> bool:
    if first is None or second is None:
        return first is second
    return math.isclose(first, second, rel_tol=1e-6, abs_tol=1e-9)


def _reversed(groups: list[Group]) -> list[Group]:
    for group in groups:
        group.rollouts.reverse()
    return groups[::-1]


def _rotated(groups: list[Group]) -> list[Group]:
    for group in groups:
        group.rollouts.append(group.rollouts.pop(0))
    return [*groups[1:], groups[0]]


def _masked(groups: list[Group]) -> list[Group]:
    """Mask the second rollout of each group and all of the dead group, and spoil their numbers."""
    for group in groups:
        for place, rollout in enumerate(group.rollouts):
            if place == 1 or group.is_dead:
                broken = place % 2 == 0
                rollout.verdict = Verdict(
                    status=Status.ERROR if broken else Status.ABSTAINED,
                    failure=FailureCategory.VERIFIER_EXCEPTION
                    if broken
                    else FailureCategory.NOT_APPLICABLE,
                    verifier=rollout.row.verifier,
                )
    for group in groups:
        for rollout in group.rollouts:
            if rollout.verdict is not None and not rollout.verdict.is_judgement:
                rollout.reward = None
                rollout.entropy = math.nan
                rollout.advantage = math.nan
                for segment in rollout.segments:
                    segment.logps = [math.nan] * len(segment.token_ids)
    return groups


def _without_masked(groups: list[Group]) -> list[Group]:
    for group in _masked(groups):
        group.rollouts[:] = group.valid
    return [group for group in groups if group.rollouts]


def _enumerated(counts: Sequence[int]) -> str:
    return f"{', '.join(map(str, counts[:-1]))} and {counts[-1]}"
