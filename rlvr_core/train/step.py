"""One training step: `collect` samples and judges groups, `learn` turns them into weights.

The hooks of the step are called here, in the order of ``docs/reference/hooks.md``; those of the
loss by `update`, and `rlvr_wrap_prompt` wherever the session samples. N groups on this process,
ragged inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlvr_core.api.rollouts import Group, Rollout
from rlvr_core.train.runtime import Runtime
from rlvr_core.train.session import StepSession
from rlvr_core.train.update import UpdateResult, needs_forward, update


@dataclass(slots=True, kw_only=True, eq=False)
class Collected:
    """What `collect` found on this process."""

    groups: list[Group]
    kept: list[bool]
    """For each group, whether it is trained on."""
    rounds: int


def collect(runtime: Runtime, session: StepSession) -> Collected:
    """Stages 1 to 7: sample, verify and reward groups until enough of them are kept.

    One bounded loop: a round that keeps too few groups is followed by another with new prompts.
    """
    hooks = runtime.dispatcher
    wanted = runtime.stack.rollout.prompts_per_step
    found = Collected(groups=[], kept=[], rounds=0)
    missing = wanted
    while missing > 0 and found.rounds < runtime.stack.rollout.max_rounds:
        rows = hooks.select_prompts(runtime.train_rows, missing, session)  # 1
        session.prompts_drawn += len(rows)
        groups = hooks.sample_groups(session, session.share(rows))  # 2
        session.score(groups)  # 3
        groups = hooks.rescue_groups(session, groups, settle=session.score)  # 4
        hooks.shape_rewards(session, groups)  # 5
        hooks.gate_rewards(session, groups)  # 6
        kept = hooks.keep_groups(groups, session)  # 7
        found.groups += groups
        found.kept += kept
        found.rounds += 1
        missing = wanted - int(session.sum_over_ranks([sum(found.kept)])[0])
    return found


def learn(runtime: Runtime, session: StepSession, groups: Sequence[Group]) -> UpdateResult:
    """Stages 8 to 11: estimate advantages of the kept groups and update the policy.

    A batch of rollouts is one optimiser update, or ``passes`` times ``mini_batches`` of them. With
    one, the old log-probabilities are the training pass's own, and the ratio is exactly 1. The
    engine gets the new weights.
    """
    estimate(runtime, session, groups)  # 8, 9
    settings = runtime.stack.train
    mini_batches = [groups[part :: settings.mini_batches] for part in range(settings.mini_batches)]
    total = UpdateResult()
    old_logps = None
    if settings.passes * settings.mini_batches > 1:
        rollouts = [r for r in trainable(groups) if needs_forward(runtime, r)]
        old_logps = runtime.policy_logps(rollouts)
    for _ in range(settings.passes):
        for mini_batch in mini_batches:
            total += update(runtime, session, mini_batch, old_logps)  # 10, 11
    if total.updates:
        runtime.engine.push(runtime.policy.model, session.weights_version + total.updates)
    return total


def estimate(runtime: Runtime, session: StepSession, groups: Sequence[Group]) -> None:
    """Stages 8 and 9: give every rollout its advantage, or one for each of its tokens."""
    hooks = runtime.dispatcher
    advantages = hooks.estimate_advantages(groups, session)  # 8
    advantages = hooks.adjust_advantages(groups, advantages, session)  # 9
    for group, of_group in zip(groups, advantages, strict=True):
        for rollout, advantage in zip(group.rollouts, of_group, strict=True):
            rollout.advantage = advantage


def trainable(groups: Sequence[Group]) -> list[Rollout]:
    """Return the rollouts that count: those with a reward, in group order."""
    return [rollout for group in groups for rollout in group.valid]
