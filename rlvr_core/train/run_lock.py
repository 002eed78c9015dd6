"""One writer for a run folder at a time.

The kernel keeps the lock for the process, and drops it when the process ends however it ends, so a
dead process never leaves a lock behind. Unlike a descriptor's lock it is not inherited by forked
worker processes that outlive a killed parent. It does not hold inside one process, hence `_held`.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlvr_core.api.errors import RunFolderError
from rlvr_core.train.storage import storing

LOCK = "run.lock"
_held: set[Path] = set()


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold the lock of the run folder while the block runs.

    Raises:
        RunFolderError: RLVR-T105, when another process (or this one, elsewhere) holds it.
        EnvironmentFault: RLVR-T106, the folder does not take it.
    """
    file = folder.resolve() / LOCK
    if file in _held:
        raise _busy(folder, os.getpid())
    with storing(file):
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise _busy(folder, _holder(descriptor)) from error
        _held.add(file)
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            yield
        finally:
            _held.discard(file)
    finally:
        os.close(descriptor)


def require_idle(folder: Path) -> None:
    """See that no process is writing to the run folder; nothing is written or held.

    Raises:
        RunFolderError: RLVR-T105, one is.
    """
    file = folder.resolve() / LOCK
    if file in _held:
        raise _busy(folder, os.getpid())
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return  # nobody has written there, or whoever reads it next says what is wrong
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        raise _busy(folder, _holder(descriptor)) from error
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> int | None:
    written = os.pread(descriptor, 32, 0).strip()
    return int(written) if written.isdigit() else None


def _busy(folder: Path, pid: int | None) -> RunFolderError:
    return RunFolderError(
        "RLVR-T105",
        f"another process is writing to {folder}",
        origin=str(folder),
        cause=None if pid is None else f"process {pid} holds {LOCK}",
        fix="wait for it or stop it; the lock is free as soon as that process has ended",
    )
