"""Every number of the report, as plain data: computed here, shown by the page and by ``--json``."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass

from rlvr_core.api.verdicts import Json
from rlvr_core.evaluate.agreement import Agreement
from rlvr_core.records.layout import EVALS, MANIFEST, METRICS, STACK
from rlvr_core.report.compare import (
    Accuracy,
    ArmComparison,
    Change,
    FormatShare,
    accuracies,
    changes,
    compare_arms,
    format_share,
    splits,
)
from rlvr_core.report.health import VerifierHealth, agreements, verifier_health
from rlvr_core.report.read import Record, Run
from rlvr_core.report.sentences import sentences

CURVES = ("reward_mean", "pass_rate", "parse_failure_rate", "length_mean", "entropy")
"""Keys of ``metrics.jsonl`` that become curves over the steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One run: the verifier arm or the control arm."""

    arm: str
    """``verifier`` or ``control``."""
    run: str
    folder: str
    """Name of the run folder."""
    control: str | None
    """Plugin that rewarded in place of the verifier."""
    status: str
    steps_done: int
    steps_planned: int | None
    curves: dict[str, list[tuple[int, float]]]
    """For each of `CURVES` the points (step, value); steps without a value are left out."""
    accuracies: list[Accuracy]
    rollouts: int
    masked: int
    train_duration_s: float
    """Sum of all steps' wall-clock time."""
    tokens_per_s: float | None
    """Sampled tokens over that time."""
    health: list[VerifierHealth]
    agreements: list[Agreement]
    """Of the members of verifiers that ask others, in training."""
    event_kinds: dict[str, int]
    unreadable_lines: int

    @property
    def is_complete(self) -> bool:
        """True when every planned step is there."""
        return self.steps_planned is None or self.steps_done >= self.steps_planned


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What the report says."""

    title: str
    verifier: Arm | None
    """None when the only run is a control arm."""
    control: Arm | None
    changes: list[Change]
    """Verifier arm first; splits and graders in the order of the evaluations."""
    format_shares: list[FormatShare]
    comparisons: list[ArmComparison]
    sentences: list[str]
    """What the numbers mean, the most important first."""
    settings: dict[str, Json]
    """The first arm's manifest."""
    sources: dict[str, str]
    """What is read from which file."""

    @property
    def arms(self) -> list[Arm]:
        """The arms that are there."""
        return [arm for arm in (self.verifier, self.control) if arm is not None]

    def to_json(self) -> dict[str, Json]:
        """Return the summary as plain data."""
        return asdict(self)


def summarise(run: Run, control: Run | None = None) -> Summary:
    """Compute the report's numbers.

    Args:
        run: The arm that was rewarded by its verifiers; or, alone, a control arm.
        control: The arm with other rewards, when there is one.

    Raises:
        RunFolderError: RLVR-T104, when a table that the logs name is missing or damaged.
    """
    is_lone_control = control is None and run.control is not None
    verifier, control = (None, run) if is_lone_control else (run, control)
    both = (("verifier", verifier), ("control", control))
    runs = [(name, arm) for name, arm in both if arm is not None]
    arms = {name: _arm(name, arm) for name, arm in runs}
    all_changes = [change for name, arm in runs for change in changes(arm, name)]
    shares = [
        share
        for name, arm in runs
        for split in splits(arm)
        if (share := format_share(arm, name, split)) is not None
    ]
    comparisons = compare_arms(verifier, control) if verifier and control else []
    return Summary(
        title=_title(run),
        verifier=arms.get("verifier"),
        control=arms.get("control"),
        changes=all_changes,
        format_shares=shares,
        comparisons=comparisons,
        sentences=sentences(verifier, control, all_changes, shares, comparisons),
        settings=run.manifest,
        sources=_sources(),
    )


def _title(run: Run) -> str:
    """Return the run's name; of a run that is one of two arms, that of the folder of both."""
    folder = run.path.resolve()
    both = folder.parent
    if folder.name != "verifier" or not (both / "control" / MANIFEST).exists():
        return run.name
    # The demo's stack stands beside its arms.
    return "rlvr demo" if (both / STACK).exists() else both.name


def _arm(name: str, run: Run) -> Arm:
    seconds = _total(run.metrics, "step_s")
    tokens = _total(run.metrics, "tokens")
    kinds = Counter(str(event.get("kind")) for event in run.events)
    return Arm(
        arm=name,
        run=run.name,
        folder=run.path.name,
        control=run.control,
        status=str(run.manifest.get("status", "unknown")),
        steps_done=run.steps_done,
        steps_planned=run.steps_planned,
        curves={
            key: [(line["step"], line[key]) for line in run.metrics if line.get(key) is not None]
            for key in CURVES
        },
        accuracies=accuracies(run),
        rollouts=int(_total(run.metrics, "rollouts")),
        masked=int(_total(run.metrics, "masked")),
        train_duration_s=seconds,
        tokens_per_s=tokens / seconds if seconds else None,
        health=verifier_health(run),
        agreements=agreements(run),
        event_kinds=dict(kinds.most_common()),
        unreadable_lines=run.unreadable_lines,
    )


def _total(metrics: list[Record], key: str) -> float:
    return sum(line.get(key) or 0 for line in metrics)


def _sources() -> dict[str, str]:
    return {
        "curves over the steps": METRICS,
        "accuracies and their intervals": EVALS,
        "paired changes and the share of the answer format": "evaluations/*.parquet",
        "verifier health and samples": "rollouts/*.parquet",
        "settings": MANIFEST,
    }
