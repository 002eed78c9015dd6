"""The run folder's writer: everything a run leaves behind, safe against a kill at any moment.

::

    manifest.json  stack.yaml                     written once; the manifest's status changes
    stack.002.yaml                                the stack after a resume that changed it
    metrics.jsonl  evals.jsonl  events.jsonl      append-only, one JSON object a line
    rollouts/000001.parquet                       every rollout of step 1
    evaluations/000000-dev.parquet                every completion of an evaluation
    recorded/000001.parquet                       what step 1 is made again from
    checkpoints/                                  see `rlvr_core.train.checkpoint`
    discarded/001/                                what a resume set aside, in the same layout
    run.lock                                      held by the writing process

Lines: one write, flushed to disk, so that at most the last line can be torn; a reader skips it, and
the next line starts on a line of its own. NaN and infinities are never written: the value becomes
null, and the line gains ``"non_finite": {"loss": "nan"}``. Tables are written aside and renamed.
The columns and keys are listed in ``docs/reference/run-folder.md``.

Rewinding to step N moves everything later than N to ``discarded/``; what readers read is never
deleted. Recordings stay where they are, for the steps that are made again, and go when no
checkpoint that is kept comes before them.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from rlvr_core.api.errors import RunFolderError
from rlvr_core.api.rollouts import Group, Rollout
from rlvr_core.api.verdicts import Json, Verdict
from rlvr_core.records import layout
from rlvr_core.train.recording import Recording, write_recording
from rlvr_core.train.rewind import set_aside
from rlvr_core.train.rollout_tables import evaluation_table, rollout_table, write_table
from rlvr_core.train.run_lock import exclusive
from rlvr_core.train.storage import append_line, discard, storing, sync, write_aside

_FOLDERS = (layout.ROLLOUTS, layout.EVALUATIONS, layout.RECORDED, layout.CHECKPOINTS)
_ELSEWHERE = "name a folder with --out that can be made and written, and where the disk has room"


class RunFolder:
    """One run's folder, open for writing. Hold `lock` while you write.

    Every method that writes raises `EnvironmentFault` (RLVR-T106) when the disk does not take it.
    """

    def __init__(self, path: Path, manifest: Mapping[str, Json]) -> None:
        self.path = path
        self._manifest = dict(manifest)

    @classmethod
    def create(cls, path: Path, manifest: Mapping[str, Json], stack_yaml: str) -> Self:
        """Make the folder of a new run; it appears whole or not at all.

        Args:
            path: Must not exist, or be an empty folder.
            manifest: Facts of the run; ``format`` is added.
            stack_yaml: The resolved stack.

        Raises:
            RunFolderError: RLVR-T101, when something is there already.
            EnvironmentFault: RLVR-T106.
        """
        path = path.resolve()
        cls.require_free(path)
        manifest = {"format": layout.FORMAT, **manifest}
        with storing(path, fix=_ELSEWHERE):
            path.parent.mkdir(parents=True, exist_ok=True)
            aside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
            try:
                aside.chmod(0o755)
                _write_text(aside / layout.MANIFEST, _pretty(manifest))
                _write_text(aside / layout.STACK, layout.storable(stack_yaml))
                for name in _FOLDERS:
                    (aside / name).mkdir()
                _move_into_place(aside, path)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
            sync(path.parent)
        return cls(path, manifest)

    @staticmethod
    def require_free(path: Path) -> None:
        """Refuse a path at which something stands already.

        Raises:
            RunFolderError: RLVR-T101.
            EnvironmentFault: RLVR-T106, no file system takes such a path.
        """
        with storing(path, fix=_ELSEWHERE):
            is_taken = path.exists() and (not path.is_dir() or any(path.iterdir()))
        if is_taken:
            raise _occupied(path)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the folder of a run that was created before.

        Raises:
            RunFolderError: RLVR-T104, when it is not a run folder, damaged, or of a newer format.
        """
        return cls(path.resolve(), layout.read_manifest(path))

    @classmethod
    def open_to_continue(cls, path: Path) -> Self:
        """Open the folder of the run that `--resume` is to continue.

        Raises:
            RunFolderError: RLVR-T104, as of `open`, with the way on for someone who wants a run.
        """
        if not (path / layout.MANIFEST).exists():
            raise RunFolderError(
                "RLVR-T104",
                f"there is no run to continue at {path}",
                origin=str(path.absolute()),
                cause=f"it holds no {layout.MANIFEST}" if path.exists() else "it does not exist",
                fix="leave --resume out to begin a new run, or name the folder of one with --out",
            )
        return cls.open(path)

    @property
    def manifest(self) -> Mapping[str, Json]:
        """The manifest as it stands on disk."""
        return self._manifest

    def lock(self) -> AbstractContextManager[None]:
        """Keep every other process from writing to this run while the block runs.

        Raises:
            RunFolderError: RLVR-T105, on entry, when another process holds the lock.
        """
        return exclusive(self.path)

    def update_manifest(self, **changes: Json) -> None:
        """Replace top-level entries of the manifest in one step."""
        manifest = {**self._manifest, **changes}
        text = _pretty(manifest)
        write_aside(self.path / layout.MANIFEST, lambda aside: aside.write_text(text, "utf-8"))
        self._manifest = manifest

    def write_stack(self, stack_yaml: str) -> str:
        """Write a stack that differs from the present one beside it, and return its name.

        It counts as soon as the manifest names it as ``stack_file``.
        """
        present = layout.stack_file(self._manifest)
        number = int(present.split(".")[1]) if present != layout.STACK else 1
        name = f"{Path(layout.STACK).stem}.{number + 1:03d}.yaml"
        text = layout.storable(stack_yaml)
        write_aside(self.path / name, lambda aside: aside.write_text(text, "utf-8"))
        return name

    def append_metrics(self, record: Mapping[str, Json]) -> None:
        """Append the record of a finished step (key ``step``) to ``metrics.jsonl``."""
        self._append(layout.METRICS, record)

    def append_eval(self, record: Mapping[str, Json]) -> None:
        """Append what `evaluate.record.evaluation_record` returned to ``evals.jsonl``."""
        self._append(layout.EVALS, record)

    def append_event(self, record: Mapping[str, Json]) -> None:
        """Append an event (keys ``step`` and ``kind``) to ``events.jsonl``; its time is added."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._append(layout.EVENTS, {"time": now, **record})

    def write_rollouts(self, step: int, groups: Sequence[Group], kept: Sequence[bool]) -> Path:
        """Write every rollout of a step.

        Args:
            step: 1-based.
            groups: All groups that were collected, kept or not.
            kept: For each group, whether it was trained on.

        Raises:
            ValueError: When `kept` does not say one thing a group.
        """
        table = rollout_table(groups, kept)
        return self._write_table(
            layout.rollouts_file(step), lambda aside: write_table(table, aside)
        )

    def recording(self, step: int) -> Path:
        """Return where the recording of a step is kept."""
        return self.path / layout.recorded_file(step)

    def write_recording(self, step: int, recording: Recording) -> None:
        """Write what a step can be made again from, in place of what was kept of it before."""
        name = layout.recorded_file(step)
        self._write_table(name, lambda aside: write_recording(recording, aside))

    def forget_recordings(self, step: int) -> list[str]:
        """Remove the recordings of all steps up to `step`, and return what cannot be removed."""
        files = (self.path / layout.RECORDED).glob("[0-9]*.parquet")
        old = [file for file in files if file.stem.isdecimal() and int(file.stem) <= step]
        return [problem for problem in map(discard, old) if problem]

    def write_evaluation(
        self,
        step: int,
        split: str,
        rollouts: Sequence[Rollout],
        verdicts: Mapping[str, Sequence[Verdict]],
    ) -> Path:
        """Write every completion of an evaluation, with the verdicts of all graders.

        Raises:
            ValueError: When a grader does not have one verdict a completion.
        """
        table = evaluation_table(rollouts, verdicts)
        return self._write_table(
            layout.evaluation_file(step, split), lambda aside: write_table(table, aside)
        )

    def rewind(self, step: int) -> Path | None:
        """Set aside everything later than `step`, so that the run continues from there.

        Lines that cannot be read (torn by a kill) are set aside too. An event tells about it.

        Returns:
            The new folder under ``discarded/``; None when there was nothing later.
        """
        target = set_aside(self.path, step)
        if target is None:
            return None
        discarded = target.relative_to(self.path).as_posix()
        self.append_event({"step": step, "kind": "rewound", "discarded": discarded})
        return target

    def _write_table(self, name: str, write: Callable[[Path], object]) -> Path:
        path = self.path / name
        with storing(path):
            # Not its parents: a run folder that was removed must not come back in parts.
            path.parent.mkdir(exist_ok=True)
        write_aside(path, write)
        return path

    def _append(self, name: str, record: Mapping[str, Json]) -> None:
        clean = {str(key): layout.without_non_finite(value) for key, value in record.items()}
        lost = {
            str(key): str(value)
            for key, value in record.items()
            if isinstance(value, float) and not math.isfinite(value)
        }
        if lost:
            clean["non_finite"] = lost
        text = json.dumps(clean, ensure_ascii=False, allow_nan=False)
        append_line(self.path / name, layout.storable(text).encode())


def _occupied(path: Path) -> RunFolderError:
    if (path / layout.MANIFEST).exists():
        message = f"{path} already holds a run"
        fix = "continue it with --resume, or choose another folder for the new run"
    else:
        message = f"{path} is not empty, and is not a run of rlvr"
        fix = "choose another folder for the run; nothing was changed"
    return RunFolderError("RLVR-T101", message, origin=str(path), fix=fix)


def _move_into_place(aside: Path, path: Path) -> None:
    try:
        # Succeeds onto nothing and onto an empty folder, and onto nothing else.
        aside.rename(path)
    except OSError as error:
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise _occupied(path) from error
        raise


def _pretty(manifest: Mapping[str, Json]) -> str:
    clean = layout.without_non_finite(manifest)
    return layout.storable(json.dumps(clean, ensure_ascii=False, indent=2) + "\n")


def _write_text(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
