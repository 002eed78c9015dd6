"""End whole process trees, also after the training process itself was killed.

Run as a script, this file is the *keeper*: a small process that waits for the training process to
die and then ends the workers it left behind. It uses the standard library only, so that it starts
in milliseconds.

A worker's guardian is made the reaper of its orphans where the system can (Linux), so a descendant
that forks twice and starts a session of its own is still found below it. Elsewhere, and when the
guardian was killed, what is left is found by the token in its environment.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

TOKEN_NAME = "RLVR_VERIFICATION_TOKEN"  # noqa: S105 - the name of a mark, not a secret

_PROC = Path("/proc")
_FREEZE_ROUNDS = 200
_KILL_ROUNDS = 200
_KILL_PAUSE_S = 0.002
_LISTING_ROUNDS = 20
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def kill_tree(root: int, token: str = "") -> None:
    """Kill process `root`, its process group, its descendants and all that carry `token`.

    `root` is stopped first, so that it can start nothing and goes on adopting orphans, and dies
    last. The caller reaps it.
    """
    _signal(root, signal.SIGSTOP)
    kill_descendants(root)
    kill_group(root)
    _signal(root, signal.SIGKILL)
    kill_marked(token)


def kill_descendants(root: int) -> None:
    """Kill the descendants of `root`, and not `root` itself, until none is left."""
    for _ in range(_KILL_ROUNDS):
        found = _freeze_descendants(root)
        for pid in found:
            _signal(pid, signal.SIGKILL)
        if not found:
            return
        # In the middle of a system call nothing can be stopped: one that was making a child then
        # has one now, and those that were killed need a moment to end.
        time.sleep(_KILL_PAUSE_S)


def _freeze_descendants(root: int) -> set[int]:
    """Stop all descendants of `root`, and return them."""
    frozen: set[int] = set()
    # A fork storm is frozen faster than it grows: every process found is stopped before any dies.
    for _ in range(_FREEZE_ROUNDS):
        found = set(descendants(root)) - frozen
        if not found:
            break
        for pid in found:
            _signal(pid, signal.SIGSTOP)
        frozen |= found
    return frozen


def kill_group(leader: int) -> None:
    """Kill every process of the group that `leader` leads or led."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def kill_marked(token: str) -> None:
    """Kill every process whose environment carries `token`, or a longer token below it."""
    if not token:
        return
    for _ in range(_FREEZE_ROUNDS):
        found = _marked(token)
        if not found:
            return
        for pid in found:
            _signal(pid, signal.SIGKILL)
        time.sleep(0.002)


def descendants(root: int) -> list[int]:
    """Return the living descendants of `root`, parents before children."""
    children: dict[int, list[int]] = defaultdict(list)
    for pid, parent in _parents().items():
        children[parent].append(pid)
    found: list[int] = []
    open_pids = [root]
    while open_pids:
        below = children.pop(open_pids.pop(), [])
        found += below
        open_pids += below
    return found


def adopt_orphans() -> None:
    """Make this process the parent of descendants whose own parent ends, where the system can."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Have this process killed when its parent, process `parent`, ends, where the system can."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended already
        os._exit(1)


def start_keeper(token: str) -> subprocess.Popen[bytes]:
    """Start the keeper of this process; its standard input takes ``+pid`` and ``-pid`` lines."""
    return subprocess.Popen(  # noqa: S603 - our own file
        [sys.executable, "-I", "-S", __file__, token, str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.environ.get("PATH", "")},
        start_new_session=True,
    )


def _prctl(option: int, value: int) -> None:
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _parents() -> dict[int, int]:
    """Return the parent of every living process."""
    if not _PROC.joinpath("self", "stat").exists():
        return _parents_by_ps()
    parents: dict[int, int] = {}
    ended: set[int] = set()
    # The listing is no snapshot: what starts a process and ends after it was listed hides that one.
    # So list again until there is no unknown process and none whose parent ended in the meantime.
    for _ in range(_LISTING_ROUNDS):
        known = parents.keys() | {0}
        unsettled = [p for p in _listed() if p not in ended and parents.get(p, -1) not in known]
        if not unsettled:
            break
        for pid in unsettled:
            parent = _parent(pid)
            if parent is None:
                ended.add(pid)
                parents.pop(pid, None)
            else:
                parents[pid] = parent
    return parents


def _parent(pid: int) -> int | None:
    """Return the parent of a process, or None if that process has ended."""
    try:
        stat = _PROC.joinpath(str(pid), "stat").read_bytes()
    except OSError:
        return None
    # The command stands in brackets and may hold anything, so count from the last bracket.
    fields = stat[stat.rindex(b")") + 2 :].split()
    state, parent, threads = fields[0], int(fields[1]), int(fields[17])
    # A process whose first thread has ended looks like a zombie while its other threads live on.
    has_ended = state in (b"Z", b"X") and threads <= 1
    return None if has_ended else parent


def _parents_by_ps() -> dict[int, int]:
    listing = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,stat="],  # noqa: S607 - from the caller's PATH
        capture_output=True,
        text=True,
        check=False,
    )
    fields = [line.split() for line in listing.stdout.splitlines()]
    return {int(f[0]): int(f[1]) for f in fields if len(f) == 3 and not f[2].startswith("Z")}


def _marked(token: str) -> list[int]:
    if not _PROC.is_dir():
        return []
    found: list[int] = []
    seen = {os.getpid()}
    for _ in range(_LISTING_ROUNDS):  # as above
        unseen = set(_listed()) - seen
        if not unseen:
            break
        seen |= unseen
        found += [pid for pid in unseen if _carries(pid, token)]
    return found


def _listed() -> list[int]:
    return [int(name) for name in os.listdir(_PROC) if name.isdigit()]


def _carries(pid: int, token: str) -> bool:
    mark = f"{TOKEN_NAME}={token}".encode()
    with contextlib.suppress(OSError):
        entries = _PROC.joinpath(str(pid), "environ").read_bytes().split(b"\0")
        return any(entry == mark or entry.startswith(mark + b".") for entry in entries)
    return False


def _keep(token: str, parent: int) -> None:
    """Wait until `parent` closes standard input or dies, then end every worker it left."""
    pids: set[int] = set()
    buffered = b""
    while os.getppid() == parent:
        # Other children of the parent may hold the pipe open, so its end alone is not relied upon.
        if not select.select([0], [], [], 0.5)[0]:
            continue
        received = os.read(0, 65536)
        if not received:
            break
        *lines, buffered = (buffered + received).split(b"\n")
        for line in lines:
            change = pids.add if line.startswith(b"+") else pids.discard
            change(int(line[1:]))
    for pid in pids:
        kill_tree(pid)
    for pid in _marked(token):
        kill_tree(pid)
    kill_marked(token)


if __name__ == "__main__":
    _keep(sys.argv[1], int(sys.argv[2]))
