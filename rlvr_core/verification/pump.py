"""The thread that moves rows and verdicts while the caller computes."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import select
import threading
import time
from collections import deque
from collections.abc import Sequence

from rlvr_core.verification.handle import WorkerProcess
from rlvr_core.verification.keeper import Keeper
from rlvr_core.verification.plan import PoolPlan
from rlvr_core.verification.pool import Listener, Pool
from rlvr_core.verification.tasks import Task


class Pump(threading.Thread):
    """Owns every worker, its pipe and the keeper."""

    def __init__(self, plans: Sequence[PoolPlan], listener: Listener, seed: int) -> None:
        super().__init__(name="rlvr-verification", daemon=True)
        self.crash: BaseException | None = None
        """What ended the thread, if it was not `stop`."""
        self._listener = listener
        self._seed = seed
        self._token = secrets.token_hex(8)
        self._worker_numbers = itertools.count(1)
        self._inbox: deque[list[Task]] = deque()
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_reader, False)
        os.set_blocking(self._wake_writer, False)
        self._is_stopping = False
        self._keeper: Keeper | None = None
        self.pools = [Pool(plan, listener, self._start_worker) for plan in plans]
        self._pool_of = {name: pool for pool in self.pools for name in pool.plan.instances}

    def put(self, tasks: list[Task]) -> None:
        """Take tasks from any thread."""
        self._inbox.append(tasks)
        self._wake()

    def stop(self) -> None:
        """End all workers and wait for the thread to end."""
        self._is_stopping = True
        self._wake()
        self.join()
        os.close(self._wake_reader)
        os.close(self._wake_writer)

    def run(self) -> None:
        """Serve until stopped; whatever happens, leave no process behind."""
        try:
            self._keeper = Keeper(self._token)
            while not self._is_stopping:
                self._wait(min((pool.tick() for pool in self.pools), default=time.monotonic() + 1))
                while self._inbox:
                    for task in self._inbox.popleft():
                        self._pool_of[task.verifier].add(task)
        except BaseException as exc:  # noqa: BLE001 - raised again in the callers' threads
            self.crash = exc
        finally:
            self._shut_down()

    def _wait(self, until_s: float) -> None:
        """Wait for workers, tasks or time, and take what workers sent."""
        poller = select.poll()
        poller.register(self._wake_reader, select.POLLIN)
        served: dict[int, tuple[Pool, WorkerProcess]] = {}
        for pool in self.pools:
            for worker in pool.workers:
                writing = select.POLLOUT if worker.channel.wants_to_write else 0
                poller.register(worker.channel, select.POLLIN | writing)
                served[worker.channel.fileno()] = (pool, worker)
        for descriptor, events in poller.poll(max(0.0, until_s - time.monotonic()) * 1000 + 1):
            if descriptor == self._wake_reader:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake_reader, 4096)
                continue
            pool, worker = served[descriptor]
            if worker not in pool.workers:
                continue
            if events & select.POLLOUT:
                worker.channel.flush()
            if events & ~select.POLLOUT:
                pool.readable(worker)

    def _start_worker(self, plan: PoolPlan, is_for_retries: bool) -> WorkerProcess:
        if self._keeper is None:
            raise RuntimeError("the keeper starts before the first worker")
        token = f"{self._token}.{next(self._worker_numbers)}"
        return WorkerProcess(plan, self._seed, token, self._keeper, is_for_retries=is_for_retries)

    def _shut_down(self) -> None:
        try:
            for pool in self.pools:
                pool.close()
        finally:
            if self._keeper is not None:
                self._keeper.close()
            self._listener.ended()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_writer, b"\0")
