"""One answer in one sandbox: a test goes in, a record comes out, values are compared here."""

from __future__ import annotations

import hmac
import marshal
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from rlvr_core.api import Json
from rlvr_plugin_code_docker.output import is_same_output
from rlvr_plugin_code_docker.split import InsideTest, ValueTest
from rlvr_plugin_code_docker.truth import ProgramTest, Test
from rlvr_plugin_code_docker.values import read_value

NONCE_BYTES = 16
GRACE_S = 0.75
"""How much longer than a test's limit a sandbox may be silent before it is given up."""
MAX_RECORD_BYTES = 4 << 20
_SHORTEST_TEST_S = 0.05


class SandboxEndedError(Exception):
    """The sandbox is gone: its connection ended."""


class Sandbox(Protocol):
    """A started sandbox: two byte streams, and a way to end it."""

    def send(self, data: bytes, until_s: float) -> None:
        """Send all of the data.

        Raises:
            SandboxEndedError: It is gone.
            TimeoutError: It took longer than until `until_s` (`time.monotonic`).
        """
        ...

    def receive(self, count: int, until_s: float) -> bytes:
        """Return exactly so many bytes. Raises what `send` raises."""
        ...

    def close(self, *, at_once: bool = False) -> None:
        """End it, and all that runs in it; `at_once` where it may not notice by itself."""
        ...


class Ending(StrEnum):
    """How a test ended."""

    PASSED = "passed"
    WRONG = "wrong"
    EXCEPTION = "exception"
    SYNTAX = "syntax"
    EXITED = "exited"
    KILLED = "killed"
    TIME_LIMIT = "time_limit"
    TOO_LARGE = "too_large"
    MEMORY = "memory"
    SILENT = "silent"
    """The sandbox said nothing, not even that the test took too long."""
    SANDBOX_ENDED = "sandbox_ended"


LOST = (Ending.SILENT, Ending.SANDBOX_ENDED)
"""Endings after which a sandbox cannot be used any more."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one test ended, and what may be shown about it."""

    ending: Ending
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an answer may use."""

    test_s: float
    all_tests_s: float
    resources: dict[str, int]
    """Name of an rlimit without its prefix to its value, for every process of the answer."""


def run_tests(
    sandbox: Sandbox, source: str, context: str, preload: Sequence[str], tests: Sequence[Test],
    limits: Limits,
) -> list[Outcome]:  # fmt: skip
    """Return one outcome a test, in order. The sandbox must have started, and is used up."""
    job = {
        "source": source,
        "context": context,
        "preload": list(preload),
        "limits": dict(limits.resources),
    }
    outcomes: list[Outcome] = []
    end_s = time.monotonic() + limits.all_tests_s
    try:
        _send(sandbox, job, time.monotonic() + limits.test_s)
        for test in tests:
            limit_s = min(limits.test_s, end_s - time.monotonic())
            if limit_s < _SHORTEST_TEST_S:
                break
            outcome = _run_test(sandbox, test, limit_s)
            outcomes.append(outcome)
            if outcome.ending is Ending.SYNTAX:
                break
    except SandboxEndedError:
        outcomes.append(Outcome(Ending.SANDBOX_ENDED))
    except TimeoutError:
        outcomes.append(Outcome(Ending.SILENT))
    # What was not reached failed like the last one that was, or for want of time.
    is_over = outcomes and outcomes[-1].ending in (Ending.SYNTAX, *LOST)
    rest = outcomes[-1] if is_over else Outcome(Ending.TIME_LIMIT, "not reached")
    return outcomes + [rest] * (len(tests) - len(outcomes))


def _run_test(sandbox: Sandbox, test: Test, limit_s: float) -> Outcome:
    nonce = secrets.token_bytes(NONCE_BYTES)
    until_s = time.monotonic() + limit_s + GRACE_S
    _send(sandbox, _as_sent(test, limit_s), until_s)
    sandbox.send(nonce, until_s)
    record = _receive(sandbox, until_s)
    if not hmac.compare_digest(record[:NONCE_BYTES], nonce):
        # Nobody but the supervisor knows it; whoever writes here without it ends the session.
        raise SandboxEndedError
    letter, content = record[NONCE_BYTES : NONCE_BYTES + 1], record[NONCE_BYTES + 1 :]
    return _judged(test, letter, content)


def _as_sent(test: Test, limit_s: float) -> dict[str, Any]:
    """Return what of a test enters the sandbox: never a value that is expected."""
    if isinstance(test, ProgramTest):
        stdin = test.stdin.encode("utf-8", "surrogatepass")
        return {"kind": "program", "stdin": stdin, "limit_s": limit_s}
    sent: dict[str, Any] = {"own": sorted(test.own), "limit_s": limit_s}
    if isinstance(test, ValueTest):
        return {**sent, "kind": "values", "setup": test.setup, "holes": list(test.holes)}
    return {
        **sent,
        "kind": "inside",
        "imports": test.imports,
        "body": test.body,
        "may_exit": test.may_exit,
    }


def _judged(test: Test, letter: bytes, content: bytes) -> Outcome:
    if letter == b"V" and isinstance(test, ValueTest):
        return _compared(test, content)
    if letter == b"P" and isinstance(test, InsideTest):
        return Outcome(Ending.PASSED)
    if letter == b"O" and isinstance(test, ProgramTest):
        is_right = is_same_output(content, test.stdout)
        return Outcome(Ending.PASSED if is_right else Ending.WRONG)
    text = content[:200].decode("utf-8", "replace")
    if letter == b"A":
        return Outcome(Ending.WRONG)
    if letter == b"X":
        name = "".join(re.findall(r"\w", text))[:40]
        return Outcome(Ending.MEMORY if name == "MemoryError" else Ending.EXCEPTION, name)
    if letter == b"K":
        return Outcome(Ending.KILLED, f"signal {text[:3]}")
    if letter == b"E":
        return Outcome(Ending.EXITED, f"code {text[:3]}")
    endings = {b"S": Ending.SYNTAX, b"T": Ending.TIME_LIMIT, b"L": Ending.TOO_LARGE}
    return Outcome(endings.get(letter, Ending.EXCEPTION))


def _compared(test: ValueTest, content: bytes) -> Outcome:
    try:
        values = read_value(content)
        is_right = isinstance(values, list) and len(values) == len(test.holes)
        return Outcome(Ending.PASSED if is_right and test.holds(values) else Ending.WRONG)
    except Exception:  # noqa: BLE001 - whatever plain values do to a comparison, it does not hold
        return Outcome(Ending.WRONG)


def _send(sandbox: Sandbox, message: Json, until_s: float) -> None:
    # Version 2 of the format is read by every Python; the sandbox may run another one.
    data = marshal.dumps(message, 2)
    sandbox.send(len(data).to_bytes(4, "big") + data, until_s)


def _receive(sandbox: Sandbox, until_s: float) -> bytes:
    size = int.from_bytes(sandbox.receive(4, until_s), "big")
    if size > MAX_RECORD_BYTES:
        raise SandboxEndedError
    return sandbox.receive(size, until_s)


def await_start(sandbox: Sandbox, until_s: float) -> None:
    """Wait until the supervisor in the sandbox is ready. Raises what `Sandbox.receive` raises."""
    if _receive(sandbox, until_s) != b"\x01":
        raise SandboxEndedError
