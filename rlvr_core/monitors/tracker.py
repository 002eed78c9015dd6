"""Sends the numbers of a run to an experiment tracker."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any

from pydantic import Field, field_validator

from rlvr_core.api import (
    Action,
    ActionKind,
    EnvironmentFault,
    EvalEvent,
    Plugin,
    RunInfo,
    StepEvent,
    Strict,
    hookimpl,
)
from rlvr_core.api.errors import did_you_mean
from rlvr_core.monitors.tracker_outlet import Outlet
from rlvr_core.monitors.tracker_tools import PACKAGES, new_run_id, open_tool


class TrackerConfig(Strict):
    """Settings of `tracker`."""

    to: str = Field(description=f"Where numbers go: {', '.join(PACKAGES)}.")
    project: str = Field(
        default="rlvr", min_length=1, description="Project or experiment that the run is one of."
    )
    settings: dict[str, Any] = Field(
        default={},
        description="Further arguments of the tool's start, such as `entity` of wandb.",
    )
    end_within_s: float = Field(
        default=10.0,
        ge=0,
        le=3600,
        description="How long the end of the run waits for what has not been sent yet.",
    )

    @field_validator("to")
    @classmethod
    def _known(cls, to: str) -> str:
        if to not in PACKAGES:
            raise ValueError(f"must be one of {', '.join(PACKAGES)}{did_you_mean(to, PACKAGES)}")
        return to


class Tracker(Plugin):
    """Sends the numbers of every step and evaluation to TensorBoard, W&B, MLflow, ….

    A thread of its own does so: a tool that is slow, hangs or fails costs records, which are
    counted, and neither time nor the run.

    Raises:
        EnvironmentFault: RLVR-E101, the tool is not installed.
    """

    api_version = "1.0"
    Config = TrackerConfig
    config: TrackerConfig

    def __init__(self, config: Any = None, *, name: str = "") -> None:
        """Check that the tool is installed."""
        super().__init__(config, name=name)
        modules = PACKAGES[self.config.to]
        if not any(find_spec(module) for module in modules):
            raise EnvironmentFault(
                "RLVR-E101",
                f"the tracker needs {self.config.to}, which is not installed",
                fix=f"pip install {modules[0].replace('_', '-')}",
            )
        self._run_id: str | None = None
        self._outlet: Outlet | None = None
        self._has_warned = False

    def state(self) -> Mapping[str, Any]:
        """Return the tool's own name of the run, so that a resume continues it there."""
        return {"run_id": self._outlet.run_id if self._outlet else self._run_id}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue the tool's run."""
        self._run_id = state["run_id"]

    @hookimpl
    def rlvr_run_start(self, run: RunInfo) -> None:
        """Start the thread."""
        config = self.config
        self._run_id = self._run_id or new_run_id(config.to)
        self._outlet = Outlet(
            lambda run_id: open_tool(config.to, config.project, config.settings, run, run_id),
            self._run_id,
        )

    @hookimpl
    def rlvr_step_end(self, event: StepEvent) -> Action | None:
        """Hand the step's numbers to the thread."""
        return self._send("train", event.metrics, event.step)

    @hookimpl
    def rlvr_eval_end(self, event: EvalEvent) -> Action | None:
        """Hand the evaluation's numbers to the thread."""
        return self._send(f"evaluation/{event.split}", event.metrics, event.step)

    @hookimpl
    def rlvr_run_end(self) -> Action | None:
        """Wait a bounded time for what has not been sent, and say what was lost."""
        if self._outlet is None:
            return None
        self._outlet.close(self.config.end_within_s)
        return self._warning("in all") if self._outlet.lost else None

    def _send(self, prefix: str, metrics: Mapping[str, Any], step: int) -> Action | None:
        if self._outlet is None:
            return None
        self._outlet.put(dict(numbers(prefix, metrics)), step)
        if self._has_warned or not self._outlet.lost:
            return None
        self._has_warned = True
        return self._warning("so far; the run goes on, and what else is lost is counted")

    def _warning(self, when: str) -> Action:
        lost, reason = (self._outlet.lost, self._outlet.reason) if self._outlet else (0, "")
        records = "record" if lost == 1 else "records"
        return Action(
            kind=ActionKind.WARN,
            reason=f"{lost} {records} did not reach {self.config.to} {when} ({reason})",
        )


def numbers(prefix: str, metrics: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the finite numbers of a record by path, such as ``train/reward_mean``."""
    for key, value in metrics.items():
        if isinstance(value, Mapping):
            yield from numbers(f"{prefix}/{key}", value)
        elif (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and key != "step"
            and math.isfinite(value)
        ):
            yield f"{prefix}/{key}", float(value)
