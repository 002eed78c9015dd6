"""Plugins with one mistake each, for the checks that are to find it, and sound ones beside them."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rlvr_core.api import (
    Action,
    ActionKind,
    EvalEvent,
    Finding,
    FinishReason,
    Group,
    Need,
    Plugin,
    PolicyLoss,
    Rollout,
    Row,
    RowVerifier,
    Segment,
    Session,
    Severity,
    Status,
    StepEvent,
    Strict,
    TokenBatch,
    Verdict,
    VerifyRow,
    hookimpl,
)


class LocalMean(Plugin):
    """A loss that takes the mean of its micro-batch."""

    api_version = "1.0"

    @hookimpl
    def rlvr_policy_loss(self, tokens: TokenBatch) -> PolicyLoss:
        ratio_T = (tokens.logp_T - tokens.old_logp_T).exp()
        return PolicyLoss(loss_T=-ratio_T * tokens.advantage_T / len(ratio_T))


class OffPolicyLocalMean(Plugin):
    """The same mistake, which shows only when rollouts come from another policy."""

    api_version = "1.0"

    @hookimpl
    def rlvr_policy_loss(self, tokens: TokenBatch) -> PolicyLoss:
        log_ratio_T = tokens.logp_T - tokens.old_logp_T
        drift = log_ratio_T.detach().mean()
        return PolicyLoss(loss_T=-(log_ratio_T - drift).exp() * tokens.advantage_T)


class PeeksAtLayout(Plugin):
    """A token weight that is another one where prompts are not shared."""

    api_version = "1.0"

    @hookimpl
    def rlvr_weigh_tokens(self, tokens: TokenBatch, session: Any) -> Any:
        weight = 1.0 if session.runtime.policy.layout.share_prompts else 0.9
        return tokens.logp_T.new_full(tokens.logp_T.shape, weight)


class FirstIsBaseline(Plugin):
    """Compares every rollout with the one that happens to stand first."""

    api_version = "1.0"

    @hookimpl
    def rlvr_estimate_advantages(self, groups: Sequence[Group]) -> list[list[float]]:
        return [
            [r.reward - g.valid[0].reward if r.is_valid else 0.0 for r in g.rollouts]
            for g in groups
        ]


class PaysTheFirst(Plugin):
    """Adds to the reward of the rollout that happens to stand first."""

    api_version = "1.0"

    @hookimpl
    def rlvr_shape_rewards(self, groups: Sequence[Group]) -> list[list[float | None]]:
        return [
            [
                None if r.reward is None else r.reward + (place == 0)
                for place, r in enumerate(g.rollouts)
            ]
            for g in groups
        ]


class CountsMasked(Plugin):
    """Divides by all rollouts of a group, masked ones too."""

    api_version = "1.0"

    @hookimpl
    def rlvr_estimate_advantages(self, groups: Sequence[Group]) -> list[list[float]]:
        return [
            [
                r.reward - math.fsum(v.reward for v in g.valid) / len(g.rollouts)
                if r.is_valid
                else 0.0
                for r in g.rollouts
            ]
            for g in groups
        ]


class WeighsByMasked(Plugin):
    """A token weight from the lengths of all rollouts, masked ones too."""

    api_version = "1.0"

    def __init__(self, config: Any = None, *, name: str = "") -> None:
        super().__init__(config, name=name)
        self._tokens = 0

    @hookimpl
    def rlvr_adjust_advantages(self, groups: Sequence[Group], advantages: Any) -> Any:
        self._tokens = sum(r.length for g in groups for r in g.rollouts)
        return advantages

    @hookimpl
    def rlvr_weigh_tokens(self, tokens: TokenBatch) -> Any:
        return tokens.logp_T.new_full(tokens.logp_T.shape, 1 / max(self._tokens, 1))


class DropsFirstToken(Plugin):
    """Takes the first token off every completion, which the policy did sample."""

    api_version = "1.0"

    @hookimpl
    def rlvr_sample_groups(self, session: Session, rows: Sequence[Row]) -> list[Group]:
        groups = []
        for row, rollouts in zip(rows, session.sample(rows, session.group_size), strict=True):
            for rollout in rollouts:
                [segment] = rollout.segments
                if len(segment.token_ids) > 1:
                    rest = Segment(token_ids=segment.token_ids[1:], logps=segment.logps[1:])
                    rollout.segments = [rest]
            groups.append(Group(row=row, rollouts=rollouts))
        return groups


class LosesLogps(Plugin):
    """Returns rollouts without the log-probabilities that they were sampled with."""

    api_version = "1.0"

    @hookimpl
    def rlvr_rescue_groups(self, groups: Sequence[Group]) -> list[Group]:
        for group in groups:
            for rollout in group.rollouts:
                rollout.segments = [replace(segment, logps=()) for segment in rollout.segments]
        return list(groups)


class OwnShareOnly(Plugin):
    """Compares with the mean of the batch, and means the part of it on its own process."""

    api_version = "1.0"

    @hookimpl
    def rlvr_estimate_advantages(self, groups: Sequence[Group]) -> list[list[float]]:
        rewards = [r.reward for g in groups for r in g.valid]
        mean = math.fsum(rewards) / max(len(rewards), 1)
        return [[r.reward - mean if r.is_valid else 0.0 for r in g.rollouts] for g in groups]


class UnequalSums(Plugin):
    """Asks for sums over processes once for each of its groups."""

    api_version = "1.0"

    @hookimpl
    def rlvr_estimate_advantages(
        self, groups: Sequence[Group], session: Session
    ) -> list[list[float]]:
        lines = []
        for group in groups:
            rewards = [r.reward for r in group.valid]
            mean = math.fsum(rewards) / max(len(rewards), 1)
            if max(rewards, default=0) - min(rewards, default=0) > 0.6:
                session.sum_over_ranks([1.0])
            lines.append([r.reward - mean if r.is_valid else 0.0 for r in group.rollouts])
        return lines


class LeaveOneOut(Plugin):
    """Divides by the standard deviation of the others, which may be all but 0."""

    api_version = "1.0"

    @hookimpl
    def rlvr_estimate_advantages(self, groups: Sequence[Group]) -> list[list[float]]:
        return [[self._of(g, r) if r.is_valid else 0.0 for r in g.rollouts] for g in groups]

    def _of(self, group: Group, rollout: Any) -> float:
        others = [r.reward for r in group.valid if r is not rollout]
        if not others:
            return 0.0
        mean = math.fsum(others) / len(others)
        std = math.sqrt(math.fsum((o - mean) ** 2 for o in others) / len(others))
        return (rollout.reward - mean) / (std + 1e-6)


class NoBaseline(Plugin):
    """Takes the reward for the advantage."""

    api_version = "1.0"

    @hookimpl
    def rlvr_estimate_advantages(self, groups: Sequence[Group]) -> list[list[float]]:
        return [[r.reward or 0.0 for r in g.rollouts] for g in groups]


class NoSignal(Plugin):
    """Gives nobody an advantage."""

    api_version = "1.0"

    @hookimpl
    def rlvr_estimate_advantages(self, groups: Sequence[Group]) -> list[list[float]]:
        return [[0.0 for _ in g.rollouts] for g in groups]


class AloneIsNan(Plugin):
    """Divides by zero where a group has one rollout."""

    api_version = "1.0"

    @hookimpl
    def rlvr_estimate_advantages(self, groups: Sequence[Group]) -> list[list[float]]:
        return [self._of(g) for g in groups]

    def _of(self, group: Group) -> list[float]:
        rewards = [r.reward for r in group.valid]
        if not rewards:
            return [0.0] * len(group.rollouts)
        mean = math.fsum(rewards) / len(rewards)
        bessel = len(rewards) / (len(rewards) - 1) if len(rewards) > 1 else math.nan
        return [(r.reward - mean) * bessel if r.is_valid else 0.0 for r in group.rollouts]


class DeclaresTooMuch(Plugin):
    """Asks for entropies that it does not read."""

    api_version = "1.0"
    needs = frozenset({Need.ENTROPY})

    @hookimpl
    def rlvr_weigh_tokens(self, tokens: TokenBatch) -> Any:
        return tokens.logp_T.new_ones(tokens.logp_T.shape)


class ReadsEntropy(Plugin):
    """Reads entropies, as it declares."""

    api_version = "1.0"
    needs = frozenset({Need.ENTROPY})

    @hookimpl
    def rlvr_weigh_tokens(self, tokens: TokenBatch) -> Any:
        return 1 / (1 + tokens.entropy_T)


class DeclaresTooLittle(Plugin):
    """Reads entropies that it gets only beside a plugin that declares them."""

    api_version = "1.0"

    @hookimpl
    def rlvr_weigh_tokens(self, tokens: TokenBatch) -> Any:
        return 1 / (1 + tokens.entropy_T)


class SharedChance(Plugin):
    """Chooses prompts with the process's own generator."""

    api_version = "1.0"

    @hookimpl
    def rlvr_select_prompts(self, rows: Sequence[Row], count: int) -> list[Row]:
        return random.sample(list(rows), count)


