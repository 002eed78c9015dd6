"""Clocks and peak memory for the scripts beside this one."""

from __future__ import annotations

import threading
from time import perf_counter, process_time

import psutil
import torch

MIB = 2**20


class Clock:
    """Wall-clock and CPU seconds since it was made; the latter hardly see what else is running."""

    def __init__(self) -> None:
        self._wall, self._cpu = perf_counter(), process_time()

    def read(self) -> tuple[float, float]:
        return perf_counter() - self._wall, process_time() - self._cpu


class Times:
    """Seconds of each step."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def add(self, *parts: tuple[float, float]) -> None:
        self.wall.append(sum(wall for wall, _ in parts))
        self.cpu.append(sum(cpu for _, cpu in parts))


class PeakMemory:
    """The most memory that a block held, in MiB: of the GPU where there is one, else resident."""

    INTERVAL_S = 0.005

    def __enter__(self) -> PeakMemory:
        self.mib = 0.0
        self._done = threading.Event()
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watcher.join()
        if torch.cuda.is_available():
            self.mib = torch.cuda.max_memory_allocated() / MIB

    def _watch(self) -> None:
        process = psutil.Process()
        while True:
            self.mib = max(self.mib, process.memory_info().rss / MIB)
            if self._done.wait(self.INTERVAL_S):
                return


def resident_mib() -> float:
    """Return what this process holds now, in MiB."""
    return psutil.Process().memory_info().rss / MIB
