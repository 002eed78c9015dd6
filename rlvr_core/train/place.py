"""Where one process of a run is: in which step, at what, and whether it waits for the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rlvr_core.api.errors import RunEndedError, exception_text
from rlvr_core.plugins.calls import Call


class Disconnected(RunEndedError):
    """Meeting the other processes failed; usually one of them has ended, and knows why."""


@dataclass(slots=True, eq=False)
class Place:
    """Written by the main thread of a process, read by the threads that watch over it."""

    phase: str = "starting"
    """What this process does."""
    step: int = 0
    """The last finished step."""
    meetings: int = 0
    """How often this process has come to a point where all processes meet."""
    is_waiting: bool = False
    """Whether it stands at such a point now."""
    is_interrupted: bool = False
    """Whether this process was asked to end, by Ctrl-C or a polite kill."""
    conclusion: BaseException | None = None
    """What the run ended with, once that is known."""
    call: Call | None = None
    """The hook of a plugin that runs."""
    on_change: Callable[[Place], None] | None = None
    """Told of every change in the main thread."""
    last_act: Callable[[], None] = lambda: None
    """What remains to be done when this process is ended in the middle of its work."""

    def __str__(self) -> str:
        is_between = self.step > 0 and not self.phase.startswith("step ")
        call = self.call
        return (
            self.phase
            + (f", after step {self.step}" if is_between else "")
            + (f", in {call.hook} of {call.plugin!r}" if call else "")
        )

    def enter(self, phase: str, step: int = 0) -> None:
        """Begin something else."""
        self.phase, self.step = phase, step
        self._changed()

    def calls(self, call: Call | None) -> None:
        """Begin or end the call of a plugin."""
        self.call = call
        self._changed()

    @contextmanager
    def meeting(self) -> Iterator[None]:
        """Mark that this process waits for the others while the block runs.

        Raises:
            Disconnected: RLVR-T109, for what torch raises when the connection is lost.
        """
        self.meetings += 1
        self.is_waiting = True
        self._changed()
        try:
            yield
        except RuntimeError as exc:
            raise Disconnected(
                "RLVR-T109",
                f"the connection between the processes broke in {self}",
                cause=exception_text(exc),
                fix="look at the output of the other processes; --resume continues the run",
            ) from exc
        finally:
            self.is_waiting = False
            self._changed()

    def _changed(self) -> None:
        if self.on_change:
            self.on_change(self)
