"""Global state of a process that a plugin must leave as it is."""

from __future__ import annotations

import decimal
import hashlib
import locale
import os
import random
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

SIGNAL_HANDLERS = "signal handlers"

_FILES = Path("/proc/self/fd")
_MEMORY = Path("/proc/self/statm")


def global_state() -> Mapping[str, str]:
    """Return what belongs to the whole process, by name."""
    state = {
        "working directory": os.getcwd(),
        "locale": locale.setlocale(locale.LC_ALL),
        "random state": _digest(repr(random.getstate())),
        "recursion limit": str(sys.getrecursionlimit()),
        "limit on digits of integers": str(sys.get_int_max_str_digits()),
        "decimal context": repr(decimal.getcontext()),
        SIGNAL_HANDLERS: signal_handlers(),
        "file mode mask": _umask(),
        "sys.path": repr(sys.path),
        "standard output": repr((id(sys.stdout), id(sys.stderr))),
    }
    state |= {f"environment variable {name}": value for name, value in os.environ.items()}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        state["numpy random state"] = _digest(repr(numpy.random.get_state()))
    return state


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the names of what was changed, added or removed."""
    names = sorted(before.keys() | after.keys())
    # numpy may only have been imported in between.
    names = [name for name in names if name != "numpy random state" or name in before]
    return [name for name in names if before.get(name) != after.get(name)]


def signal_handlers() -> str:
    """Return which function handles which signal."""
    handlers = {one.name: signal.getsignal(one) for one in signal.valid_signals() if _named(one)}
    return repr(sorted((name, repr(handler)) for name, handler in handlers.items()))


def resources() -> Mapping[str, int]:
    """Return how many of each thing that can leak this process holds."""
    return {
        "threads": threading.active_count(),
        "open files": len(list(_FILES.iterdir())) if _FILES.is_dir() else 0,
        "child processes": len(children()),
        "files in the temporary folder": _temporary_files(),
    }


def children() -> list[int]:
    """Return the ids of the processes that this one started and that still run."""
    found = []
    for path in Path("/proc/self/task").glob("*/children"):
        found += [int(pid) for pid in path.read_text().split()]
    return found


def resident_bytes() -> int:
    """Return the memory in use; 0 where the system does not say."""
    if not _MEMORY.is_file():
        return 0
    return int(_MEMORY.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _temporary_files() -> int:
    folder = Path(os.environ["TMPDIR"])
    return sum(1 for _ in folder.rglob("*"))


def _named(number: int) -> bool:
    return isinstance(number, signal.Signals)


def _umask() -> str:
    mask = os.umask(0)
    os.umask(mask)
    return oct(mask)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