class LearnsByChance(Plugin):
    """A monitor that sets the learning rate by torch's own generator."""

    api_version = "1.0"

    @hookimpl
    def rlvr_step_end(self, event: StepEvent) -> Action:
        import torch

        value = 1e-3 * (1 + float(torch.rand(())))
        return Action(kind=ActionKind.SET_LEARNING_RATE, value=value, reason="a whim")


class Forgets(Plugin):
    """Makes advantages smaller with every step, and does not save which step it is at."""

    api_version = "1.0"

    def __init__(self, config: Any = None, *, name: str = "") -> None:
        super().__init__(config, name=name)
        self.steps = 0

    @hookimpl
    def rlvr_adjust_advantages(self, groups: Sequence[Group], advantages: Any) -> Any:
        if groups:
            self.steps += 1
        return [[advantage / max(self.steps, 1) for advantage in line] for line in advantages]


class Remembers(Forgets):
    """The same without the mistake."""

    def state(self) -> Mapping[str, Any]:
        return {"steps": self.steps}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.steps = state["steps"]


class LoadsHalf(Remembers):
    """Saves all and takes back none."""

    def load_state(self, state: Mapping[str, Any]) -> None:
        pass


class Exams(Plugin):
    """Lets evaluations make advantages smaller."""

    api_version = "1.0"

    def __init__(self, config: Any = None, *, name: str = "") -> None:
        super().__init__(config, name=name)
        self.seen = 0

    def state(self) -> Mapping[str, Any]:
        return {"seen": self.seen}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.seen = state["seen"]

    @hookimpl
    def rlvr_eval_end(self, event: EvalEvent) -> None:
        self.seen += 1

    @hookimpl
    def rlvr_adjust_advantages(self, groups: Sequence[Group], advantages: Any) -> Any:
        return [[advantage / (1 + self.seen) for advantage in line] for line in advantages]


