"""Seeing to it that a process ends soon after its run has ended anywhere, and says why.

A process that waits for another in torch cannot be woken, and hears no more than that a connection
broke. So a thread looks on: at the noticeboard, at processes that were killed, and at the time that
this process has waited. What it finds ends the process, whatever its main thread does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from rlvr_core.api.errors import (
    EnvironmentFault,
    RlvrError,
    RunEndedError,
    RunFolderError,
    listed,
)
from rlvr_core.api.verdicts import Json
from rlvr_core.plugins.stages import VERIFY
from rlvr_core.train.fault import Fault, killed, raised
from rlvr_core.train.noticeboard import Noticeboard, Seen
from rlvr_core.train.place import Disconnected, Place
from rlvr_core.train.run_folder import RunFolder
from rlvr_core.train.sudden_end import END_WITHIN_S, end_process

_TICK_S = 0.5
_EVIDENCE_S = 3.0
"""How long a process that lost its connection looks for the reason."""
_LAUNCHER_S = 0.5
"""The same for one that was asked to end: a launcher may have asked, because another was killed."""
_GRACE_S = 2.0
"""How long the main thread has to notice by itself that the run has ended."""
_SLOW_S = 60.0
"""After this long, and after each time twice as long, what is slow is spoken of."""
_MAY_TAKE_LONG = frozenset({"rlvr_sample_groups", "rlvr_rescue_groups", VERIFY})
"""Hooks in which completions are sampled or judged."""


class Watch:
    """Watches over this process's part of a run while its block is open.

    Args:
        run: The run folder, which need not be there yet.
        place: Where this process is.
        board: Shared with the other processes; None when there are none.
        timeout_s: How long this process may wait for the others.
    """

    def __init__(
        self, run: Path, place: Place, board: Noticeboard | None, timeout_s: float
    ) -> None:
        self.log: Callable[[Mapping[str, Json]], None] = lambda event: None
        """Takes an event about what is slow."""
        self._began = _now()
        self._run = run
        self._place = place
        self._board = board
        self._rank = board.rank if board else 0
        self._timeout_s = timeout_s
        self._concluding = threading.Lock()
        self._is_concluding = threading.Event()
        self._is_over = threading.Event()
        self._is_run_ours = False
        self._meeting = (0, 0.0)
        """Number of the meeting at which this process waits, and for how long, in seconds."""
        self._spoken_s = 0.0
        self._thread = threading.Thread(target=self._look_on, name="rlvr-watch", daemon=True)

    def __enter__(self) -> Self:
        self._place.last_act = self._note_interruption
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is not None:
                self._raise_conclusion(error)
        finally:
            self._is_over.set()
            self._thread.join()
            self._place.last_act = lambda: None
            if self._board:
                self._board.leave(self._place)

    @contextmanager
    def owning_the_run(self) -> Iterator[None]:
        """Conclude what goes wrong in this block, in which the run folder is this run's own."""
        self._is_run_ours = True
        with self.concluding():
            yield

    @contextmanager
    def concluding(self) -> Iterator[None]:
        """Note at once what ends the run in this block, and raise its first cause instead."""
        try:
            yield
        except BaseException as error:
            self._raise_conclusion(error)
            raise

    def _raise_conclusion(self, caught: BaseException) -> None:
        """Raise the first cause, when it is not `caught` itself."""
        with self._concluding:
            self._is_concluding.set()
            if self._place.conclusion is None:
                # Some libraries make an error of their own of an interruption.
                is_made_of_it = self._place.is_interrupted and isinstance(caught, Exception)
                error = KeyboardInterrupt() if is_made_of_it else caught
                fault = self._first_cause(error)
                self._note(fault)
                self._place.conclusion = (
                    error if fault.rank == self._rank else self._elsewhere(fault)
                )
        if self._place.conclusion is not caught:
            raise self._place.conclusion from caught

    def _first_cause(self, error: BaseException) -> Fault:
        own = raised(self._rank, str(self._place), error)
        if self._board is None:
            return own
        found = None
        if isinstance(error, Disconnected):
            found = self._evidence(_EVIDENCE_S)
        elif isinstance(error, KeyboardInterrupt):
            # Launchers send a polite kill to all others when one process has ended.
            found = self._evidence(_LAUNCHER_S)
        with suppress(OSError):
            return self._board.post(found or own)
        return found or own

    def _evidence(self, within_s: float) -> Fault | None:
        """Return what has ended the run elsewhere, if that shows within some time."""
        until_s = time.monotonic() + within_s
        while True:
            fault = self._found()
            if fault or time.monotonic() >= until_s:
                return fault
            time.sleep(0.05)

    def _found(self) -> Fault | None:
        """Return what is posted, or what can be said of a process that was killed."""
        if self._board is None:
            return None
        with suppress(OSError):
            fault = self._board.fault()
            if fault:
                return fault
            for rank in self._board.others:
                if self._board.is_killed(rank):
                    seen = self._board.seen(rank)
                    return killed(rank, seen.place if seen else "starting")
        return None

    def _late(self) -> dict[int, Seen]:
        """Return the processes that have not come to the meeting at which this one waits."""
        if self._board is None:
            return {}
        seen = {rank: self._board.seen(rank) for rank in self._board.others}
        return {
            rank: each
            for rank, each in seen.items()
            if each and (each.meetings < self._place.meetings or not each.is_waiting)
        }

    def _overdue(self, waited_s: float) -> Fault:
        """Return who is to blame for a meeting that does not come about."""
        late = self._late()
        rank = min(late, key=lambda each: late[each].meetings, default=self._rank)
        place = late[rank].place if late else str(self._place)
        if not late:
            what = "all processes have come there, and do not get on"
            fix = "look for what is wrong with the network between them"
        elif late[rank].is_waiting:
            what = "it waits for the others where they do not come to"
            fix = "a plugin that calls session.sum_over_ranks must call it on every process"
        else:
            what = "it did not come on from there"
            fix = "look for what holds it up there"
        error = RunEndedError(
            "RLVR-T109",
            what,
            cause=f"rank {self._rank} waited for {waited_s:.0f} s in {self._place}",
            fix=f"{fix}; train.process_timeout_s is how long processes wait; --resume continues "
            "the run",
        )
        return Fault(rank=rank, place=place, error=error)

    def _elsewhere(self, fault: Fault) -> BaseException:
        """Return what this process raises for what happened in another."""
        return fault.seen_from_elsewhere(len(self._board.others) + 1 if self._board else 1)

    def _note(self, fault: Fault) -> None:
        """Write down in the manifest how the run ended, if that is for this process to do."""
        is_main = self._rank == 0
        is_main_gone = self._board is not None and not is_main and self._board.is_killed(0)
        if not self._is_run_ours or not (is_main or is_main_gone):
            return
        error = fault.error
        # A disk that is full must not hide what went wrong first; nor may whoever came first.
        with suppress(EnvironmentFault, RunFolderError):
            folder = RunFolder.open(self._run)
            with nullcontext() if is_main else folder.lock():
                ended = folder.manifest.get("ended") or {"at": ""}
                if ended["at"] >= self._began:
                    return  # it was over, or another process has noted this
                folder.update_manifest(
                    status="failed" if error else "interrupted",
                    ended={
                        "at": _now(),
                        "step": self._place.step,
                        "reason": f"{type(error).__name__}: {error.message}" if error else None,
                        "cause": error.cause if error else None,
                        "rank": fault.rank,
                        "phase": fault.place,
                    },
                )

    def _note_interruption(self) -> None:
        """Do what `concluding` would have done, had the main thread been woken."""
        with suppress(KeyboardInterrupt, RlvrError):
            self._raise_conclusion(KeyboardInterrupt())

    # The thread's part.

    def _look_on(self) -> None:
        while not self._is_over.wait(_TICK_S):
            self._count()
            fault = None
            # A folder that cannot be read now may be read at the next look.
            with suppress(OSError):
                if self._board:
                    self._board.flush()
                fault = self._look()
            is_overdue = fault is None and self._meeting[1] >= self._timeout_s
            if is_overdue:
                fault = self._overdue(self._meeting[1])
            if fault:
                self._end(fault, is_overdue=is_overdue)
                return
            # Nor does it end the watch that what it says is not taken.
            with suppress(Exception):
                self._speak_of_what_is_slow()

    def _count(self) -> None:
        """Count how long this process has waited for the others.

        In looks and not by a clock: while it is stopped, as by Ctrl-Z, no time passes.
        """
        number, waited_s = self._meeting
        is_same = self._place.is_waiting and self._place.meetings == number
        self._meeting = (self._place.meetings, waited_s + _TICK_S if is_same else 0.0)

    def _look(self) -> Fault | None:
        """Return why the run ends, if it does."""
        if self._board is None:
            return None
        return self._found() if self._meeting[1] else self._board.fault()

    def _end(self, fault: Fault, *, is_overdue: bool) -> None:
        """End this process, by force if its main thread does not end it in order."""
        board, place = self._board, str(self._place)
        if board is None:
            return
        with suppress(OSError):
            fault = board.post(fault)
        error = self._elsewhere(fault)
        message = error.render() if isinstance(error, RlvrError) else f"interrupted in {place}"
        if self._is_concluding.wait(_GRACE_S) or not self._concluding.acquire(blocking=False):
            if not self._is_over.wait(END_WITHIN_S):
                late = f"rank {self._rank} was ended: closing took longer than {END_WITHIN_S:g} s"
                end_process(f"{message}\n{late}", fault.exit_code, lambda: None)
            return
        if is_overdue and fault.rank != self._rank:
            # One that is stopped, or hangs so that not even its own watch runs, is not left behind.
            until_s = time.monotonic() + _GRACE_S + 2 * _TICK_S
            while board.is_there(fault.rank) and time.monotonic() < until_s:
                time.sleep(0.1)
            board.kill(fault.rank)

        def last_act() -> None:
            self._note(fault)
            board.leave(self._place)

        end_process(message, fault.exit_code, last_act)

    def _speak_of_what_is_slow(self) -> None:
        """Say that a plugin, or waiting for the other processes, takes longer than it should."""
        call, waited_s = self._place.call, self._meeting[1]
        if call and call.hook not in _MAY_TAKE_LONG:
            who, slow_s, what = call.plugin, time.monotonic() - call.since_s, str(self._place)
        else:
            late = listed(f"rank {rank} in {seen.place}" for rank, seen in self._late().items())
            who, slow_s, what = "core", waited_s, f"{self._place}, waiting for {late or 'no one'}"
        if slow_s < _SLOW_S:
            self._spoken_s = 0.0
        elif slow_s >= max(_SLOW_S, 2 * self._spoken_s):
            self._spoken_s = slow_s
            event = {"step": self._place.step, "kind": "slow", "monitor": who}
            self.log({**event, "reason": f"{what}, for {slow_s:.0f} s"})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
