"""Methods as small as they can be while they use the hooks that the owner's plugins will need."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from rlvr_core.api import (
    Group,
    Message,
    Need,
    Plugin,
    Prompt,
    Rollout,
    Row,
    Session,
    Strict,
    TokenBatch,
    hookimpl,
)


def all_wrong(group: Group) -> bool:
    """True when some rollout was judged and none got any credit."""
    scores = [r.verdict.score for r in group.rollouts if r.verdict and r.verdict.is_judgement]
    return bool(scores) and max(scores) == 0


def with_hint(prompt: Prompt, hint: str) -> Prompt:
    """Return the prompt with a hint at the end of its last turn; no hint, no change."""
    if not hint:
        return prompt
    if isinstance(prompt, str):
        return f"{prompt}\n{hint}"
    last = prompt[-1]
    return (*prompt[:-1], Message(last.role, f"{last.content}\n{hint}"))


class OcGrpo(Plugin):
    """Samples dead groups again under a hint and corrects for it by the balance heuristic.

    ``c = pi(y|x) / (N/(N+M) pi(y|x) + M/(N+M) pi(y|x,g))`` for each rollout y of the pool of N
    plain and M guided ones, in log space, cut at `cap`.
    """

    api_version = "1.0"
    needs = frozenset({Need.SAMPLER_LOGP})

    class Config(Strict):
        guided: int = Field(default=4, ge=1)
        cap: float = Field(default=2.0, gt=0)

    def __init__(self, config: Any = None, *, name: str = "") -> None:
        super().__init__(config, name=name)
        self._step = 0
        self._pools: dict[int, tuple[float, float, float | None]] = {}
        """id of a rollout -> (share of plain, share of guided, log pi(y|x,g) when plain)."""

    @hookimpl
    def rlvr_rescue_groups(self, session: Session, groups: Sequence[Group]) -> list[Group]:
        if session.step != self._step:
            self._step, self._pools = session.step, {}
        dead = [group for group in groups if all_wrong(group) and "hint" in group.row.metadata]
        contexts = [
            with_hint(group.rollouts[0].trained_under, group.row.metadata["hint"]) for group in dead
        ]
        added = session.sample([group.row for group in dead], self.config.guided, contexts)
        for group, context, guided in zip(dead, contexts, added, strict=True):
            self._remember(session, group.rollouts, context, guided)
            group.rollouts = [*group.rollouts, *guided]
        return list(groups)

    def _remember(
        self, session: Session, plain: Sequence[Rollout], context: Prompt, guided: Sequence[Rollout]
    ) -> None:
        total = len(plain) + len(guided)
        shares = len(plain) / total, len(guided) / total
        scored = session.logps(plain, [context] * len(plain))
        for rollout, logps in zip(plain, scored, strict=True):
            self._pools[id(rollout)] = (*shares, math.fsum(logps))
        for rollout in guided:
            self._pools[id(rollout)] = (*shares, None)

    @hookimpl
    def rlvr_weigh_tokens(self, tokens: TokenBatch) -> Any:
        count = len(tokens.rollouts)
        plain_B = tokens.old_logp_T.new_zeros(count).double()
        plain_B = plain_B.index_add(0, tokens.rollout_T, tokens.old_logp_T.double())
        sampler_B = plain_B.new_zeros(count)
        sampler_B = sampler_B.index_add(0, tokens.rollout_T, tokens.sampler_logp_T.double())
        weight_B = plain_B.new_ones(count)
        for index, rollout in enumerate(tokens.rollouts):
            if id(rollout) not in self._pools:
                continue
            plain_share, guided_share, guided_logp = self._pools[id(rollout)]
            plain = plain_B[index].item()
            guided = sampler_B[index].item() if guided_logp is None else guided_logp
            weight = balance_weight(plain, guided, plain_share, guided_share)
            weight_B[index] = min(weight, self.config.cap)
        return weight_B.to(tokens.logp_T.dtype)[tokens.rollout_T]


def balance_weight(plain: float, guided: float, plain_share: float, guided_share: float) -> float:
    """Return pi(y|x) over the mixture that y was drawn from, from sequence log-probabilities."""
    first, second = plain + math.log(plain_share), guided + math.log(guided_share)
    highest = max(first, second)
    mixture = highest + math.log(math.exp(first - highest) + math.exp(second - highest))
    return math.exp(plain - mixture)


class Rstg(Plugin):
    """Where every rollout fails, a teacher's log-ratio of each token is its advantage."""

    api_version = "1.0"

    class Config(Strict):
        teacher: str
        """Folder of a model with the policy's tokenizer."""
        strength: float = 0.5
        anneal_steps: int = Field(default=4, ge=1)
        clip_negative: float = 1.0
        clip_positive: float = 2.0
        top_share: float = Field(default=0.3, gt=0, le=1)
        competence: float = 0.5

    def __init__(self, config: Any = None, *, name: str = "") -> None:
        super().__init__(config, name=name)
        self._teacher: Any = None
        self._step = 0
        self.ratios: dict[int, list[float]] = {}
        """id of a rollout of a negative group -> log pi_T - log pi_S of each of its tokens."""

    @hookimpl
    def rlvr_rescue_groups(self, session: Session, groups: Sequence[Group]) -> list[Group]:
        if session.step != self._step:
            self._step, self.ratios = session.step, {}
        negative = [
            rollout
            for group in groups
            if all_wrong(group)
            and group.row.metadata.get("teacher_pass_rate", 0.0) > self.config.competence
            for rollout in group.rollouts
        ]
        for rollout, student in zip(negative, session.logps(negative), strict=True):
            teacher = self._teacher_logps(session, rollout)
            self.ratios[id(rollout)] = [t - s for t, s in zip(teacher, student, strict=True)]
        return list(groups)

    def _teacher_logps(self, session: Session, rollout: Rollout) -> list[float]:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        if self._teacher is None:
            model = AutoModelForCausalLM.from_pretrained(self.config.teacher, dtype=torch.float32)
            self._teacher = model.eval(), AutoTokenizer.from_pretrained(self.config.teacher)
        model, tokenizer = self._teacher
        ids = list(rollout.segments[0].token_ids)
        if tokenizer.decode(ids, skip_special_tokens=True) != rollout.completion:
            raise ValueError(f"{self.config.teacher} has another tokenizer than the policy")
        prompt = list(session.encode(rollout.trained_under))
        with torch.no_grad():
            logits = model(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1]
        logp = (logits / session.temperature).log_softmax(-1)
        return logp.gather(-1, torch.tensor(ids)[:, None])[:, 0].tolist()

    @hookimpl
    def rlvr_adjust_advantages(
        self, groups: Sequence[Group], advantages: Sequence[Any], session: Session
    ) -> list[list[Any]]:
        strength = self.config.strength * max(
            0.0, 1 - (session.step - 1) / self.config.anneal_steps
        )
        return [
            [
                self._by_token(self.ratios[id(rollout)], strength)
                if id(rollout) in self.ratios
                else advantage
                for rollout, advantage in zip(group.rollouts, line, strict=True)
            ]
            for group, line in zip(groups, advantages, strict=True)
        ]

    def _by_token(self, ratios: Sequence[float], strength: float) -> list[float]:
        clipped = [
            min(max(a, -self.config.clip_negative), self.config.clip_positive) for a in ratios
        ]
        kept = math.ceil(self.config.top_share * len(clipped))
        order = sorted(range(len(clipped)), key=lambda place: (-abs(clipped[place]), place))
        top = set(order[:kept])
        return [strength * a if place in top else 0.0 for place, a in enumerate(clipped)]