class Raises(Plugin):
    """An estimator that is broken."""

    api_version = "1.0"

    @hookimpl
    def rlvr_estimate_advantages(self, groups: Sequence[Group]) -> list[list[float]]:
        return [[1 / 0]]


class BrokenMonitor(Plugin):
    """A monitor that is broken: a run goes on without it."""

    api_version = "1.0"

    @hookimpl
    def rlvr_step_end(self, event: StepEvent) -> Action:
        raise KeyError("loss")


class StopsAndSlows(Plugin):
    """A monitor that acts on evaluations, as it may; it would end every run at once, too."""

    api_version = "1.0"

    @hookimpl
    def rlvr_step_end(self, event: StepEvent) -> Action:
        return Action(kind=ActionKind.STOP, reason="enough")

    @hookimpl
    def rlvr_eval_end(self, event: EvalEvent) -> Action:
        return Action(kind=ActionKind.SET_LEARNING_RATE, value=1e-5, reason="seen enough")


class Truth(Strict):
    """What rows of the verifiers below say."""

    answer: str = ""


class Moody(RowVerifier):
    """Changes its mind each time it is asked."""

    api_version = "1.0"
    GroundTruth = Truth

    def __init__(self, config: Any = None, *, name: str = "") -> None:
        super().__init__(config, name=name)
        self._asked = 0

    def verify_row(self, row: VerifyRow) -> Verdict:
        self._asked += 1
        return self.judge(float(bool(row.completion.strip()) and self._asked % 5 < 2))


class Brittle(RowVerifier):
    """Breaks on a NUL character."""

    api_version = "1.0"
    GroundTruth = Truth

    def verify_row(self, row: VerifyRow) -> Verdict:
        if "\0" in row.completion:
            raise ValueError("embedded null byte")
        return self.judge(float(row.completion == row.ground_truth.answer))


class NoCommas(RowVerifier):
    """Pays for the absence of something."""

    api_version = "1.0"
    GroundTruth = Truth

    def verify_row(self, row: VerifyRow) -> Verdict:
        return self.judge(float("," not in row.completion))


class Abstains(RowVerifier):
    """Judges nothing."""

    api_version = "1.0"
    GroundTruth = Truth

    def verify_row(self, row: VerifyRow) -> Verdict:
        return self.abstain()


class Auditor(Plugin):
    """Refuses the prompts unless an answer to them passes: an audit with verdicts."""

    api_version = "1.0"

    class Config(Strict):
        wanted: str

    @hookimpl
    def rlvr_audit_prompts(self, rows: Sequence[Row], session: Session) -> list[Finding]:
        answers = [
            Rollout(
                row=row,
                sample_index=0,
                completion=self.config.wanted,
                segments=[],
                finish_reason=FinishReason.STOP,
                weights_version=0,
                sampled_under=row.prompt,
                trained_under=row.prompt,
            )
            for row in rows
        ]
        wrong = sum(v.status is not Status.PASSED for v in session.verdicts(answers))
        severity = Severity.REFUSE if wrong else Severity.WARN
        return [Finding(severity=severity, message=f"{wrong} answers are wrong")]
