"""Small plugins for the rules of the step: shapers, wrappers and monitors. No torch here."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rlvr_core.api import (
    Action,
    ActionKind,
    EvalEvent,
    Group,
    Plugin,
    Row,
    Session,
    StepEvent,
    Strict,
    Verdict,
    VerifyBatch,
    hookimpl,
)


class Bonus(Plugin):
    """Adds a constant to every reward, at stage 5."""

    api_version = "1.0"

    class Config(Strict):
        amount: float = 1.0

    @hookimpl
    def rlvr_shape_rewards(
        self, session: Session, groups: Sequence[Group]
    ) -> list[list[float | None]]:
        return [
            [None if r.reward is None else r.reward + self.config.amount for r in group.rollouts]
            for group in groups
        ]


class LetterPay(Plugin):
    """Pays for the share of one character in a completion: a reward that went wrong."""

    api_version = "1.0"

    class Config(Strict):
        letter: str

    @hookimpl
    def rlvr_shape_rewards(self, groups: Sequence[Group]) -> list[list[float | None]]:
        return [
            [
                None if r.reward is None else r.completion.count(self.config.letter)
                for r in group.rollouts
            ]
            for group in groups
        ]


class Halver(Plugin):
    """Halves every score that any verifier gives, from around the call."""

    api_version = "1.0"

    @hookimpl(wrapper=True)
    def rlvr_verify(self, batch: VerifyBatch) -> Any:
        verdicts: Sequence[Verdict] = yield
        return [
            verdict if verdict.score is None else replace(verdict, score=verdict.score / 2)
            for verdict in verdicts
        ]


class Governor(Plugin):
    """Asks for what its settings say at given steps, and counts steps across resumes."""

    api_version = "1.0"

    class Config(Strict):
        at_step: int = 1
        learning_rate: float | None = None
        kl: float | None = None
        stop_after: int | None = None
        """Steps it must have seen, resumes included."""

    def __init__(self, config: Any = None, *, name: str = "") -> None:
        super().__init__(config, name=name)
        self.steps_seen = 0

    def state(self) -> Mapping[str, Any]:
        return {"steps_seen": self.steps_seen}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.steps_seen = state["steps_seen"]

    @hookimpl
    def rlvr_step_end(self, event: StepEvent) -> list[Action]:
        self.steps_seen += 1
        config, actions = self.config, []
        if event.step == config.at_step:
            for kind, value in (
                (ActionKind.SET_LEARNING_RATE, config.learning_rate),
                (ActionKind.SET_KL, config.kl),
            ):
                if value is not None:
                    actions.append(Action(kind=kind, value=value, reason=f"set to {value}"))
        if self.steps_seen == config.stop_after:
            actions.append(
                Action(kind=ActionKind.STOP, reason=f"{self.steps_seen} steps are enough")
            )
        return actions


class Faulty(Plugin):
    """A monitor with a bug."""

    api_version = "1.0"

    @hookimpl
    def rlvr_step_end(self, event: StepEvent) -> Action:
        return Action(kind=ActionKind.WARN, reason=str(event.metrics["no such key"]))


class Canaries(Plugin):
    """Adds one row to every evaluation and warns of what the policy says to it."""

    api_version = "1.0"

    class Config(Strict):
        prompt: str
        verifier: str
        ground_truth: dict[str, Any]

    @hookimpl
    def rlvr_eval_prompts(self, split: str) -> list[Row]:
        config = self.config
        return [
            Row(
                id=f"canary-{split}",
                prompt=config.prompt,
                verifier=config.verifier,
                ground_truth=config.ground_truth,
            )
        ]

    @hookimpl
    def rlvr_eval_end(self, event: EvalEvent) -> Action:
        found = [r for r in event.rollouts if r.row.id == f"{self.name}/canary-{event.split}"]
        lines = [f"{r.row.id} {r.verdict.status.value} of {len(event.rollouts)}" for r in found]
        return Action(kind=ActionKind.WARN, reason=", ".join(lines))


class Meddler(Plugin):
    """Draws from every global generator and asks for nothing: a monitor as careless as can be."""

    api_version = "1.0"

    @hookimpl
    def rlvr_step_end(self, event: StepEvent) -> None:
        self._draw()

    @hookimpl
    def rlvr_eval_end(self, event: EvalEvent) -> None:
        self._draw()

    def _draw(self) -> None:
        import numpy
        import torch

        random.random()
        numpy.random.rand(3)
        torch.rand(3)
        torch.manual_seed(random.randrange(2**31))
