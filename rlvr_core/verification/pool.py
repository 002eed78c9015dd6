"""A pool of worker processes: hands out rows, holds deadlines, replaces what dies.

Everything here runs in the pump thread.
"""

from __future__ import annotations

import itertools
import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from rlvr_core.api.errors import PluginError, RlvrError
from rlvr_core.api.plugin import Resource
from rlvr_core.api.verdicts import FailureCategory, Verdict
from rlvr_core.verification import wire
from rlvr_core.verification.blame import Findings, investigate, last_word
from rlvr_core.verification.contract import ContractError
from rlvr_core.verification.handle import WorkerProcess
from rlvr_core.verification.plan import PoolPlan
from rlvr_core.verification.tasks import STRIKES, Chunk, Task, TaskQueue

_GRACE_S = 2.0
"""How long a worker that was asked to end gets for it."""
_MAX_START_FAILURES = 3
"""In a row; then no other worker is started."""
_TICK_S = 0.25
"""How often a pool that is at work looks at its workers."""


class Listener(Protocol):
    """Who is told what happens in a pool. Called in the pump thread."""

    def delivered(self, verdicts: list[tuple[Task, Verdict]]) -> None:
        """Take verdicts that are final."""

    def stopped(self, verifier: str, cause: FailureCategory) -> None:
        """A row of `verifier` stopped its worker."""

    def failed(self, verifiers: Iterable[str], error: RlvrError) -> None:
        """The pool cannot work; nothing more will be delivered for these verifiers."""

    def ended(self) -> None:
        """All workers are gone; nothing more will be delivered at all."""


