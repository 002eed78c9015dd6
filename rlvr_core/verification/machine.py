"""What this process may use of the machine."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Return the number of cores that this process may run on; those it has, where unknown."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def memory_bytes() -> int | None:
    """Return the machine's memory; None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


def local_processes() -> int:
    """Return how many processes a launcher such as torchrun started on this machine, else 1."""
    # A launcher for one machine may tell the size of the world alone.
    told = os.environ.get("LOCAL_WORLD_SIZE") or os.environ.get("WORLD_SIZE", "")
    return max(1, int(told)) if told.isdecimal() else 1