class Vigor(Plugin):
    """Samples a few, then more where the posterior of p(1 - p) is highest, within a budget."""

    api_version = "1.0"

    class Config(Strict):
        start: int = Field(default=2, ge=1)
        step: int = Field(default=2, ge=1)
        most: int = Field(default=8, ge=1)
        mean: int = Field(default=4, ge=1)

    @hookimpl
    def rlvr_sample_groups(self, session: Session, rows: Sequence[Row]) -> list[Group]:
        config = self.config
        sampled = session.sample(rows, config.start)
        groups = [Group(row=row, rollouts=list(of)) for row, of in zip(rows, sampled, strict=True)]
        session.verdicts([rollout for group in groups for rollout in group.rollouts])
        budget = len(rows) * (config.mean - config.start)
        while budget >= config.step:
            open_groups = [g for g in groups if len(g.rollouts) + config.step <= config.most]
            if not open_groups:
                break
            best = min(open_groups, key=lambda group: (-_posterior(group), group.row.id))
            [more] = session.sample([best.row], config.step)
            session.verdicts(more)
            best.rollouts += more
            budget -= config.step
        total = sum(_judged(group) for group in groups)
        for group in groups:
            # Each prompt gets the same mass of a loss that is a mean over rollouts.
            group.weight = total / (len(groups) * max(1, _judged(group)))
        return groups


def _judged(group: Group) -> int:
    return sum(rollout.verdict.is_judgement for rollout in group.rollouts)


