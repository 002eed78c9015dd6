"""Verifiers that behave well or badly on purpose. What a row asks for stands in its completion."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from rlvr_core.api import (
    EnvironmentFault,
    FailureCategory,
    Resource,
    RowVerifier,
    Status,
    Strict,
    Verdict,
    Verifier,
    VerifyBatch,
    VerifyRow,
    hookimpl,
)

DETACH = """
import os, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
time.sleep(300)
"""


class Truth(Strict):
    answer: str = "yes"


def note(log: str | None, row: VerifyRow) -> None:
    """Write down that a row was begun, and where."""
    if log:
        with open(log, "a") as file:
            file.write(f"{row.id} {os.getpid()}\n")


class Plain(RowVerifier):
    """Passes a completion that is the answer."""

    api_version = "1.0"
    GroundTruth = Truth

    class Config(Strict):
        answer: str | None = None

    def verify_row(self, row: VerifyRow) -> Verdict:
        answer = self.config.answer or row.ground_truth.answer
        return self.judge(float(row.completion == answer), seen=row.id)


class Tricky(RowVerifier):
    """Does what the completion names."""

    api_version = "1.0"
    GroundTruth = Truth
    score_range = (-1.0, 1.0)

    class Config(Strict):
        log: str | None = None
        """File that gets a line for every row that is begun."""

    def verify_row(self, row: VerifyRow) -> Verdict:
        action, _, argument = row.completion.partition(" ")
        note(self.config.log, row)
        method = getattr(self, f"do_{action}", None)
        return method(argument) if method else self.judge(float(row.completion == "yes"))

    def do_sleep(self, argument: str) -> Verdict:
        time.sleep(float(argument or 300))
        return self.judge(1.0)

    def do_hold(self, argument: str) -> Verdict:
        """Hang in C without ever releasing the interpreter lock."""
        sys.stdout.write("holding on")
        return self.judge(float(9 ** int("9") ** 9 > 0))

    def do_hang_once(self, argument: str) -> Verdict:
        if not Path(argument).exists():
            Path(argument).touch()
            time.sleep(300)
        return self.judge(1.0)

    def do_detach(self, argument: str) -> Verdict:
        """Leave a process that no longer belongs to us, then hang."""
        subprocess.run([sys.executable, "-c", DETACH, argument], env={}, check=True)
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)", argument], env={})
        time.sleep(300)
        return self.judge(1.0)

    def do_detach_and_pass(self, argument: str) -> Verdict:
        """Leave a process that carries nothing of ours, and answer as if nothing had happened."""
        subprocess.run([sys.executable, "-c", DETACH, argument], env={}, check=True)
        return self.judge(1.0)

    def do_detach_and_crash(self, argument: str) -> Verdict:
        subprocess.run([sys.executable, "-c", DETACH, argument], env={}, check=True)
        os._exit(3)

    def do_exit(self, argument: str) -> Verdict:
        sys.stderr.write("goodbye")
        os._exit(int(argument))

    def do_babble(self, argument: str) -> Verdict:
        """Write to the training process in the worker's place, and give it time to act on it."""
        os.write(int(sys.argv[2]), bytes.fromhex(argument))
        time.sleep(3)
        return self.judge(1.0)

    def do_segfault(self, argument: str) -> Verdict:
        ctypes.string_at(0)
        return self.judge(1.0)

    def do_raise(self, argument: str) -> Verdict:
        sys.stdout.write("before the end")
        raise ValueError(argument)

    def do_sysexit(self, argument: str) -> Verdict:
        raise SystemExit(argument)

    def do_backend(self, argument: str) -> Verdict:
        raise EnvironmentFault("RLVR-E101", "the judge does not answer")

    def do_memory(self, argument: str) -> Verdict:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4
        return self.judge(float(len(bytearray(size)) > 0))

    def do_none(self, argument: str) -> Verdict:
        return None  # type: ignore[return-value]

    def do_nan(self, argument: str) -> Verdict:
        return Verdict(
            status=Status.FAILED, score=float("nan"), failure=FailureCategory.WRONG_ANSWER
        )

    def do_range(self, argument: str) -> Verdict:
        return Verdict(status=Status.PASSED, score=7.5)

    def do_noscore(self, argument: str) -> Verdict:
        return Verdict(status=Status.PASSED)

    def do_unmarked(self, argument: str) -> Verdict:
        return Verdict(status=Status.PASSED, score=0.5)

    def do_mismatch(self, argument: str) -> Verdict:
        return Verdict(status=Status.FAILED, score=0.0, failure=FailureCategory.VERIFIER_CRASH)

    def do_scored_abstention(self, argument: str) -> Verdict:
        return Verdict(status=Status.ABSTAINED, score=0.0, failure=FailureCategory.NOT_APPLICABLE)

    def do_unserialisable(self, argument: str) -> Verdict:
        return self.judge(1.0, thing=object())

    def do_nan_diagnostics(self, argument: str) -> Verdict:
        return self.judge(1.0, ratio=float("nan"))

    def do_large(self, argument: str) -> Verdict:
        return self.judge(1.0, text="x" * 5000)

    def do_unicode(self, argument: str) -> Verdict:
        return self.judge(1.0, text="答案\ud800\x00é" * 200)

    def do_environment(self, argument: str) -> Verdict:
        return self.judge(1.0, names=sorted(os.environ))

    def do_modules(self, argument: str) -> Verdict:
        names = [name for name in argument.split(",") if name in sys.modules]
        return self.judge(1.0, found=names)

    def do_threads(self, argument: str) -> Verdict:
        return self.judge(1.0, omp=os.environ.get("OMP_NUM_THREADS"), session=os.getsid(0))

    def do_pid(self, argument: str) -> Verdict:
        return self.judge(1.0, pid=os.getpid())

    def do_partly(self, argument: str) -> Verdict:
        return self.judge(float(argument), FailureCategory.CONSTRAINT)


