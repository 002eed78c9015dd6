"""Memory that a worker and its parent share, so that announcing a row costs no message.

A worker has one *lane* for each row it works on at the same time. A lane says which row is being
judged, since when, and holds the verdicts of the chunk so far: when the worker is killed, the
parent still reads which row was at fault and what was finished before it.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

RECORD_BYTES = 6144
"""Room for one verdict: the cap on diagnostics and what surrounds them."""

_MARK = struct.Struct("=q")
_START = struct.Struct("=d")
_USED = struct.Struct("=q")
_RECORD = struct.Struct("=II")
_HEADER_BYTES = 32
_INDEX_BITS = 20


@dataclass(frozen=True, slots=True)
class Progress:
    """What a lane is doing."""

    chunk: int
    """Serial number of the chunk at work; 0 when idle."""
    index: int | None
    """Announced row of the chunk; None when none was announced yet."""
    started_s: float
    """`time.monotonic` when the row was announced, or else when the chunk was begun."""


class Lane:
    """One lane of the board. The worker writes, the parent reads."""

    def __init__(self, memory: mmap.mmap, offset: int, size_bytes: int) -> None:
        self._memory = memory
        self._offset = offset
        self._first = offset + _HEADER_BYTES
        self._end = offset + size_bytes
        self._next = self._first

    def mark(self, chunk: int, index: int | None, now_s: float) -> None:
        """Say which row is worked on from `now_s` on."""
        # The time goes first: a reader in between sees the old row with a later start, which can
        # only delay a deadline.
        _START.pack_into(self._memory, self._offset + 8, now_s)
        low = 0 if index is None else index + 1
        _MARK.pack_into(self._memory, self._offset, chunk << _INDEX_BITS | low)

    def clear(self) -> None:
        """Forget the records of the chunk before."""
        self._next = self._first
        _USED.pack_into(self._memory, self._offset + 16, 0)

    def store(self, record: bytes) -> None:
        """Append one record made by `pack_record`, if there is room."""
        end = self._next + len(record)
        if end <= self._end:
            self._memory[self._next : end] = record
            self._next = end
            _USED.pack_into(self._memory, self._offset + 16, end - self._first)

    def progress(self) -> Progress:
        """Return what the worker is doing."""
        while True:
            before = _MARK.unpack_from(self._memory, self._offset)[0]
            started_s = _START.unpack_from(self._memory, self._offset + 8)[0]
            if before == _MARK.unpack_from(self._memory, self._offset)[0]:
                low = before & ((1 << _INDEX_BITS) - 1)
                return Progress(before >> _INDEX_BITS, low - 1 if low else None, started_s)

    def records(self) -> bytes:
        """Return the records of the chunk at work."""
        used = _USED.unpack_from(self._memory, self._offset + 16)[0]
        return self._memory[self._first : self._first + used]


class Board:
    """The shared memory of one worker."""

    def __init__(self, descriptor: int, lanes: int, rows_a_lane: int) -> None:
        lane_bytes = _HEADER_BYTES + rows_a_lane * (RECORD_BYTES + _RECORD.size)
        if os.fstat(descriptor).st_size < lanes * lane_bytes:
            os.ftruncate(descriptor, lanes * lane_bytes)
        self._memory = mmap.mmap(descriptor, lanes * lane_bytes)
        self.lanes = [Lane(self._memory, at * lane_bytes, lane_bytes) for at in range(lanes)]

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()


def board_descriptor() -> int:
    """Return a descriptor of an empty unnamed file, in memory where the system can."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("rlvr-board")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def pack_record(index: int, verdict: bytes) -> bytes:
    """Return a record: the row's index in its chunk, and its verdict as JSON."""
    return _RECORD.pack(index, len(verdict)) + verdict


def unpack_records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (index, verdict as JSON) of each record."""
    at = 0
    while at < len(data):
        index, length = _RECORD.unpack_from(data, at)
        at += _RECORD.size
        yield index, data[at : at + length]
        at += length