class Pool:
    """The workers of one `PoolPlan`."""

    def __init__(
        self,
        plan: PoolPlan,
        listener: Listener,
        start_worker: Callable[[PoolPlan, bool], WorkerProcess],
    ) -> None:
        self.plan = plan
        self.workers: list[WorkerProcess] = []
        self.is_broken = False
        self._listener = listener
        self._start_worker = start_worker
        self._queue = TaskQueue()
        self._retries: deque[Task] = deque()
        self._leaving: list[tuple[WorkerProcess, float]] = []
        self._serials = itertools.count(1)
        self._start_failures = 0

    @property
    def is_ready(self) -> bool:
        """True once a worker has built its verifiers."""
        return any(worker.is_ready for worker in self.workers)

    def add(self, task: Task) -> None:
        """Queue a row."""
        if not self.is_broken:
            self._queue.add(task)

    def tick(self) -> float:
        """Do all that is due and return the time (`time.monotonic`) to be called again at."""
        for worker in list(self.workers):
            if worker.has_ended():
                self.ended(worker)
        due_s = self._hold_deadlines()
        self._see_off()
        if not self.is_broken:
            self._staff()
            self._hand_out()
        is_busy = self._leaving or any(not worker.is_idle for worker in self.workers)
        return min(due_s, time.monotonic() + (_TICK_S if is_busy else 4 * _TICK_S))

    def readable(self, worker: WorkerProcess) -> None:
        """Take what a worker sent."""
        messages, has_closed = worker.channel.receive()
        for message in messages:
            try:
                self._take(worker, message[:1], message[1:])
            except ContractError:
                # What no worker sends: something else writes to its channel.
                has_closed = True
                break
        if has_closed and worker in self.workers:
            self.ended(worker)

    def ended(self, worker: WorkerProcess) -> None:
        """Deal with a worker that ended, or closed its channel, without being asked to."""
        worker.await_end()
        if not worker.is_ready:
            self._start_failed(worker)
        else:
            self._stop(worker, FailureCategory.VERIFIER_CRASH)

    def close(self) -> None:
        """End all workers: idle ones in order, busy ones at once."""
        self._queue.clear()
        self._retries.clear()
        for worker in list(self.workers):
            if worker.is_idle:
                self._dismiss(worker)
            else:
                self._remove(worker)
        while self._leaving:
            self._see_off()
            time.sleep(0.002)

    def _take(self, worker: WorkerProcess, kind: bytes, payload: bytes) -> None:
        if kind == wire.READY:
            worker.is_ready = True
            worker.heard_s = time.monotonic()
            self._start_failures = 0
        elif kind == wire.FAILED:
            self._break(wire.unpack_error(payload))
        else:
            serial, records = wire.unpack_done(payload)
            chunk = worker.chunks.get(serial)
            verdicts = chunk.decoded(records) if chunk else []
            if chunk and len({id(task) for task, _ in verdicts}) < len(chunk.tasks):
                raise ContractError("expected a verdict on every row of the chunk")
            worker.answered(serial)
            if chunk:
                self._listener.delivered(verdicts)
                self._let_go(worker)

    def _let_go(self, worker: WorkerProcess) -> None:
        """End a worker that has done what it was kept for."""
        if worker not in self.workers or worker.chunks:
            return
        if worker.is_retiring:
            self._remove(worker)
        elif worker.is_for_retries:
            self._dismiss(worker)

    def _hold_deadlines(self) -> float:
        """Stop what is past its deadline and return the time of the next one."""
        nearest_s = math.inf
        for worker in list(self.workers):
            worker.cap_output()
            if not worker.is_ready:
                due_s = worker.started_s + self.plan.start_deadline_s
                if time.monotonic() >= due_s:
                    self._start_failed(worker)
                nearest_s = min(nearest_s, due_s)
                continue
            for chunk in list(worker.chunks.values()):
                is_overdue = self._is_overdue(worker, chunk)
                if worker not in self.workers:
                    break
                if not is_overdue:
                    nearest_s = min(nearest_s, worker.deadline_s(chunk))
                elif self.plan.lanes == 1:
                    self._stop(worker, FailureCategory.VERIFIER_TIMEOUT)
                    break
                else:
                    self._abandon(worker, chunk)
        return nearest_s

    def _is_overdue(self, worker: WorkerProcess, chunk: Chunk) -> bool:
        """Return whether a chunk is late, all that its worker has sent considered."""
        if time.monotonic() < worker.deadline_s(chunk):
            return False
        self.readable(worker)
        is_held = worker in self.workers and chunk.serial in worker.chunks
        return is_held and time.monotonic() >= worker.deadline_s(chunk)

    def _abandon(self, worker: WorkerProcess, chunk: Chunk) -> None:
        """Give up one lane; the other lanes of the worker may finish what they hold."""
        worker.is_retiring = True
        del worker.chunks[chunk.serial]
        printed = worker.printed()
        self._strike(chunk.tasks[0], FailureCategory.VERIFIER_TIMEOUT, "", printed)
        if not worker.chunks:
            self._remove(worker)

    def _stop(self, worker: WorkerProcess, cause: FailureCategory) -> None:
        """End a worker that hangs or died, keep what it finished and judge the rest again."""
        self.workers.remove(worker)
        if cause is FailureCategory.VERIFIER_TIMEOUT:
            findings = self._findings(worker)
            # The signal may wake the hung call, so what the worker says from here on is not heard.
            worker.dump_stack()
            worker.kill()
        else:
            worker.kill()
            self.readable(worker)
            findings = self._findings(worker)
        printed, ending = worker.printed(), worker.ending()
        for found in findings:
            self._listener.delivered(found.finished)
            if found.suspect is not None:
                self._strike(found.suspect, cause, ending, printed)
            self._queue.put_back(found.bystanders)
        worker.release()

    def _findings(self, worker: WorkerProcess) -> list[Findings]:
        """Return what is known about each chunk that the worker holds."""
        oldest = next(iter(worker.chunks), None)
        findings = []
        for serial, chunk in worker.chunks.items():
            progress = worker.progress(chunk.lane)
            is_between = serial == oldest and progress.chunk not in worker.chunks
            records = worker.board.lanes[chunk.lane].records()
            was_at_work = progress.chunk == serial or is_between
            findings.append(investigate(chunk, progress, records, was_at_work=was_at_work))
        return findings

    def _strike(self, task: Task, cause: FailureCategory, ending: str, printed: str) -> None:
        self._listener.stopped(task.verifier, cause)
        task.strikes += 1
        if task.strikes < STRIKES:
            self._retries.append(task)
            return
        instance = self.plan.instances[task.verifier]
        self._listener.delivered([(task, last_word(instance, cause, ending, printed))])

    def _staff(self) -> None:
        """Start the workers that are missing, and dismiss those that have served long enough."""
        regular = [worker for worker in self.workers if self._is_regular(worker)]
        for_retries = sum(worker.is_for_retries for worker in self.workers)
        wanted, wanted_for_retries = self.plan.processes, self.plan.retry_processes
        if self.plan.resource is Resource.MODEL:
            # One process at a time: a second copy of the model may not fit beside the first.
            if self._leaving:
                return
            if for_retries or self._retries:
                wanted = 0
            if regular:
                wanted_for_retries = 0
            for worker in regular:
                if self._retries and worker.is_idle:
                    self._dismiss(worker)
        lasting = [worker for worker in regular if not self._is_worn(worker)]
        for worker in regular:
            if worker not in lasting and worker.is_idle and self._has_successors():
                self._dismiss(worker)
        for _ in range(wanted - len(lasting)):
            self.workers.append(self._start_worker(self.plan, False))
        for _ in range(min(len(self._retries), wanted_for_retries) - for_retries):
            self.workers.append(self._start_worker(self.plan, True))

    def _hand_out(self) -> None:
        has_successors = self._has_successors()
        for worker in self.workers:
            if worker.is_for_retries:
                if self._retries and worker.is_idle and not worker.rows_served:
                    self._hand(worker, [self._retries.popleft()])
                continue
            if has_successors and self._is_worn(worker):
                continue
            while self._queue and worker.has_room(self.plan.chunks_ahead):
                self._hand(worker, self._queue.take(self._chunk_rows()))

    def _is_regular(self, worker: WorkerProcess) -> bool:
        return not worker.is_for_retries and not worker.is_retiring

    def _is_worn(self, worker: WorkerProcess) -> bool:
        limit = self.plan.recycle_rows
        return limit is not None and worker.rows_served >= limit

    def _has_successors(self) -> bool:
        """Return whether enough ready workers are not worn, so that worn ones may go."""
        ready = (each for each in self.workers if each.is_ready and self._is_regular(each))
        return sum(not self._is_worn(worker) for worker in ready) >= self.plan.processes

    def _chunk_rows(self) -> int:
        """Return how many rows to hand out: fewer towards the end, so that all end together."""
        if self.plan.resource is Resource.MODEL:
            return self.plan.rows_a_chunk
        share = math.ceil(len(self._queue) / (2 * self.plan.processes))
        return max(1, min(self.plan.rows_a_chunk, share))

    def _hand(self, worker: WorkerProcess, tasks: list[Task]) -> None:
        instance = self.plan.instances[tasks[0].verifier]
        serial = next(self._serials)
        worker.hand(Chunk(serial, worker.free_lane(), instance, tasks, time.monotonic()))

    def _dismiss(self, worker: WorkerProcess) -> None:
        """Let an idle worker end in order."""
        self.workers.remove(worker)
        worker.finish()
        self._leaving.append((worker, time.monotonic() + _GRACE_S))

    def _see_off(self) -> None:
        staying = []
        for worker, until_s in self._leaving:
            if worker.has_ended() or time.monotonic() >= until_s:
                worker.kill()
                worker.release()
            else:
                staying.append((worker, until_s))
        self._leaving = staying

    def _remove(self, worker: WorkerProcess) -> None:
        self.workers.remove(worker)
        worker.kill()
        worker.release()

    def _start_failed(self, worker: WorkerProcess) -> None:
        worker.kill()
        printed, ending = worker.printed(), worker.ending()
        self.workers.remove(worker)
        worker.release()
        self._start_failures += 1
        if self._start_failures >= _MAX_START_FAILURES:
            first = next(iter(self.plan.instances.values()))
            self._break(
                PluginError(
                    "RLVR-V102",
                    f"no worker for verifier {first.name!r} could be started: {ending}",
                    origin=first.ref.blame,
                    cause=printed or None,
                    fix="run `rlvr plugins doctor`; then report it",
                    report=first.ref.report_url,
                )
            )

    def _break(self, error: RlvrError) -> None:
        self.is_broken = True
        self._queue.clear()
        self._retries.clear()
        for worker in list(self.workers):
            self._remove(worker)
        self._listener.failed(self.plan.instances, error)
