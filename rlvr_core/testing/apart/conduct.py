"""Experiments on how a verifier behaves in its process."""

from __future__ import annotations

import gc
import threading
import time
from dataclasses import replace
from typing import Any

from rlvr_core.api.verdicts import Status
from rlvr_core.testing.apart import watching
from rlvr_core.testing.apart.bench import (
    Bench,
    BrokenError,
    NotApplicableError,
    key_of,
    same,
    verify,
)

BATCHES = 50
WARM_UP_BATCHES = 10
MOST_GROWTH_BYTES = 8 << 20
_SAMPLE_ROWS = 8
_THREAD_WAIT_S = 30.0
_MEASURED_S = 0.2
_MOST_WAITED_S = 2.0


def in_a_thread(bench: Bench) -> str:
    """R44."""
    verifier = bench.new()
    rows = bench.rows(verifier)
    expected = [key_of(verdict) for verdict in verify(verifier, rows)]
    found: list[str] = []
    raised: list[BaseException] = []

    def work() -> None:
        try:
            other = bench.new()
            found.extend(key_of(verdict) for verdict in verify(other, rows))
        except BaseException as exc:  # noqa: BLE001 - it is reported by the other thread
            raised.append(exc)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(_THREAD_WAIT_S)
    if raised:
        raise BrokenError(f"in a thread that is not the main one it raises {raised[0]!r}")
    if thread.is_alive():
        raise BrokenError(f"in a thread that is not the main one it hangs for {_THREAD_WAIT_S:g} s")
    if watching.signal_handlers() != bench.signal_handlers:
        raise BrokenError("it installs a signal handler")
    same(rows, expected, found, "in the main thread and in another")
    return f"{len(rows)} rows in another thread"


class _PoisonError(Exception):
    """Nobody can have foreseen it."""


class _Poisoned:
    """A ground truth that breaks whoever looks at it, as a bug in a verifier would."""

    def __getattribute__(self, name: str) -> Any:
        raise _PoisonError("a fault that the check planted")


def raises_when_it_breaks(bench: Bench) -> str:
    """R46."""
    verifier = bench.new()
    rows = [row for row in bench.rows(verifier) if _passes(verifier, row)]
    if not rows:
        raise NotApplicableError("no golden case passes")
    broken = replace(rows[0], ground_truth=_Poisoned())
    try:
        [verdict] = verify(verifier, [broken])
    except Exception as exc:  # noqa: BLE001 - that it raises is what is asked for
        return f"a planted fault gets out, as {type(exc).__name__}"
    if verdict.status is Status.ERROR:
        return "a planted fault becomes status error"
    raise BrokenError(f"a planted fault of the verifier becomes status {verdict.status}")


def _passes(verifier: Any, row: Any) -> bool:
    [verdict] = verify(verifier, [row])
    return verdict.status is Status.PASSED


def leaks(bench: Bench) -> str:
    """R60."""
    verifier = bench.new()
    rows = bench.rows(verifier)[:_SAMPLE_ROWS]
    verify(verifier, rows)  # what it keeps for good it may take now
    gc.collect()
    before = watching.resources()
    for _ in range(3):
        verify(verifier, rows)
    gc.collect()
    after = watching.resources()
    grown = [f"{after[name] - count} more {name}" for name, count in before.items()
             if after[name] > count]  # fmt: skip
    if grown:
        raise BrokenError(f"after three more batches there are {', '.join(grown)}")
    return "no thread, file, process or temporary file is left"


def memory(bench: Bench) -> str:
    """R61."""
    verifier = bench.new()
    rows = bench.rows(verifier)[:_SAMPLE_ROWS]
    before = 0
    for number in range(BATCHES):
        if number == WARM_UP_BATCHES:
            gc.collect()
            before = watching.resident_bytes()
        verify(verifier, rows)
    gc.collect()
    growth = watching.resident_bytes() - before
    if growth > MOST_GROWTH_BYTES:
        raise BrokenError(
            f"{BATCHES - WARM_UP_BATCHES} batches of {len(rows)} rows took {growth >> 20} MiB more"
        )
    return f"{growth / (1 << 20):.1f} MiB over {BATCHES - WARM_UP_BATCHES} batches"


def surroundings(bench: Bench) -> str:
    """R62."""
    before = watching.global_state()
    verifier = bench.new()
    verify(verifier, bench.rows(verifier))
    changed = watching.changes(before, watching.global_state())
    changed = [name for name in changed if name != watching.SIGNAL_HANDLERS]  # R44 looks at them
    if changed:
        raise BrokenError(f"it changes {', '.join(changed)}")
    return "as before"


def throughput(bench: Bench) -> str:
    """R63."""
    verifier = bench.new()
    rows = bench.rows(verifier)
    verify(verifier, rows)
    judged, spent_s = 0, 0.0
    started_s, until_s = time.process_time(), time.monotonic() + _MOST_WAITED_S
    # A verifier that waits for a service spends hardly any processor time.
    while spent_s < _MEASURED_S and time.monotonic() < until_s:
        verify(verifier, rows)
        judged += len(rows)
        spent_s = time.process_time() - started_s
    rows_per_s = judged / max(spent_s, 1e-6)
    floor = bench.floor_rows_per_s
    if floor is not None and rows_per_s < floor:
        raise BrokenError(f"{rows_per_s:.0f} rows a second, and it promises {floor:g}")
    promised = "it promises no number" if floor is None else f"it promises {floor:g}"
    return f"{rows_per_s:.0f} golden rows a second of processor time; {promised}"


def references(bench: Bench) -> str:
    """R21, one half: completions that the verifier itself calls right; the parent judges them."""
    verifier = bench.new()
    if not callable(getattr(verifier, "reference_completion", None)):
        raise NotApplicableError("it has no reference_completion")
    found: list[str | None] = []
    for row in bench.rows(verifier):
        try:
            found.append(verifier.reference_completion(row.ground_truth))
        except Exception as exc:
            raise BrokenError(f"reference_completion of case {row.id} raises {exc!r}") from exc
    bench.data["references"] = {
        row.id: text for row, text in zip(bench.rows(verifier), found, strict=True)
    }
    return ""