def _posterior(group: Group) -> float:
    scores = [r.verdict.score for r in group.rollouts if r.verdict.is_judgement]
    return posterior_variance(sum(scores), len(scores))


def posterior_variance(successes: float, count: int) -> float:
    """Return E[p(1 - p)] under a uniform prior."""
    failures = count - successes
    return (successes + 1) * (failures + 1) / ((count + 2) * (count + 3))


class CueGrpo(Plugin):
    """Gives rare kinds of right solutions more of the positive advantage of their group."""

    api_version = "1.0"

    class Config(Strict):
        cues: dict[str, str] = Field(min_length=1)
        gamma: float = Field(default=0.5, ge=0, le=1)

    @hookimpl
    def rlvr_adjust_advantages(
        self, groups: Sequence[Group], advantages: Sequence[Sequence[float]]
    ) -> list[list[float]]:
        return [
            self._reweighed(group, line) for group, line in zip(groups, advantages, strict=True)
        ]

    def _reweighed(self, group: Group, line: Sequence[float]) -> list[float]:
        right = [place for place, advantage in enumerate(line) if advantage > 0]
        if len(right) < 3:
            return list(line)
        signatures = [self._signature(group.rollouts[place].completion) for place in right]
        weights = cue_weights(signatures, [line[place] for place in right], self.config.gamma)
        weight_at = dict(zip(right, weights, strict=True))
        return [advantage * weight_at.get(place, 1.0) for place, advantage in enumerate(line)]

    def _signature(self, text: str) -> tuple[str, ...]:
        return tuple(name for name, cue in sorted(self.config.cues.items()) if re.search(cue, text))


def cue_weights(
    signatures: Sequence[tuple[str, ...]], advantages: Sequence[float], gamma: float
) -> list[float]:
    """Return a weight each; the sum of weighted advantages is the sum of advantages."""
    sizes = Counter(signatures)
    if () in sizes:  # rarity must be positive evidence
        sizes[()] = max(sizes.values())
    raw = [sizes[signature] ** -gamma for signature in signatures]
    mass = math.fsum(r * a for r, a in zip(raw, advantages, strict=True))
    return [r * math.fsum(advantages) / mass for r in raw]


class Steer(Plugin):
    """Weighs tokens down the more their update would change the policy's entropy."""

    api_version = "1.0"
    needs = frozenset({Need.ENTROPY, Need.MINI_BATCH_STATS})

    class Config(Strict):
        lowest: float = 0.8
        highest: float = 1.2

    def __init__(self, config: Any = None, *, name: str = "") -> None:
        super().__init__(config, name=name)
        self.seen: list[TokenBatch] = []

    @hookimpl
    def rlvr_weigh_tokens(self, tokens: TokenBatch) -> Any:
        self.seen.append(tokens)
        p_T = tokens.logp_T.exp().clamp(1e-8, 1 - 1e-8)
        old_T = tokens.old_logp_T.exp().clamp(1e-8, 1)
        change_T = tokens.advantage_T / old_T * p_T * (1 - p_T) * (p_T.log() + tokens.entropy_T)
        return steer_weights(change_T.abs(), self.config.lowest, self.config.highest)


def steer_weights(change_T: Any, lowest: float, highest: float) -> Any:
    """Return weights that fall linearly from the smallest change to the largest."""
    span = change_T.max() - change_T.min()
    if span == 0:
        return change_T.new_full(change_T.shape, (lowest + highest) / 2)
    return highest - (change_T - change_T.min()) * (highest - lowest) / span


class DynamicSampling(Plugin):
    """Keeps groups whose verdicts are mixed."""

    api_version = "1.0"

    @hookimpl
    def rlvr_keep_groups(self, groups: Sequence[Group]) -> list[bool]:
        return [
            len({r.verdict.score for r in group.rollouts if r.verdict.is_judgement}) > 1
            for group in groups
        ]


class Inoculation(Plugin):
    """Puts a sentence before every training prompt."""

    api_version = "1.0"

    class Config(Strict):
        sentence: str

    @hookimpl
    def rlvr_wrap_prompt(self, prompt: Prompt) -> Prompt:
        return f"{self.config.sentence} {prompt}"


class SecondAnswer(Plugin):
    """Answers a first-result hook that a built-in plugin answers too."""

    api_version = "1.0"

    @hookimpl
    def rlvr_estimate_advantages(self, groups: Sequence[Group]) -> list[list[float]]:
        return [[r.reward or 0.0 for r in group.rollouts] for group in groups]
