"""Runs in processes of their own that die where they are told to.

As a script: imports torch once, and forks for every job that a line of standard input asks for. A
forked process trains through `rlvr_core.train.run.train`, as the command line does, and kills
itself with SIGKILL: a while after a phase began, or before its n-th operation on files.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

KILLED = -signal.SIGKILL
FILE_EVENTS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree"}


class Forker:
    """The test's side: one process that forks, one job at a time."""

    def __init__(self, path):
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([*path, os.environ.get("PYTHONPATH", "")]),
            "OMP_NUM_THREADS": "1",
            "OMP_WAIT_POLICY": "PASSIVE",
        }
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def train(self, stack, run, *overrides, **options):
        """Train in a fork, and return how it ended.

        Options: `resume`, `allow_changes`; `die_in` (beginnings of phases, which must have come in
        this order) with `die_after_s` or `die_before_operation`; `file_limit_bytes` from the first
        step on, which stands for a full disk.
        """
        job = {"stack": str(stack), "run": str(run), "overrides": overrides, **options}
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return Ended(**json.loads(self._process.stdout.readline()))

    def close(self):
        self._process.stdin.close()
        assert self._process.wait(30) == 0


@dataclass
class Ended:
    """How a forked run ended."""

    status: int
    """0, the exit code of an error, or minus the signal's number."""
    said: dict
    """What it left behind, as far as it came: `phases` with their seconds, `error`, and the
    `operations` on files since the phase in which it was to die."""
    workers: list
    """(pid, start time) of the processes that it had started when it died."""

    def seconds_of(self, phases):
        """Return how long the last of some phases took, which came in this order."""
        times = [*self.said["phases"], ("", self.said["ended_s"])]
        left = list(phases)
        for (text, began), (_, ended) in pairwise(times):
            if text.startswith(left[0]) and left.pop(0) and not left:
                return ended - began
        raise LookupError(phases)


def _serve():
    from rlvr_core.train import run

    assert run
    for line in sys.stdin:
        job = json.loads(line)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            _run(job, writing)
        os.close(writing)
        with open(reading) as notes:
            lines = ["{}", *notes.read().splitlines()]
        _, status = os.waitpid(child, 0)
        said = json.loads(lines[-1])
        ended = {
            "status": os.waitstatus_to_exitcode(status),
            "said": said,
            "workers": said.get("workers", []),
        }
        sys.stdout.write(json.dumps(ended) + "\n")
        sys.stdout.flush()


def _run(job, notes):
    """Train as the job says, and end the process."""
    import torch
    from phases import Phases

    from rlvr_core.api.errors import RlvrError
    from rlvr_core.train.prepare import prepare
    from rlvr_core.train.run import train

    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    torch.set_num_threads(1)
    started = time.monotonic()
    said = {"phases": []}

    def leave_note():
        said["ended_s"] = time.monotonic() - started
        os.write(notes, json.dumps(said).encode() + b"\n")

    ahead = job.get("die_in", [])
    said["operations"] = []

    def hear(phase):
        said["phases"].append((phase, time.monotonic() - started))
        if phase.startswith("step 1:") and "file_limit_bytes" in job:
            resource.setrlimit(resource.RLIMIT_FSIZE, (job["file_limit_bytes"],) * 2)
        if ahead and phase.startswith(ahead[0]) and ahead.pop(0) and not ahead:
            said["workers"] = _children()
            leave_note()
            _arrange_death(job, said["operations"])

    code = 0
    try:
        options = {name: job[name] for name in ("resume", "allow_changes") if name in job}
        outcome = train(
            prepare(Path(job["stack"]), job["overrides"]),
            Path(job["run"]),
            place=Phases(hear),
            **options,
        )
        said["outcome"] = [outcome.status, outcome.reason]
    except RlvrError as error:
        code, said["error"] = error.exit_code, error.to_json()
    leave_note()
    os._exit(code)


def _children():
    import psutil

    return [(p.pid, p.create_time()) for p in psutil.Process().children(recursive=True)]


def _arrange_death(job, operations):
    if "die_after_s" in job:
        threading.Timer(job["die_after_s"], os.kill, (os.getpid(), signal.SIGKILL)).start()
        return
    inside = str(Path(job["run"]).resolve())

    def watch(event, arguments):
        if event not in FILE_EVENTS or not arguments or inside not in str(arguments[0]):
            return
        if event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR):
            return
        if len(operations) == job["die_before_operation"]:
            os.kill(os.getpid(), signal.SIGKILL)
        operations.append(f"{event} {arguments[0]}")

    sys.addaudithook(watch)


if __name__ == "__main__":
    _serve()
