"""Plugins of the training process that go wrong where, and how, their settings say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fixture_faults import UnprintableError
from pydantic import BaseModel

from rlvr_core.api import (
    Action,
    ActionKind,
    EvalEvent,
    Group,
    Need,
    Plugin,
    PolicyLoss,
    RunInfo,
    StepEvent,
    Strict,
    TokenBatch,
    Verdict,
    VerifyBatch,
    hookimpl,
)

VALUES: Mapping[str, Any] = {
    "nan": float("nan"),
    "inf": float("inf"),
    "huge": 1e300,
    "text": "1.0",
    "list": [1.0],
    "none": None,
    "minus": -1.0,
    "one": 1.0,
}


class Shaper(Plugin):
    """Gives the first rollout of each group a value."""

    api_version = "1.0"

    class Config(Strict):
        value: str

    @hookimpl
    def rlvr_shape_rewards(self, groups: Sequence[Group]) -> Any:
        value = VALUES[self.config.value]
        return [[value, *[r.reward for r in group.rollouts[1:]]] for group in groups]


class Scale(Plugin):
    """Multiplies every reward."""

    api_version = "1.0"

    class Config(Strict):
        by: float

    @hookimpl
    def rlvr_shape_rewards(self, groups: Sequence[Group]) -> Any:
        return [
            [None if r.reward is None else r.reward * self.config.by for r in group.rollouts]
            for group in groups
        ]


class Wrapper(Plugin):
    """Replaces the score of every verdict, around the call of any verifier."""

    api_version = "1.0"

    class Config(Strict):
        value: str

    @hookimpl(wrapper=True)
    def rlvr_verify(self, batch: VerifyBatch) -> Any:
        verdicts: Sequence[Verdict] = yield
        return [replace(verdict, score=VALUES[self.config.value]) for verdict in verdicts]


class LooseConfig(BaseModel):
    """Lets pass what core's own base refuses."""

    share: float = 0.5
    steps: list[float] = []


class Loose(Plugin):
    """A monitor with such settings."""

    api_version = "1.0"
    Config = LooseConfig

    @hookimpl
    def rlvr_step_end(self, event: StepEvent) -> None:
        return None


class Watcher(Plugin):
    """A monitor that breaks at every hook."""

    api_version = "1.0"

    class Config(Strict):
        how: str = "raise"

    def _break(self) -> None:
        if self.config.how == "exit":
            raise SystemExit(3)
        raise KeyError("no such key")

    @hookimpl
    def rlvr_run_start(self, run: RunInfo) -> None:
        self._break()

    @hookimpl
    def rlvr_step_end(self, event: StepEvent) -> None:
        self._break()

    @hookimpl
    def rlvr_eval_prompts(self, split: str) -> None:
        self._break()

    @hookimpl
    def rlvr_eval_end(self, event: EvalEvent) -> None:
        self._break()

    @hookimpl
    def rlvr_run_end(self, run: RunInfo, status: str) -> None:
        self._break()


class Acts(Plugin):
    """A monitor that asks for one action after each step."""

    api_version = "1.0"

    class Config(Strict):
        kind: str
        value: str

    @hookimpl
    def rlvr_step_end(self, event: StepEvent) -> Any:
        kind: Any = self.config.kind
        if kind in tuple(ActionKind):
            kind = ActionKind(kind)
        return Action(kind=kind, value=VALUES[self.config.value], reason="because")


class Wrap(Plugin):
    """Puts text in front of every prompt."""

    api_version = "1.0"

    class Config(Strict):
        times: int = 0
        unprintable: bool = False

    @hookimpl
    def rlvr_wrap_prompt(self, prompt: Any) -> Any:
        if self.config.unprintable:
            raise UnprintableError
        return "wrap " * self.config.times + prompt


class OwnLoss(Plugin):
    """What core's own loss computes with its default settings, written once more by a user."""

    api_version = "1.0"

    class Config(Strict):
        metric: str | None = None
        hoards: bool = False

    @hookimpl
    def rlvr_policy_loss(self, tokens: TokenBatch) -> PolicyLoss:
        if self.config.hoards:
            tokens.logp_T.new_ones(10**15)
        ratio_T = (tokens.logp_T - tokens.old_logp_T).exp()
        clipped_T = ratio_T.clamp(0.8, 1.2)
        advantage_T = tokens.advantage_T
        loss_T = -(ratio_T * advantage_T).minimum(clipped_T * advantage_T)
        metrics = {self.config.metric: loss_T.detach()} if self.config.metric else {}
        return PolicyLoss(loss_T=loss_T, metrics=metrics)


class WholeBatch(Plugin):
    """Weighs tokens by what it sees of the whole mini-batch."""

    api_version = "1.0"

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset({Need.MINI_BATCH_STATS})

    @hookimpl
    def rlvr_weigh_tokens(self, tokens: TokenBatch) -> Any:
        return (tokens.advantage_T.abs() >= tokens.advantage_T.abs().median()).float()
