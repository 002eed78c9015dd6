"""Writing files so that a reader sees all of a file or none of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rlvr_core.api.errors import EnvironmentFault


@contextmanager
def storing(path: Path, fix: str = "") -> Iterator[None]:
    """Turn an operating-system error into one that says what could not be written.

    Args:
        path: What is written.
        fix: What to do, where no run has begun that could be continued.

    Raises:
        EnvironmentFault: RLVR-T106.
    """
    try:
        yield
    except EnvironmentFault:
        raise
    except FileNotFoundError as error:
        if fix:
            raise _not_stored(path, error, fix) from error
        raise EnvironmentFault(
            "RLVR-T106",
            f"{path.name} could not be written",
            origin=str(path),
            cause=f"{error.strerror}: the run folder was removed or renamed while the run went on",
            fix="put the folder back and continue with --resume, or begin the run anew",
        ) from error
    except OSError as error:
        going_on = "free disk space or correct the permissions, then continue with --resume"
        raise _not_stored(path, error, fix or going_on) from error


def _not_stored(path: Path, error: OSError, fix: str) -> EnvironmentFault:
    return EnvironmentFault(
        "RLVR-T106",
        f"{path.name} could not be written",
        origin=str(path),
        cause=f"{error.strerror or error}",
        fix=fix,
    )


def write_aside(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file beside `path`, make it durable, and rename it to `path`."""
    # A fixed name, so that what a killed process left is overwritten and never piles up.
    aside = path.with_name(f".{path.name}.tmp")
    with storing(path):
        write(aside)
        with aside.open("rb+") as file:
            os.fsync(file.fileno())
        aside.replace(path)
        sync(path.parent)


def append_line(path: Path, line: bytes) -> None:
    """Append one line (given without its newline) in one write, and make it durable."""
    with storing(path), path.open("a+b", buffering=0) as file:
        content = memoryview((b"" if _ends_a_line(file.fileno()) else b"\n") + line + b"\n")
        while content:
            content = content[file.write(content) :]
        os.fsync(file.fileno())


def sync(path: Path) -> None:
    """Make the content of a file durable, or renames inside a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def discard(path: Path) -> str | None:
    """Remove a file, a link or a folder that is not needed any more.

    Returns:
        Why that was not possible; None: it is gone.
    """
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        return not_removed(path, error)
    return None


def not_removed(path: Path, error: OSError) -> str:
    """Return a sentence about something that is still there, and in nobody's way."""
    return f"{path.parent.name}/{path.name} is not needed, and cannot be removed: {error.strerror}"


def _ends_a_line(descriptor: int) -> bool:
    size = os.fstat(descriptor).st_size
    return size == 0 or os.pread(descriptor, 1, size - 1) == b"\n"
