"""Reading a run folder, finished or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rlvr_core.api.errors import RunFolderError, StackError
from rlvr_core.api.verdicts import Json
from rlvr_core.records import layout
from rlvr_core.records.logs import read_log

Record = dict[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What stands in a run folder. Tables are read when asked for."""

    path: Path
    manifest: Record
    stack_yaml: str
    metrics: list[Record]
    """One record a step, by step; the last one written where a step was repeated."""
    evals: list[Record]
    """One record for each (step, split), by step."""
    events: list[Record]
    """As written."""
    unreadable_lines: int
    """Lines of the three logs that could not be read; a killed process leaves one at most."""
    rollout_steps: list[int]
    """Steps whose rollouts are on disk."""

    @property
    def name(self) -> str:
        """Name of the run."""
        return str(self.manifest.get("run") or self.path.name)

    @property
    def steps_done(self) -> int:
        """Last step with a line in ``metrics.jsonl``; 0 before the first."""
        return int(self.metrics[-1]["step"]) if self.metrics else 0

    @property
    def steps_planned(self) -> int | None:
        """Steps of the manifest's budget."""
        steps = (self.manifest.get("budget") or {}).get("steps")
        return None if steps is None else int(steps)

    @property
    def control(self) -> str | None:
        """Name of the plugin whose rewards replaced the verifier's; None in a verifier arm."""
        control = self.manifest.get("control")
        if isinstance(control, dict):
            return str(control.get("name") or control.get("plugin") or "control")
        return None if control is None else str(control)

    def rollouts(self, step: int, columns: Sequence[str] | None = None) -> list[Record]:
        """Return the rollouts of a step, one record each, group by group.

        Args:
            step: One of `rollout_steps`.
            columns: Only these columns; all by default. One that the file does not have is None.

        Raises:
            RunFolderError: RLVR-T104, when the file is missing or damaged.
        """
        return _read_table(self.path / layout.rollouts_file(step), columns)

    def evaluation(self, record: Record, columns: Sequence[str] | None = None) -> list[Record]:
        """Return the completions behind a record of `evals`, one record each.

        Raises:
            RunFolderError: RLVR-T104, when the file is missing or damaged.
        """
        return _read_table(self.path / str(record["file"]), columns)


def read_run(path: Path) -> Run:
    """Read the run folder at `path`; works while the run is being written.

    Raises:
        RunFolderError: RLVR-T104, when it is not a run folder, damaged, or of a newer format.
    """
    manifest = layout.read_manifest(path)
    metrics, evals, events = (read_log(path, name) for name in layout.LOGS)
    by_step = {line["step"]: line for line in metrics.records}
    by_split = {(line["step"], line["split"]): line for line in evals.records}
    tables = (path / layout.ROLLOUTS).glob("[0-9]*.parquet")
    return Run(
        path=path,
        manifest=manifest,
        stack_yaml=_read_text(path / layout.stack_file(manifest)),
        metrics=[by_step[step] for step in sorted(by_step)],
        evals=sorted(by_split.values(), key=lambda line: line["step"]),
        events=events.records,
        unreadable_lines=metrics.unreadable + evals.unreadable + events.unreadable,
        rollout_steps=sorted(int(table.stem) for table in tables if table.stem.isdigit()),
    )


def find_arms(path: Path) -> tuple[Path, Path | None]:
    """Return the verifier arm and the control arm behind `path`.

    `path` is a run folder, or a folder with the run folders ``verifier`` and ``control`` in it, as
    ``rlvr demo`` leaves.
    """
    verifier, control = path / "verifier", path / "control"
    if (path / layout.MANIFEST).exists() or not (verifier / layout.MANIFEST).exists():
        return path, None
    return verifier, control if (control / layout.MANIFEST).exists() else None


def read_arms(paths: Sequence[Path]) -> list[Run]:
    """Read a run and, when two paths are given, its control arm.

    Raises:
        RunFolderError: RLVR-T104, when a run folder cannot be read.
        StackError: RLVR-S106, when the second is no control arm of the first.
    """
    runs = [read_run(path) for path in paths]
    if len(runs) == 2:
        _check_arms(*runs)
    return runs


def _check_arms(run: Run, control: Run) -> None:
    if run.path.resolve() == control.path.resolve():
        raise StackError(
            "RLVR-S106",
            "the run and its control arm are the same folder",
            origin=str(control.path),
            cause="an arm compared with itself always shows no difference",
            fix="give --control another run: `rlvr train STACK --control random` makes one",
        )
    if control.control is None:
        raise StackError(
            "RLVR-S106",
            "the run given as control arm is none",
            origin=str(control.path),
            cause="its manifest names no control: its verifiers gave its rewards",
            fix="leave --control out, or make one with `rlvr train STACK --control random`",
        )
    if run.control is not None:
        raise StackError(
            "RLVR-S106",
            "the run that a control arm is compared with is a control arm itself",
            origin=str(run.path),
            cause=f"its manifest says that {run.control} gave its rewards",
            fix="give the run that its verifiers rewarded as RUN, and the control with --control",
        )


def _read_text(file: Path) -> str:
    """Return the text of a file, and an empty one where there is none."""
    try:
        return file.read_text("utf-8", "replace") if file.exists() else ""
    except OSError as error:
        raise layout.unreadable(file, str(error)) from error


def _read_table(file: Path, columns: Sequence[str] | None) -> list[Record]:
    try:
        there = pq.read_schema(file).names
        wanted = there if columns is None else [name for name in columns if name in there]
        table = pq.read_table(file, columns=wanted)
    except (OSError, pa.ArrowException) as error:
        raise RunFolderError(
            "RLVR-T104",
            f"{file.name} cannot be read",
            origin=str(file),
            cause=str(error),
            fix="restore the file from a copy of the run folder",
        ) from error
    absent = dict.fromkeys(columns or ())
    rows: list[Record] = table.to_pylist()
    return [{**absent, **row} for row in rows] if absent else rows
