"""A worker process: builds verifiers once, then judges chunks of rows until its parent closes.

Started by `rlvr_core.verification.handle` with an environment of its own, in a session of its own.
Imports torch only if a verifier does.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import queue
import resource
import signal
import socket
import sys
import threading
import time

from rlvr_core.api.errors import PluginError, RlvrError, exception_text
from rlvr_core.plugins.ref import PluginRef
from rlvr_core.verification import output
from rlvr_core.verification.board import Board, Lane, pack_record
from rlvr_core.verification.grading import Grader
from rlvr_core.verification.wire import (
    DONE,
    FAILED,
    READY,
    Startup,
    Work,
    WorkerChannel,
    pack_done,
    pack_error,
)

_STDOUT = 1


class Worker:
    """The lanes of one worker process and the channel they share."""

    def __init__(self, channel: WorkerChannel, startup: Startup, board: Board) -> None:
        self._channel = channel
        self._startup = startup
        self._board = board
        self._sending = threading.Lock()

    def run(self) -> None:
        """Build the verifiers, say so, and work until the parent closes the channel."""
        try:
            first = self._graders()
            if self._startup.lanes > 1:
                self._run_lanes(first)
                return
        except RlvrError as exc:
            self._channel.send(FAILED, pack_error(exc))
            return
        self._channel.send(READY)
        while (work := self._channel.receive()) is not None:
            self._judge(first, work)
            output.cap(_STDOUT)

    def _run_lanes(self, first: dict[str, Grader]) -> None:
        """Give each lane a thread, and verifier instances of its own, so that none are shared."""
        graders = [first, *(self._graders() for _ in range(self._startup.lanes - 1))]
        queues: list[queue.SimpleQueue[Work]] = [queue.SimpleQueue() for _ in graders]
        for lane in zip(queues, graders, strict=True):
            threading.Thread(target=self._serve_lane, args=lane, daemon=True).start()
        self._channel.send(READY)
        while (work := self._channel.receive()) is not None:
            queues[work.lane].put(work)

    def _serve_lane(self, waiting: queue.SimpleQueue[Work], graders: dict[str, Grader]) -> None:
        while True:
            self._judge(graders, waiting.get())

    def _graders(self) -> dict[str, Grader]:
        return {name: _built(ref, self._startup.seed) for name, ref in self._startup.refs.items()}

    def _judge(self, graders: dict[str, Grader], work: Work) -> None:
        lane: Lane = self._board.lanes[work.lane]
        lane.clear()
        lane.mark(work.chunk, None, time.monotonic())

        def announce(index: int) -> None:
            lane.mark(work.chunk, index, time.monotonic())

        records = []
        for index, verdict in graders[work.verifier].judge(work.rows, announce):
            record = pack_record(index, verdict)
            lane.store(record)
            records.append(record)
        lane.mark(0, None, 0.0)
        with self._sending:
            self._channel.send(DONE, pack_done(work.chunk, b"".join(records)))


def main(socket_descriptor: int, board_descriptor: int) -> None:
    """Run a worker on descriptors inherited from its parent."""
    for descriptor in (socket_descriptor, board_descriptor):
        os.set_inheritable(descriptor, False)
    faulthandler.enable()
    # The parent asks a worker where it hangs before it kills it.
    faulthandler.register(signal.SIGUSR1)
    channel = WorkerChannel(socket.socket(fileno=socket_descriptor))
    startup = channel.receive()
    if not isinstance(startup, Startup):
        return
    _limit_memory(startup.memory_limit_bytes)
    board = Board(board_descriptor, startup.lanes, startup.rows_a_lane)
    Worker(channel, startup, board).run()


def _built(ref: PluginRef, seed: int) -> Grader:
    try:
        return Grader(ref, seed)
    except RlvrError:
        raise
    except Exception as exc:
        raise PluginError(
            "RLVR-P105",
            f"plugin {ref.plugin!r} failed while it was being constructed in a worker",
            origin=ref.blame,
            cause=exception_text(exc),
            report=ref.report_url,
        ) from exc


def _limit_memory(limit_bytes: int | None) -> None:
    if limit_bytes is None or not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(ValueError, OSError):
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes, hard))
