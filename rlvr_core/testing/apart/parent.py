"""Have experiments made in a process of its own, under a deadline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from selectors import EVENT_READ, DefaultSelector
from typing import Any

from rlvr_core.api.verdicts import Json
from rlvr_core.plugins.ref import PluginRef
from rlvr_core.testing.report import Outcome
from rlvr_core.verification.processes import kill_tree

FIRST = ("R62", "R44")
"""Experiments that must see the plugin before others have used it, in this order."""
_GRACE_S = 2.0
_ON_IMPORT = ("R01", "R02", "R04")


@dataclass(frozen=True, slots=True)
class Finding:
    """How one experiment ended."""

    outcome: Outcome
    detail: str
    data: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Request:
    """What a process is to do."""

    ref: PluginRef
    cases: Sequence[Mapping[str, Json]]
    may_import_torch: bool
    floor_rows_per_s: float | None
    timeout_s: float
    """For each experiment."""


def find(request: Request, numbers: Sequence[str], hash_seed: int) -> dict[str, Finding]:
    """Return a finding for each number, and for those on the import.

    An experiment that hangs or ends its process has failed, and the others are made in a new one.
    """
    waiting = [number for number in FIRST if number in numbers]
    waiting += [number for number in numbers if number not in FIRST]
    found: dict[str, Finding] = {}
    while True:
        made, culprit = _run(request, waiting, hash_seed)
        # The first process saw the import that counts: later ones may be slow for other reasons.
        found = made | found
        if culprit is not None and culprit[0] not in found:
            found[culprit[0]] = Finding(Outcome.FAILED, culprit[1])
        left = [number for number in waiting if number not in found]
        if culprit is None or culprit[0] in _ON_IMPORT or left == waiting:
            return found
        waiting = left


def _run(
    request: Request, numbers: Sequence[str], hash_seed: int
) -> tuple[dict[str, Finding], tuple[str, str] | None]:
    """Return the findings of one process, and which experiment stopped it, if one did."""
    read_end, write_end = os.pipe()
    with tempfile.TemporaryDirectory(prefix="rlvr-check-") as folder:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own module
            [sys.executable, "-m", "rlvr_core.testing.apart.child", str(write_end)],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
                "PYTHONHASHSEED": str(hash_seed),
                "TMPDIR": folder,
                "OMP_NUM_THREADS": "1",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[write_end],
            start_new_session=True,
        )
        os.close(write_end)
        try:
            return _listen(process, read_end, _body(request, numbers), request.timeout_s)
        finally:
            os.close(read_end)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE_S)  # a process that was killed cleans nothing up
            kill_tree(process.pid)
            process.wait()


def _body(request: Request, numbers: Sequence[str]) -> bytes:
    body = {
        "ref": asdict(request.ref),
        "cases": list(request.cases),
        "may_import_torch": request.may_import_torch,
        "floor_rows_per_s": request.floor_rows_per_s,
        "experiments": list(numbers),
    }
    return json.dumps(body).encode()


def _listen(
    process: subprocess.Popen[bytes], read_end: int, body: bytes, timeout_s: float
) -> tuple[dict[str, Finding], tuple[str, str] | None]:
    with suppress(BrokenPipeError):  # it ended before it read; what is missing shows that
        process.stdin.write(body)  # type: ignore[union-attr]
        process.stdin.close()  # type: ignore[union-attr]
    found: dict[str, Finding] = {}
    begun: str | None = "R01"
    pending = b""
    until_s = time.monotonic() + timeout_s
    with DefaultSelector() as selector:
        selector.register(read_end, EVENT_READ)
        while selector.select(max(0.0, until_s - time.monotonic())):
            data = os.read(read_end, 1 << 16)
            if not data:
                break
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                said: dict[str, Any] = json.loads(line)
                until_s = time.monotonic() + timeout_s
                begun = said.get("begin")
                if "end" in said:
                    outcome = Outcome(said["outcome"])
                    found[said["end"]] = Finding(outcome, said["detail"], said["data"])
        else:
            return found, (begun or "R01", f"it does not end within {timeout_s:g} s")
    return found, None if begun is None else (begun, "it ended the process that it was tried in")
