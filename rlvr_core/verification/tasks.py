"""Rows that wait, and the chunks they travel in."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from rlvr_core.api.verdicts import Verdict
from rlvr_core.verification.board import unpack_records
from rlvr_core.verification.contract import ContractError, decode
from rlvr_core.verification.plan import Instance
from rlvr_core.verification.rows import RawRow

STRIKES = 2
"""A row that stopped its worker this often is not tried again."""

_MOST_ROWS_OF_A_BUDGET = 32
"""A large chunk that announces nothing must not hang for as long as all of its rows may take."""


@dataclass(slots=True, eq=False)
class Task:
    """One row on its way to a verdict."""

    verifier: str
    row: RawRow
    strikes: int = 0
    is_alone: bool = False
    """It must not share a chunk: it was in one that stopped a worker, nobody knows by which row."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of one verifier that a lane of a worker judges one after the other."""

    serial: int
    lane: int
    instance: Instance
    tasks: list[Task]
    sent_s: float

    def decoded(self, records: bytes) -> list[tuple[Task, Verdict]]:
        """Return the verdicts in the records that a worker made of some of its rows.

        Raises:
            ContractError: They are none that a worker makes.
        """
        name, version = self.instance.name, self.instance.version
        try:
            return [
                (self.tasks[index], decode(data, name, version))
                for index, data in unpack_records(records)
            ]
        except (struct.error, IndexError) as exc:
            raise ContractError(f"expected records of verdicts, but: {exc}") from exc

    @property
    def budget_s(self) -> float:
        """Seconds that the chunk may take without announcing a row."""
        return self.instance.timeout_s * min(len(self.tasks), _MOST_ROWS_OF_A_BUDGET)


class TaskQueue:
    """First in, first out for each verifier; verifiers take turns."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[Task]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, task: Task) -> None:
        """Append a task."""
        self._waiting.setdefault(task.verifier, deque()).append(task)
        self._count += 1

    def put_back(self, tasks: Iterable[Task]) -> None:
        """Return tasks that were taken before, to the front and in their order."""
        for task in reversed(list(tasks)):
            self._waiting.setdefault(task.verifier, deque()).appendleft(task)
            self._count += 1

    def take(self, limit: int) -> list[Task]:
        """Remove and return up to `limit` tasks of the verifier whose turn it is."""
        verifier, waiting = next(iter(self._waiting.items()))
        tasks = [waiting.popleft()]
        while waiting and len(tasks) < limit and not (tasks[0].is_alone or waiting[0].is_alone):
            tasks.append(waiting.popleft())
        del self._waiting[verifier]
        if waiting:
            self._waiting[verifier] = waiting
        self._count -= len(tasks)
        return tasks

    def clear(self) -> None:
        """Drop everything."""
        self._waiting.clear()
        self._count = 0
