"""Ctrl-C and polite kills while a run goes on.

The first asks the run to end in order, and bounds how long that may take; a second ends it at once.
The main thread may sit in C, or in code that swallows exceptions, so a thread keeps the time;
Python tells it of signals through a descriptor, as they arrive.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

from rlvr_core.train.place import Place
from rlvr_core.train.sudden_end import END_WITHIN_S, INTERRUPTED_EXIT_CODE, end_process

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN_S = 0.5
"""Signals closer than this are one: a wrapper may pass on what the terminal has sent as well."""


class Interrupts:
    """Turns signals into one `KeyboardInterrupt` in the main thread while its block is open.

    Args:
        place: Where the run is.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._farewell: Callable[[], str] | None = None
        self._handlers: dict[signal.Signals, Any] = {}
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)

    def __enter__(self) -> Self:
        for number in SIGNALS:
            # nohup and shells' background jobs are not to hear of the terminal.
            if number is signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN:
                self._handlers[number] = signal.signal(number, self._interrupt)
        self._descriptor = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        threading.Thread(target=self._keep_time, name="rlvr-interrupts", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._place.is_interrupted:
            # What Python does at its very end is bounded too.
            return
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._descriptor)
        os.close(self._writer)

    @contextmanager
    def ending_at_once(self, farewell: Callable[[], str]) -> Iterator[None]:
        """End the process at the first signal in this block, which imports torch.

        An import that is broken off leaves halves of modules, on which Python stumbles at its end.

        Args:
            farewell: Says what to print; it may not import anything.
        """
        self._farewell = farewell
        try:
            yield
        finally:
            self._farewell = None

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._farewell:
            end_process(self._farewell(), INTERRUPTED_EXIT_CODE, self._place.last_act)
        if not self._place.is_interrupted:
            self._place.is_interrupted = True
            raise KeyboardInterrupt

    def _keep_time(self) -> None:
        """Wait for the first signal; then for a second one, or until it takes too long."""
        with os.fdopen(self._reader, "rb", buffering=0) as reader:
            first_s = self._next_signal(reader.fileno(), None)
            if first_s is None:
                return
            until_s = first_s + END_WITHIN_S
            again_s = self._next_signal(reader.fileno(), until_s)
            while again_s is not None and again_s < first_s + _AGAIN_S:
                again_s = self._next_signal(reader.fileno(), until_s)
        how = "again" if again_s is not None else f"and not ended after {END_WITHIN_S:.0f} s"
        end_process(
            f"interrupted {how} in {self._place}; ended at once",
            INTERRUPTED_EXIT_CODE,
            self._place.last_act,
        )

    def _next_signal(self, reader: int, until_s: float | None) -> float | None:
        """Return when the next of our signals arrives; None at the end of the time or the block."""
        while until_s is None or time.monotonic() < until_s:
            wait_s = None if until_s is None else max(0.0, until_s - time.monotonic())
            if select.select([reader], [], [], wait_s)[0]:
                received = os.read(reader, 1)
                if not received:
                    return None
                if received[0] in self._handlers:
                    return time.monotonic()
        return None


@contextmanager
def importing_torch() -> Iterator[None]:
    """End the process at the first signal in this block, of a command that leaves nothing behind.

    See `Interrupts.ending_at_once`.
    """
    place = Place("loading torch")
    with (
        Interrupts(place) as interrupts,
        interrupts.ending_at_once(lambda: f"interrupted in {place}; nothing was written"),
    ):
        yield


@contextmanager
def hearing_interruptions() -> Iterator[None]:
    """Raise `KeyboardInterrupt` for an error that something in this block has made of one.

    Extension modules that are interrupted while they are imported raise an ImportError, for which
    a plugin would be blamed.
    """
    is_interrupted = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal is_interrupted
        is_interrupted = True
        raise KeyboardInterrupt

    is_ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if is_ours:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except Exception as error:
        if is_interrupted:
            raise KeyboardInterrupt from error
        raise
    finally:
        if is_ours and signal.getsignal(signal.SIGINT) is interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)
