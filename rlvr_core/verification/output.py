"""What a worker prints: kept in an unnamed file, shown with the row that went wrong."""

from __future__ import annotations

import fcntl
import os
import tempfile

SHOWN_CHARACTERS = 1200
_KEPT_BYTES = 32 << 20


def output_descriptor() -> int:
    """Return a descriptor of an empty unnamed file that is only ever appended to."""
    with tempfile.TemporaryFile(buffering=0) as file:
        descriptor = os.dup(file.fileno())
    # Append mode lets either side cut the file short at any time.
    fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_APPEND)
    return descriptor


def size_bytes(descriptor: int) -> int:
    """Return how much has been printed."""
    return os.fstat(descriptor).st_size


def tail(descriptor: int, since: int = 0) -> str:
    """Return the end of what was printed after the first `since` bytes."""
    size = size_bytes(descriptor)
    start = since if since <= size else 0
    start = max(start, size - 4 * SHOWN_CHARACTERS)
    text = os.pread(descriptor, size - start, start).decode("utf-8", "replace").strip()
    return text if len(text) <= SHOWN_CHARACTERS else "…" + text[-SHOWN_CHARACTERS:]


def cap(descriptor: int) -> None:
    """Drop what was printed once it is too much to keep."""
    if size_bytes(descriptor) > _KEPT_BYTES:
        os.ftruncate(descriptor, 0)
