"""Checkpoints: complete or absent.

::

    checkpoints/000050/
      config.json  model.safetensors  tokenizer…    a model folder like any other
      optimizer.pt                                  the optimiser's state
      state.json                                    counters, controls, plugins' states, checksums

A checkpoint is written aside and renamed when everything is on disk. What is not renamed is not a
checkpoint, is never loaded, and is removed by the next save. `state.json` has a checksum of its own
content too. One that was damaged later is refused
with the names of the file and of the checkpoint before it, and never passed over in silence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import takewhile
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from zlib import crc32

import torch
from pydantic import NonNegativeInt, TypeAdapter
from safetensors import SafetensorError
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rlvr_core.api.errors import RunFolderError
from rlvr_core.api.verdicts import Json
from rlvr_core.records import layout
from rlvr_core.records.layout import CHECKPOINT_STATE, complete_checkpoints
from rlvr_core.train.storage import discard, not_removed, storing, sync

OPTIMIZER = "optimizer.pt"
UNFINISHED = ".unfinished-"
_CHECKSUMS = "crc32"
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The counters of a run at the end of a step."""

    step: NonNegativeInt
    weights_version: NonNegativeInt
    prompts_drawn: NonNegativeInt
    learning_rate: float
    kl_coefficient: float | None
    stack_learning_rate: float
    """That of the stack of this part of the run, which a monitor may have changed."""
    stack_advantage: Json
    """Its section ``advantage``, whose penalty a monitor may have changed."""
    plugins: Mapping[str, Mapping[str, Json]]
    """What `Plugin.state` returned, by instance name."""
    weights_fingerprint: str
    """Of the model that was saved; see `fingerprint.weights_fingerprint`."""


_PROGRESS = TypeAdapter(Progress)


def save(
    run: Path,
    progress: Progress,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    optimizer: torch.optim.Optimizer,
    *,
    keep: int,
) -> list[str]:
    """Write the checkpoint of a step, then remove all but the newest `keep`.

    Returns:
        What cannot be removed, and why; the run does not need it gone.

    Raises:
        EnvironmentFault: RLVR-T106, the disk did not take it; older checkpoints are untouched.
    """
    folder = run / layout.CHECKPOINTS
    target = folder / f"{progress.step:06d}"
    aside = folder / f"{UNFINISHED}{progress.step:06d}"
    with storing(target):
        folder.mkdir(exist_ok=True)
        problems = [discard(left_over) for left_over in folder.glob(f"{UNFINISHED}*")]
        aside.mkdir()
        try:
            model.save_pretrained(aside)
            tokenizer.save_pretrained(aside)
            with (aside / OPTIMIZER).open("wb") as opened:
                torch.save(optimizer.state_dict(), opened)
        except (RuntimeError, SafetensorError) as exc:  # what they make of a full disk
            if isinstance(exc.__context__, OSError):
                raise exc.__context__ from exc
            raise OSError(str(exc)) from exc
        checksums = {file.name: _checksum(file) for file in sorted(aside.iterdir())}
        state = {**asdict(progress), _CHECKSUMS: checksums}
        checksums[CHECKPOINT_STATE] = _checksum_of_state(state)
        (aside / CHECKPOINT_STATE).write_text(json.dumps(state, indent=2) + "\n", "utf-8")
        for file in aside.iterdir():
            sync(file)
        sync(aside)
        if target.exists():  # of a run that was rolled back and came here again
            problems.append(discard(_set_aside(target)))
        aside.rename(target)
        sync(folder)
        problems += map(_remove, complete_checkpoints(run)[:-keep])
    return [problem for problem in problems if problem]


def _remove(old: Path) -> str | None:
    """Remove a checkpoint, if that is possible, and return why it is not."""
    try:
        return discard(_set_aside(old))
    except OSError as error:
        return not_removed(old, error)


def _set_aside(old: Path) -> Path:
    """Rename a checkpoint, so that a kill while it is removed does not leave half of one."""
    return old.rename(old.with_name(f"{UNFINISHED}{old.name}-old"))


