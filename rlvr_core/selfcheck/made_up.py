"""Made-up rollouts: uneven lengths, a spread of rewards, log-probabilities off and on policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rlvr_core.api.plugin import Verifier
from rlvr_core.api.rollouts import FinishReason, Group, Rollout, Segment
from rlvr_core.api.verdicts import FailureCategory, Status, Verdict
from rlvr_core.rl.keyed_random import keyed_generator, keyed_uniforms
from rlvr_core.selfcheck.probe import Scale
from rlvr_core.train.runtime import Runtime
from rlvr_core.train.session import StepSession

SHARES = ((1.0, 0.0, 0.5, 0.0), (0.0, 1.0, 1.0, 0.0), (0.0, 0.0, 0.0, 0.0), (1.0, 0.25, 0.0))
"""Scores of the rollouts of each group, as a share of the verifier's scale. One group is dead."""
LARGEST_GROUP = max(map(len, SHARES))
SPREAD = 0.4
"""Largest log-ratio between the policy and the one that is said to have collected the rollouts."""

Key = tuple[str, int]
"""(row id, sample index), which names a rollout."""


def key_of(rollout: Rollout) -> Key:
    """Return what names a rollout, wherever it stands."""
    return rollout.row.id, rollout.sample_index


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """What a rollout is built from."""

    rollout: Rollout
    verdict: Verdict
    reward: float
    logps: list[float]
    """Under the policy, one a token."""
    noise: list[float]


@dataclass(frozen=True, slots=True)
class Material:
    """Everything that made-up groups are built from, the same whenever they are built."""

    groups_of_facts: Sequence[Sequence[_Facts]]

    def groups(self) -> list[Group]:
        """Return new groups with verdicts and rewards, as `collect` would hand them to `learn`."""
        return [
            Group(row=facts[0].rollout.row, rollouts=[_built(one) for one in facts])
            for facts in self.groups_of_facts
        ]

    def rewarded(self, rewards: Sequence[Sequence[float | None]]) -> list[Group]:
        """Return a group for each line of rewards between 0 and 1; None masks a rollout."""
        groups = []
        for number, of_group in enumerate(rewards):
            facts = self.groups_of_facts[number % len(self.groups_of_facts)]
            rollouts = [
                replace(
                    _built(facts[index % len(facts)]),
                    sample_index=number * len(of_group) + index,
                    verdict=_verdict_of(reward),
                    reward=reward,
                )
                for index, reward in enumerate(of_group)
            ]
            groups.append(Group(row=facts[0].rollout.row, rollouts=rollouts))
        return groups

    def old_logps(self, groups: Sequence[Group]) -> dict[int, Tensor]:
        """Return log-probabilities of another policy, by id() of the rollouts of `groups`."""
        of_key = {
            key_of(one.rollout): [
                logp - noise for logp, noise in zip(one.logps, one.noise, strict=True)
            ]
            for facts in self.groups_of_facts
            for one in facts
        }
        return {
            id(rollout): torch.tensor(of_key[key_of(rollout)])
            for group in groups
            for rollout in group.rollouts
        }


def _built(facts: _Facts) -> Rollout:
    made = facts.rollout
    [segment] = made.segments
    sampler_logps = [logp + noise / 4 for logp, noise in zip(facts.logps, facts.noise, strict=True)]
    return Rollout(
        row=made.row,
        sample_index=made.sample_index,
        completion=made.completion,
        segments=[Segment(token_ids=list(segment.token_ids), logps=sampler_logps)],
        finish_reason=made.finish_reason,
        weights_version=0,
        sampled_under=made.sampled_under,
        trained_under=made.trained_under,
        entropy=1.0,
        verdict=facts.verdict,
        reward=facts.reward,
    )


def _verdict_of(reward: float | None) -> Verdict:
    if reward is None:
        return Verdict(status=Status.ABSTAINED, failure=FailureCategory.NOT_APPLICABLE)
    return Scale().verdict(reward, "")


def make_material(runtime: Runtime, session: StepSession) -> Material:
    """Make up rollouts for the first rows of a runtime."""
    scales = {
        loaded.name: Scale.of(loaded.plugin)
        for loaded in runtime.dispatcher.plugins
        if isinstance(loaded.plugin, Verifier)
    }
    rows = runtime.train_rows
    made = [
        [
            _made_up(runtime, session, number, LARGEST_GROUP * (number // len(rows)) + index)
            for index in range(len(shares))
        ]
        for number, shares in enumerate(SHARES)
    ]
    logps = runtime.policy_logps([rollout for group in made for rollout in group])
    groups = []
    for of_group, shares in zip(made, SHARES, strict=True):
        facts = []
        for rollout, share in zip(of_group, shares, strict=True):
            name = rollout.row.verifier
            verdict = scales[name].verdict(share, name)
            uniforms = keyed_uniforms(rollout.length, "selfcheck", "policy", *key_of(rollout))
            facts.append(
                _Facts(
                    rollout=rollout,
                    verdict=verdict,
                    reward=runtime.reward_weights[name] * (verdict.score or 0.0),
                    logps=logps[id(rollout)].tolist(),
                    noise=(SPREAD * (2 * uniforms - 1)).tolist(),
                )
            )
        groups.append(facts)
    return Material(groups)


def _made_up(runtime: Runtime, session: StepSession, number: int, sample_index: int) -> Rollout:
    """Return a rollout of random bytes that ends with a stop token, or at the limit."""
    row = runtime.train_rows[number % len(runtime.train_rows)]
    draw = keyed_generator("selfcheck", "rollout", row.id, sample_index)
    limit = runtime.stack.rollout.max_completion_tokens
    length = draw.randint(1, limit)
    config = runtime.policy.model.config
    # The special ids of the tiny model are its first ones, the stop token the last of them.
    ids = [draw.randrange(config.eos_token_id + 1, config.vocab_size) for _ in range(length)]
    is_stopped = length < limit
    prompt = runtime.dispatcher.wrap_prompt(row.prompt, row, session)
    return Rollout(
        row=row,
        sample_index=sample_index,
        completion=runtime.tokenizer.decode(ids),
        segments=[Segment(token_ids=[*ids, config.eos_token_id] if is_stopped else ids)],
        finish_reason=FinishReason.STOP if is_stopped else FinishReason.LENGTH,
        weights_version=0,
        sampled_under=prompt,
        trained_under=prompt,
    )
