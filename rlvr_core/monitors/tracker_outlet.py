"""A thread that sends records to a tool, and whatever the tool does is nobody else's concern."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from rlvr_core.api.errors import exception_text

_opened: list[Outlet] = []
"""All of this process."""
WAITING = 1000
"""Records that may wait for a slow tool; more are lost."""


class Tool(Protocol):
    """A run of an experiment tracker."""

    run_id: str | None
    """The tool's own name of the run, where it can be continued under it."""

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Send the numbers of a step."""
        ...

    def finish(self) -> None:
        """End the run in order."""
        ...


class Outlet:
    """Takes records at once and sends them in order, as fast as the tool takes them.

    Args:
        open_tool: Begins or continues the tool's run of that id. Tried again with every record
            until it succeeds.
        run_id: None where the tool gives a new run its id.
    """

    def __init__(self, open_tool: Callable[[str | None], Tool], run_id: str | None) -> None:
        self.run_id = run_id
        self.lost = 0
        """Records that did not reach the tool."""
        self.reason = ""
        """Why the first of them did not."""
        self._open_tool = open_tool
        self._tool: Tool | None = None
        self._waiting: queue.Queue[tuple[Mapping[str, float], int] | None] = queue.Queue(WAITING)
        self._is_sending = False
        self._is_closing = False
        # A thread that hangs must not keep the process.
        self._thread = threading.Thread(target=self._send_all, name="rlvr-tracker", daemon=True)
        self._thread.start()
        _opened.append(self)

    def put(self, values: Mapping[str, float], step: int) -> None:
        """Take a record; never waits."""
        try:
            self._waiting.put_nowait((values, step))
        except queue.Full:
            self._lose(f"{WAITING} records wait for it already")

    def close(self, within_s: float) -> bool:
        """Let the thread send what waits, for so long at most, and end the tool's run.

        Returns:
            Whether it has; if not, what is left counts as lost. Safe to repeat.
        """
        if not self._is_closing:
            self._is_closing = True
            self._end(within_s)
        return not self._thread.is_alive()

    def _end(self, within_s: float) -> None:
        until_s = time.monotonic() + within_s
        try:
            self._waiting.put(None, timeout=within_s)
        except queue.Full:
            pass
        else:
            self._thread.join(max(0.0, until_s - time.monotonic()))
        if self._thread.is_alive():
            waiting = sum(record is not None for record in list(self._waiting.queue))
            for _ in range(waiting + self._is_sending):
                self._lose(f"it took longer than {within_s:g} s at the end of the run")

    def _send_all(self) -> None:
        while (record := self._waiting.get()) is not None:
            self._is_sending = True
            try:
                if self._tool is None:
                    self._tool = self._open_tool(self.run_id)
                    self.run_id = self._tool.run_id
                self._tool.log(*record)
            # Whatever a tool raises, SystemExit too, costs this record only.
            except BaseException as error:  # noqa: BLE001
                self._lose(exception_text(error))
            self._is_sending = False
        if self._tool is not None:
            try:
                self._tool.finish()
            except BaseException as error:  # noqa: BLE001 - as above
                self.reason = self.reason or exception_text(error)

    def _lose(self, reason: str) -> None:
        self.lost += 1
        self.reason = self.reason or reason


def close_all(within_s: float) -> bool:
    """Close what is still open when the process ends, and say whether no tool hangs."""
    until_s = time.monotonic() + within_s
    have_ended = [each.close(max(0.0, until_s - time.monotonic())) for each in _opened]
    return all(have_ended)
