"""Plugins that would show it if a resumed run sampled or judged something twice."""

import os
import time
from pathlib import Path

from rlvr_core.api import (
    Action,
    ActionKind,
    FailureCategory,
    Group,
    Plugin,
    RowVerifier,
    Strict,
    VerifyRow,
    hookimpl,
)

ENTRY_POINTS = """
[rlvr.verifiers]
resume-steady = fixture_resume:Steady
resume-witness = fixture_resume:Witness

[rlvr.samplers]
resume-picky = fixture_resume:Picky

[rlvr.monitors]
resume-discount = fixture_resume:Discount
resume-governor = fixture_resume:Governor
resume-leaver = fixture_resume:Leaver
"""


class Steady(RowVerifier):
    """Says the same of a completion every time, and different things of most: all groups teach."""

    api_version = "1.0"

    class Config(Strict):
        delay_s: float = 0.0

    class GroundTruth(Strict):
        pass

    def verify_row(self, row: VerifyRow):
        time.sleep(self.config.delay_s)
        return self.judge(sum(map(ord, row.completion)) % 5 / 4)


class Witness(RowVerifier):
    """Writes down every row that it is asked about, and judges by the toss of a coin."""

    api_version = "1.0"

    class Config(Strict):
        log: str
        """File that gets the id of every row."""
        down: str = ""
        """While this file exists, every call fails as that of a service does that is down."""

    class GroundTruth(Strict):
        answer: str

    def verify_row(self, row: VerifyRow):
        with Path(self.config.log).open("a") as log:
            log.write(row.id + "\n")
        if self.config.down and Path(self.config.down).exists():
            raise ConnectionError("the service is down")
        if os.urandom(1)[0] < 20:
            return self.abstain(FailureCategory.NOT_APPLICABLE)
        return self.judge(os.urandom(1)[0] / 255, noise=os.urandom(4).hex())


class Picky(Plugin):
    """Samples two more than it keeps, and throws away those that are judged worst."""

    api_version = "1.0"

    @hookimpl
    def rlvr_sample_groups(self, session, rows):
        groups = []
        for row, sampled in zip(rows, session.sample(rows, session.group_size + 2), strict=True):
            verdicts = session.verdicts(sampled)
            order = sorted(range(len(sampled)), key=lambda i, v=verdicts: -(v[i].score or 0))
            kept = sorted(order[: session.group_size])
            groups.append(Group(row=row, rollouts=[sampled[index] for index in kept]))
        return groups


class Discount(Plugin):
    """Pays less with every verdict it sees: what it makes of one must not go in a second time."""

    api_version = "1.0"

    def __init__(self, config=None, *, name=""):
        super().__init__(config, name=name)
        self.seen = 0

    def state(self):
        return {"seen": self.seen}

    def load_state(self, state):
        self.seen = state["seen"]

    @hookimpl(wrapper=True)
    def rlvr_verify(self, batch):
        verdicts = yield
        self.seen += len(verdicts)
        return verdicts

    @hookimpl
    def rlvr_shape_rewards(self, session, groups):
        factor = 1 / (1 + self.seen / 100)
        return [
            [None if r.reward is None else factor * r.reward for r in group.rollouts]
            for group in groups
        ]


class Governor(Plugin):
    """Sets a learning rate and the weight of the divergence after each step."""

    api_version = "1.0"

    class Config(Strict):
        learning_rate: float
        kl: float

    @hookimpl
    def rlvr_step_end(self, event):
        rate, kl = self.config.learning_rate, self.config.kl
        return [
            Action(kind=ActionKind.SET_LEARNING_RATE, reason="as configured", value=rate),
            Action(kind=ActionKind.SET_KL, reason="as configured", value=kl),
        ]


class Own(BaseException):
    """What no `except Exception` catches."""


LEAVING = {"SystemExit": SystemExit, "GeneratorExit": GeneratorExit, "Own": Own}


class Leaver(Plugin):
    """Raises what would end a process, or pass through every handler, in one of its methods."""

    api_version = "1.0"

    class Config(Strict):
        raises: str
        """One of `LEAVING`."""
        where: str
        """``state`` or ``hook``."""

    def _leave(self, where):
        if where == self.config.where:
            raise LEAVING[self.config.raises](0)

    def state(self):
        self._leave("state")
        return {}

    @hookimpl
    def rlvr_shape_rewards(self, session, groups):
        self._leave("hook")
        return [[rollout.reward for rollout in group.rollouts] for group in groups]
