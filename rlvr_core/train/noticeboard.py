"""What the processes of one run tell each other when the usual way, through torch, may be broken.

::

    .NAME.processes-XXXX/    beside the run folder, for as long as a process of the run lives
      0  1 …                 where each process is; locked by it while it lives
      fault.json             the first cause of the run's end, written once

The kernel drops a lock with its process, however that ends: a file that is not locked and does not
say that its process has left is one of a process that was killed. All processes must see the folder
of the run, which resuming needs as well.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import shutil
import signal
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any, Self

from accelerate import Accelerator
from accelerate.utils import gather_object

from rlvr_core.api.errors import EnvironmentFault
from rlvr_core.train.fault import Fault
from rlvr_core.train.place import Place
from rlvr_core.train.storage import storing
from rlvr_core.verification.wire import pack_error, unpack_error

_RECORD = struct.Struct("<q??i64s400s")
"""Meetings, whether it waits, whether it has left, process id, machine, place."""
_FAULT = "fault.json"
_LEAVING = "leaving.lock"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a process last wrote about itself."""

    place: str
    meetings: int
    is_waiting: bool
    has_left: bool
    host: str
    pid: int


class Noticeboard:
    """One process's view of the board.

    Args:
        folder: The same on all processes.
        rank: Of this process.
        processes: How many there are.
        place: Where this process is; from now on the others see it at once.
    """

    def __init__(self, folder: Path, rank: int, processes: int, place: Place) -> None:
        self.rank = rank
        self.others = [other for other in range(processes) if other != rank]
        self._folder = folder
        # Locked under another name first, so that nobody finds it without its lock.
        aside = folder / f"{rank}.new"
        self._descriptor = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(self._descriptor, _RECORD.size)
        self._memory = mmap.mmap(self._descriptor, _RECORD.size)
        self.publish(place)
        aside.rename(folder / str(rank))
        place.on_change = self.publish

    @classmethod
    def open(cls, run: Path, accelerator: Accelerator, place: Place) -> Self:
        """Make the board of a run that begins. All processes call this together.

        Raises:
            EnvironmentFault: RLVR-T106, the main process cannot write beside the run folder.
        """
        made: list[Any] = []
        if accelerator.is_main_process:
            try:
                made = [str(make_folder(run.absolute()))]
            except EnvironmentFault as exc:
                made = [pack_error(exc)]
        [folder] = gather_object(made)
        if isinstance(folder, bytes):
            raise unpack_error(folder)
        if not Path(folder).is_dir():
            raise EnvironmentFault(
                "RLVR-T106",
                f"process {accelerator.process_index} does not see what process 0 writes",
                origin=folder,
                fix="choose a run folder on a file system that all machines share",
            )
        with storing(Path(folder)):
            return cls(Path(folder), accelerator.process_index, accelerator.num_processes, place)

    def publish(self, place: Place, *, has_left: bool = False) -> None:
        """Show where this process is. A write to memory: it stands there when the process stops."""
        _RECORD.pack_into(
            self._memory,
            0,
            place.meetings,
            place.is_waiting,
            has_left,
            os.getpid(),
            _short(socket.gethostname(), 64),
            _short(str(place), 400),
        )

    def flush(self) -> None:
        """Bring what was published to other machines, to which memory alone does not go."""
        self._memory.flush()

    def post(self, fault: Fault) -> Fault:
        """Write down why the run ends, unless that is known; return what stands there."""
        # Two threads of a process may post, and none may touch what was linked.
        aside = self._folder / f"fault.{self.rank}.{threading.get_ident()}"
        with aside.open("x", encoding="utf-8") as file:
            file.write(fault.to_json())
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(aside, self._folder / _FAULT)
        aside.unlink()
        return self.fault() or fault

    def fault(self) -> Fault | None:
        """Return why the run ends, once that is known."""
        try:
            return Fault.from_json((self._folder / _FAULT).read_text("utf-8"))
        except FileNotFoundError:
            return None

    def seen(self, rank: int) -> Seen | None:
        """Return what a process last wrote; None when it has not come yet."""
        try:
            record = self._file(rank).read_bytes()
            meetings, is_waiting, has_left, pid, host, place = _RECORD.unpack(record)
        except (OSError, struct.error):
            return None
        texts = [text.rstrip(b"\0").decode("utf-8", "replace") for text in (place, host)]
        return Seen(texts[0], meetings, is_waiting, has_left, texts[1], pid)

    def is_there(self, rank: int) -> bool:
        """Return whether a process lives and has not left."""
        return _is_locked(self._file(rank))

    def is_killed(self, rank: int) -> bool:
        """Return whether a process ended without a word."""
        seen = self.seen(rank)
        return seen is not None and not seen.has_left and not self.is_there(rank)

    def kill(self, rank: int) -> None:
        """Kill a process that does not end by itself, if it lives on this machine."""
        seen = self.seen(rank)
        if not seen or seen.host != socket.gethostname() or not self.is_there(rank):
            return
        with suppress(ProcessLookupError, PermissionError):
            os.kill(seen.pid, signal.SIGKILL)
            while self.is_there(rank):
                time.sleep(0.01)

    def leave(self, place: Place) -> None:
        """Say that this process ends in order; the last one takes the board with it."""
        with suppress(OSError), self._leaving_alone():
            place.on_change = None
            self.publish(place, has_left=True)
            self._memory.close()
            os.close(self._descriptor)
            if not any(self._may_come_back(other) for other in self.others):
                shutil.rmtree(self._folder)

    def _may_come_back(self, rank: int) -> bool:
        """Return whether a process has yet to leave, or has not come at all."""
        file = self._file(rank)
        return not file.exists() or _is_locked(file)

    @contextmanager
    def _leaving_alone(self) -> Iterator[None]:
        with (self._folder / _LEAVING).open("w") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            yield

    def _file(self, rank: int) -> Path:
        return self._folder / str(rank)


def make_folder(run: Path) -> Path:
    """Make the folder of a board, and remove those of runs that were killed.

    One that no process has come to is left alone: another launcher may have just made it.
    """
    prefix = f".{run.name}.processes-"
    with storing(run.parent):
        run.parent.mkdir(parents=True, exist_ok=True)
        for old in run.parent.glob(f"{escape(prefix)}*"):
            came = [file for file in old.glob("[0-9]*") if file.name.isdecimal()]
            if came and not any(map(_is_locked, came)):
                shutil.rmtree(old, ignore_errors=True)
        return Path(tempfile.mkdtemp(prefix=prefix, dir=run.parent))


def _short(text: str, size: int) -> bytes:
    return text.encode("utf-8", "replace")[:size]


def _is_locked(file: Path) -> bool:
    """Return whether another process holds the lock of a file."""
    try:
        with file.open("rb") as opened:
            fcntl.lockf(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