def newest(run: Path) -> Path:
    """Return the newest complete checkpoint.

    Raises:
        RunFolderError: RLVR-T102, there is none.
    """
    found = complete_checkpoints(run)
    if not found:
        raise RunFolderError(
            "RLVR-T102",
            "the run has no complete checkpoint",
            origin=str(run),
            fix="continue the run with --resume; it saves every train.checkpoint_every steps, and "
            "at its end",
        )
    return found[-1]


def first_start(run: Path, keep: int) -> int:
    """Return the earliest step that the run can be continued from; the beginning is one of `keep`.

    The beginning is always there, but counts only as long as there are fewer checkpoints than are
    kept: what comes before the first start that is counted need not be made again.
    """
    starts = [0, *(int(path.name) for path in complete_checkpoints(run))]
    return starts[-keep:][0]


def load_progress(checkpoint: Path) -> Progress:
    """Read the counters of a checkpoint.

    Raises:
        RunFolderError: RLVR-T108, they cannot be read.
    """
    return _load_state(checkpoint)[0]


def require_undamaged(checkpoint: Path) -> None:
    """See that the files of a checkpoint are those that were written. Reads all of them.

    Raises:
        RunFolderError: RLVR-T108.
    """
    for name, checksum in _load_state(checkpoint)[1].items():
        try:
            found = _checksum(checkpoint / name)
        except OSError as exc:
            raise damaged(checkpoint, f"{name} cannot be read: {exc.strerror}") from exc
        if found != checksum:
            raise damaged(checkpoint, f"{name} is not as it was written")


def load_optimizer(checkpoint: Path, optimizer: torch.optim.Optimizer) -> None:
    """Give an optimiser the state it had when the checkpoint was written.

    Raises:
        RunFolderError: RLVR-T108.
    """
    try:
        state: dict[str, Any] = torch.load(
            checkpoint / OPTIMIZER, map_location="cpu", weights_only=True
        )
        optimizer.load_state_dict(state)
    except (OSError, RuntimeError, ValueError, LookupError, UnpicklingError) as exc:
        raise damaged(checkpoint, f"{OPTIMIZER} cannot be read: {exc}") from exc


def damaged(checkpoint: Path, cause: str) -> RunFolderError:
    """Return the error that a checkpoint is not what was written, with the way on without it."""
    found = complete_checkpoints(checkpoint.parent.parent)
    older = list(takewhile(lambda path: path.name != checkpoint.name, found))
    start = f"from checkpoint {older[-1].name}" if older else "from the beginning"
    return RunFolderError(
        "RLVR-T108",
        f"the checkpoint {checkpoint.name} is damaged",
        origin=str(checkpoint),
        cause=cause,
        fix=f"put the file back, or remove the folder: --resume then continues {start}",
    )


def _load_state(checkpoint: Path) -> tuple[Progress, Mapping[str, str]]:
    try:
        state = json.loads((checkpoint / CHECKPOINT_STATE).read_text("utf-8"))
        checksums = state[_CHECKSUMS]
        if checksums.pop(CHECKPOINT_STATE) != _checksum_of_state(state):
            raise damaged(checkpoint, f"{CHECKPOINT_STATE} is not as it was written")
        del state[_CHECKSUMS]
        progress = _PROGRESS.validate_json(json.dumps(state), strict=True)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as exc:
        raise damaged(checkpoint, f"{CHECKPOINT_STATE} cannot be read: {exc}") from exc
    if checkpoint.name.isdecimal() and progress.step != int(checkpoint.name):
        raise damaged(checkpoint, f"{CHECKPOINT_STATE} is that of step {progress.step}")
    return progress, checksums


def _checksum_of_state(state: Mapping[str, Json]) -> str:
    return f"{crc32(json.dumps(state).encode()):08x}"


def _checksum(file: Path) -> str:
    """Return the CRC-32 of a file: it finds damage, and is as fast as the disk."""
    value = 0
    with file.open("rb") as opened:
        while chunk := opened.read(_CHUNK_BYTES):
            value = crc32(chunk, value)
    return f"{value:08x}"
