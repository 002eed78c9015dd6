"""Checks of a stack, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from rlvr_core.api.errors import PluginError
from rlvr_core.selfcheck.bench import Bench
from rlvr_core.selfcheck.checks import Check
from rlvr_core.selfcheck.result import CheckResult, Outcome, failed, not_applicable
from rlvr_core.selfcheck.suspects import suspects
from rlvr_core.selfcheck.tiny_stack import make_sharp_model
from rlvr_core.train.prepare import Prepared

NEEDS_REPEATABLE_RUNS = ("resume", "evaluation")


def selfcheck(
    prepared: Prepared,
    checks: Sequence[Check],
    on_begin: Callable[[Check], None] = lambda check: None,
) -> list[CheckResult]:
    """Make checks on a stack, its rows and its plugins, with a tiny model.

    Args:
        prepared: The stack and its data. Its model is not loaded.
        checks: Which ones, in this order.
        on_begin: Told each check before it is made.

    Raises:
        RlvrError: The stack cannot be run, whatever the check. A plugin that fails in a check is no
            such error: the check fails.
    """
    results: list[CheckResult] = []
    with (
        TemporaryDirectory(prefix="rlvr-selfcheck-") as scratch,
        one_thread(),
        Bench(prepared, make_sharp_model(Path(scratch) / "model"), Path(scratch)) as bench,
    ):
        for check in checks:
            on_begin(check)
            started = time.perf_counter()
            if check.name in NEEDS_REPEATABLE_RUNS and any(map(_says_that_runs_differ, results)):
                why = "the same run twice differs already; see 'repeat'"
                result = CheckResult(
                    name=check.name, invariant=check.invariant, found=not_applicable(why)
                )
            else:
                result = _checked(check, bench, started)
            results.append(result)
    return results


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread: more only get in each other's way on a model this small."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _says_that_runs_differ(result: CheckResult) -> bool:
    is_failed = result.found.outcome is Outcome.FAILED and not result.is_plugin_fault
    return result.name == "repeat" and is_failed


def _checked(check: Check, bench: Bench, started: float) -> CheckResult:
    fault: PluginError | None = None
    try:
        found = check.run(bench)
    except PluginError as error:
        fault = error
        found = failed(f"{error.message}: {error.cause}")
    names: tuple[str, ...] = ()
    why, fix = "", ""
    if found.outcome is Outcome.FAILED:
        fix = check.fix
        if fault is not None:
            why, fix = fault.origin or "", fault.fix or ""
        elif found.culprit is not None:
            names, why = (found.culprit,), "it was looked at by itself"
        else:
            names, why = suspects(check, bench)
    return CheckResult(
        name=check.name,
        invariant=check.invariant,
        found=found,
        suspects=names,
        why_suspected=why,
        fix=fix,
        is_plugin_fault=fault is not None,
        duration_s=time.perf_counter() - started,
    )
