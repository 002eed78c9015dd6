"""The parent's handle on one worker process."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import socket
import subprocess
import sys
import time

from rlvr_core.verification import output
from rlvr_core.verification.board import Board, Progress, board_descriptor
from rlvr_core.verification.environment import worker_environment
from rlvr_core.verification.keeper import Keeper
from rlvr_core.verification.plan import PoolPlan
from rlvr_core.verification.processes import kill_group, kill_marked, kill_tree
from rlvr_core.verification.tasks import Chunk
from rlvr_core.verification.wire import ParentChannel, Startup, Work

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); ends = [*map(int, sys.argv[2:4])]; "
    "from rlvr_core.verification.guardian import stand_guard; stand_guard(ends); "
    "from rlvr_core.verification.worker import main; main(*ends)"
)
_STACK_DUMP_S = 0.03
"""How long a worker gets to print its stack."""
_LAST_MOMENT_S = 0.2
"""How long a worker that closed its channel gets to end by itself."""
_SILENCE_S = 60.0
"""How long beyond a row's deadline a worker may go without beginning a chunk that is its next."""


class WorkerProcess:
    """A worker process, the chunks it holds, and the ways to end it."""

    def __init__(
        self, plan: PoolPlan, seed: int, token: str, keeper: Keeper, *, is_for_retries: bool
    ) -> None:
        self.is_for_retries = is_for_retries
        self.is_ready = False
        self.is_retiring = False
        self.chunks: dict[int, Chunk] = {}
        """Handed out and not answered, by serial number, oldest first."""
        self.rows_served = 0
        self.started_s = time.monotonic()
        self.heard_s = self.started_s
        """When it last answered."""
        self._token = token
        self._keeper = keeper
        self._free_lanes = list(range(plan.lanes))
        self._output = output.output_descriptor()
        descriptor = board_descriptor()
        try:
            self.board = Board(descriptor, plan.lanes, plan.rows_a_chunk)
            self._process, self.channel = self._start(plan, descriptor)
        finally:
            os.close(descriptor)
        keeper.watch(self._process.pid)
        refs = {name: instance.ref for name, instance in plan.instances.items()}
        self.channel.send(
            Startup(refs, seed, plan.lanes, plan.rows_a_chunk, plan.memory_limit_bytes)
        )

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def is_idle(self) -> bool:
        """True when it is ready and holds nothing."""
        return self.is_ready and not self.chunks

    def has_room(self, chunks_ahead: int) -> bool:
        """Return whether it can be handed one more chunk, of which it may hold `chunks_ahead`."""
        return self.is_ready and not self.is_retiring and len(self.chunks) < chunks_ahead

    def free_lane(self) -> int:
        """Return a lane that works on nothing, or the only lane."""
        return self._free_lanes[-1] if self._free_lanes else 0

    def hand(self, chunk: Chunk) -> None:
        """Send it a chunk."""
        self.chunks[chunk.serial] = chunk
        if chunk.lane in self._free_lanes:
            self._free_lanes.remove(chunk.lane)
        rows = [task.row.to_wire() for task in chunk.tasks]
        self.channel.send(Work(chunk.lane, chunk.serial, chunk.instance.name, rows))

    def answered(self, serial: int) -> Chunk | None:
        """Take back a chunk that was answered; None if it is no longer waited for."""
        self.heard_s = time.monotonic()
        chunk = self.chunks.pop(serial, None)
        if chunk is not None:
            self.rows_served += len(chunk.tasks)
            if chunk.lane not in self._free_lanes:
                self._free_lanes.append(chunk.lane)
        return chunk

    def progress(self, lane: int) -> Progress:
        """Return what one of its lanes is doing."""
        return self.board.lanes[lane].progress()

    def deadline_s(self, chunk: Chunk) -> float:
        """Return when a chunk that it was handed is overdue, by `time.monotonic`."""
        progress = self.progress(chunk.lane)
        if progress.chunk == chunk.serial:
            has_row = progress.index is not None
            return progress.started_s + (chunk.instance.timeout_s if has_row else chunk.budget_s)
        if progress.chunk in self.chunks:
            return math.inf
        # Not begun although nothing is before it: the worker is stuck between two chunks.
        since_s = max(self.heard_s, chunk.sent_s)
        return since_s + chunk.instance.timeout_s + _SILENCE_S

    def has_ended(self) -> bool:
        """Return whether the process is gone, without reaping it where the system allows."""
        if self._process.returncode is not None:
            return True
        if hasattr(os, "waitid"):
            options = os.WEXITED | os.WNOHANG | os.WNOWAIT
            with contextlib.suppress(ChildProcessError):
                return os.waitid(os.P_PID, self.pid, options) is not None
        return self._process.poll() is not None

    def await_end(self) -> None:
        """Give a worker that closed its channel a moment to end by itself, for its exit code."""
        until_s = time.monotonic() + _LAST_MOMENT_S
        while not self.has_ended() and time.monotonic() < until_s:
            time.sleep(0.001)

    def printed(self) -> str:
        """Return the end of what it printed."""
        return output.tail(self._output)

    def cap_output(self) -> None:
        """Drop what it printed once it is too much to keep."""
        output.cap(self._output)

    def dump_stack(self) -> None:
        """Have it print where it is, also from inside a hung call into C."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGUSR1)
            time.sleep(_STACK_DUMP_S)

    def finish(self) -> None:
        """Ask an idle worker to end in order; `kill` and `release` must follow."""
        self.channel.finish()

    def kill(self) -> None:
        """Kill it with all its descendants, and reap it. Board and output can still be read."""
        if self.has_ended():
            kill_group(self.pid)
            kill_marked(self._token)
        else:
            kill_tree(self.pid, self._token)
        self._process.wait()
        self._keeper.forget(self.pid)

    def ending(self) -> str:
        """Say how the reaped process ended."""
        code = self._process.returncode
        if code is not None and code < 0:
            return f"its worker process was ended by {signal.Signals(-code).name}"
        return f"its worker process exited with code {code}"

    def release(self) -> None:
        """Close what is shared with the process."""
        self.channel.close()
        self.board.close()
        os.close(self._output)

    def _start(self, plan: PoolPlan, board: int) -> tuple[subprocess.Popen[bytes], ParentChannel]:
        ours, theirs = socket.socketpair()
        # The worker finds modules where this process does, however it was set up.
        path = json.dumps([entry or os.getcwd() for entry in sys.path])
        with theirs:
            process = subprocess.Popen(  # noqa: S603 - our own code
                [sys.executable, "-P", "-u", "-c", _BOOT, path, str(theirs.fileno()), str(board)],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                env=worker_environment(plan.environment, self._token),
                pass_fds=(theirs.fileno(), board),
                start_new_session=True,
            )
        return process, ParentChannel(ours)
