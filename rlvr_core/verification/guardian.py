"""The process that stands between a worker and the training process, and outlives the worker.

What a verifier starts may leave the worker's session and clear its environment; when the worker
then crashes, nobody could tell whose it was. So the worker is a child of its guardian, which the
system makes the parent of the worker's orphans (Linux): once the worker has ended, however it did,
all that is left below the guardian belongs to it, and is ended. The guardian then ends as it did.

It forks before anything large is imported, so it costs little memory and next to no time.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from collections.abc import Iterable

from rlvr_core.verification.processes import adopt_orphans, die_with_parent, kill_descendants


def stand_guard(descriptors: Iterable[int]) -> None:
    """Fork; return in the child, which is the worker, and end this process when that has ended.

    Args:
        descriptors: The worker's channels. Only the worker may hold them open, so that the training
            process notices its end at once.
    """
    adopt_orphans()
    guardian = os.getpid()
    worker = os.fork()
    if worker == 0:
        die_with_parent(guardian)
        return
    for descriptor in descriptors:
        os.close(descriptor)
    # The training process asks a worker where it hangs.
    signal.signal(signal.SIGUSR1, lambda number, frame: _pass_on(worker))
    ended, status = os.wait()
    while ended != worker:  # an orphan, which has no other parent to reap it
        ended, status = os.wait()
    kill_descendants(guardian)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        _end_by(-code)
    os._exit(code)


def _pass_on(worker: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker, signal.SIGUSR1)


def _end_by(number: int) -> None:
    """End as one that was ended by a signal, without a second memory dump."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    sys.exit(1)
