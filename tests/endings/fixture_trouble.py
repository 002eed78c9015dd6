"""Plugins that make trouble on request. No torch here."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from rlvr_core.api import (
    EvalEvent,
    Finding,
    Group,
    Plugin,
    Row,
    Session,
    StepEvent,
    Strict,
    Verdict,
    Verifier,
    VerifyBatch,
    hookimpl,
)


class Trouble(Plugin):
    """Makes trouble in one hook, at one step, on one process."""

    api_version = "1.0"

    class Config(Strict):
        hook: str
        how: str
        """raise, sleep, nap, spin, kill or stop."""
        step: int = 1
        rank: int = 0
        mark: str | None = None
        """This file is made before; there is no trouble where it is already."""

    @hookimpl
    def rlvr_audit_prompts(self, rows: Sequence[Row], session: Session) -> list[Finding]:
        self._act("audit", self.config.step)
        return []

    @hookimpl
    def rlvr_keep_groups(self, groups: Sequence[Group], session: Session) -> list[bool]:
        self._act("keep", session.step)
        return [True] * len(groups)

    @hookimpl
    def rlvr_adjust_advantages(
        self,
        groups: Sequence[Group],
        advantages: Sequence[Sequence[float]],
        session: Session,
    ) -> Sequence[Sequence[float]]:
        self._act("adjust", session.step)
        return advantages

    @hookimpl
    def rlvr_step_end(self, event: StepEvent) -> None:
        self._act("step_end", event.step)

    @hookimpl
    def rlvr_eval_end(self, event: EvalEvent) -> None:
        self._act("eval_end", event.step)

    def _act(self, hook: str, step: int) -> None:
        wanted = (self.config.hook, self.config.step, self.config.rank)
        if (hook, step, int(os.environ.get("RANK", "0"))) != wanted:
            return
        if self.config.mark:
            if Path(self.config.mark).is_file():
                return
            Path(self.config.mark).touch()
        match self.config.how:
            case "raise":
                raise ValueError("no advantage in sight")
            case "sleep":
                time.sleep(60)
            case "nap":
                time.sleep(2.5)
            case "spin":
                until_s = time.monotonic() + 60
                while time.monotonic() < until_s:
                    pass
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "stop":
                os.kill(os.getpid(), signal.SIGSTOP)


class Slow(Verifier):
    """Passes capital letters; some rows, or its own beginning, take long."""

    api_version = "1.0"

    class GroundTruth(Strict):
        sleep_s: float = 0.0
        breaks: bool = False

    class Config(Strict):
        start_s: float = 0.0
        mark: str | None = None
        """This file is made when it begins to sleep; rows sleep only where it is not there yet."""

    def __init__(self, config: Config | None = None, *, name: str = "") -> None:
        super().__init__(config, name=name)
        if self.config.start_s and "RLVR_VERIFICATION_TOKEN" in os.environ:
            self._mark()
            time.sleep(self.config.start_s)

    @hookimpl
    def rlvr_verify(self, batch: VerifyBatch) -> list[Verdict]:
        verdicts = []
        for index, row in enumerate(batch):
            batch.starting(index)
            if row.ground_truth.sleep_s and not Path(self.config.mark or "").is_file():
                self._mark()
                time.sleep(row.ground_truth.sleep_s)
            if row.ground_truth.breaks:
                raise ValueError("cannot judge this")
            verdicts.append(self.judge(1.0 if row.completion.isupper() else 0.0))
        return verdicts

    def _mark(self) -> None:
        if self.config.mark:
            Path(self.config.mark).touch()