class Secretive(Tricky):
    """Declares one environment variable."""

    environment = ("RLVR_TEST_DECLARED",)


class Patient(RowVerifier):
    """An io verifier: waits, and reports how many rows waited with it."""

    api_version = "1.0"
    GroundTruth = Truth
    resource = Resource.IO
    running = 0
    lock = threading.Lock()

    class Config(Strict):
        log: str | None = None

    def verify_row(self, row: VerifyRow) -> Verdict:
        cls = type(self)
        note(self.config.log, row)
        with cls.lock:
            cls.running += 1
        try:
            action, _, argument = row.completion.partition(" ")
            if action == "exit":
                os._exit(5)
            time.sleep(float(argument) if action == "sleep" else 0.05)
            return self.judge(1.0, together=cls.running, pid=os.getpid())
        finally:
            with cls.lock:
                cls.running -= 1


class Batch(Verifier):
    """A batch verifier on one worker: reports the size of its batches."""

    api_version = "1.0"
    GroundTruth = Truth
    resource = Resource.MODEL

    class Config(Strict):
        announces: bool = False
        fault: str = ""

    @hookimpl
    def rlvr_verify(self, batch: VerifyBatch) -> list[Verdict]:
        verdicts = []
        for index, row in enumerate(batch):
            if self.config.announces:
                batch.starting(index)
            if row.completion == "raise":
                raise ValueError("cannot do this one")
            if row.completion == "hang":
                time.sleep(300)
            if row.completion == "exit":
                os._exit(1)
            verdicts.append(self.judge(1.0, size=len(batch), pid=os.getpid()))
        if self.config.fault == "short" and len(batch) > 1:
            return verdicts[:-1]
        if self.config.fault == "none":
            return None  # type: ignore[return-value]
        return verdicts


class CpuBatch(Batch):
    """The same, spread over processes."""

    resource = Resource.CPU


class Unbuildable(Plain):
    """Its constructor fails."""

    def __init__(self, config: object = None, *, name: str = "") -> None:
        super().__init__(config, name=name)
        raise OSError("the weights are not there")


class Stillborn(Plain):
    """Building it ends the worker."""

    def __init__(self, config: object = None, *, name: str = "") -> None:
        super().__init__(config, name=name)
        sys.stderr.write("no licence found")
        os._exit(9)
