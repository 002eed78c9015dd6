"""What monitors see, and what they may ask for.

A monitor never changes anything itself: it returns actions, and core alone applies, logs and undoes
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from rlvr_core.api.rollouts import Group, Rollout, Row
from rlvr_core.api.verdicts import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """The facts of a run that do not change."""

    folder: Path
    total_steps: int
    seed: int
    manifest: Mapping[str, Json]
    """As written to ``manifest.json``."""


STEP_METRICS = frozenset(
    {
        "step",
        "epoch",
        "reward_mean",
        "pass_rate",
        "groups",
        "useful_groups",
        "kept_groups",
        "rollouts",
        "masked",
        "errors",
        "length_mean",
        "truncated_rate",
        "entropy",
        "parse_failure_rate",
        "failures",
        "agreement",
        "loss",
        "grad_norm",
        "updates",
        "skipped_updates",
        "trained_tokens",
        "sampler_gap",
        "learning_rate",
        "tokens",
        "tokens_per_s",
        "collect_s",
        "train_s",
        "step_s",
        "weights_version",
        "weights_fingerprint",
        "rounds",
    }
)
"""Core's own names in `StepEvent.metrics`. Metrics of a loss plugin stand beside them, under other
names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEvent:
    """One finished step."""

    run: RunInfo
    step: int
    """1-based."""
    groups: Sequence[Group]
    """Every group of the step, of all processes, kept or not, with verdicts and rewards."""
    metrics: Mapping[str, float]
    """The line that goes to ``metrics.jsonl``, already reduced over processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalEvent:
    """One finished evaluation of one split."""

    run: RunInfo
    step: int
    split: str
    rollouts: Sequence[Rollout]
    metrics: Mapping[str, Json]
    """The line that goes to ``evals.jsonl``."""


class ActionKind(StrEnum):
    """The ladder of things a monitor may ask for."""

    WARN = "warn"
    """Show and log `reason`."""
    SET_LEARNING_RATE = "set-learning-rate"
    """Use `value` as the learning rate from the next update on."""
    SET_KL = "set-kl"
    """Use `value` as the KL coefficient from the next update on."""
    PAUSE = "pause"
    """Write a checkpoint and end the run so that ``--resume`` continues it."""
    STOP = "stop"
    """Write a checkpoint and end the run, which should not go on as it is."""
    ROLL_BACK = "roll-back"
    """End the run without a checkpoint: ``--resume`` continues from the last complete one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One request of a monitor."""

    kind: ActionKind
    reason: str
    """A plain sentence with the numbers that led to it."""
    value: float | None = None


class Severity(StrEnum):
    """How much a finding matters."""

    WARN = "warn"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a prompt audit says before step 0. One ``refuse`` stops the run from starting."""

    severity: Severity
    message: str
    rows: Sequence[Row] = ()
