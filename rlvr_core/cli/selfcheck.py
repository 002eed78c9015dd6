"""``rlvr selfcheck``: hold the user's own stack and plugins to the invariants of training."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from rlvr_core.cli.options import Overrides, StackPath

if TYPE_CHECKING:
    from rich.console import Console

    from rlvr_core.selfcheck.result import CheckResult

PLUGIN_FAULT_EXIT_CODE = 3


def selfcheck(
    stack: StackPath,
    overrides: Overrides = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check a stack's plugins on a tiny random model: what must not change an update, does not.

    The stack's own model is not loaded. Exit codes: 0 all checks hold or do not apply, 1 one
    failed, 2 the stack or the data is at fault, 3 a plugin raised or returned what it may not.
    """
    from rlvr_core.cli.console import make_console
    from rlvr_core.cli.interrupts import importing_torch
    from rlvr_core.cli.train import require_train_extra
    from rlvr_core.records.layout import without_non_finite
    from rlvr_core.train.prepare import prepare

    require_train_extra()
    # Read when accelerate is first used: bits are compared, which a GPU does not promise.
    os.environ["ACCELERATE_USE_CPU"] = "true"
    prepared = prepare(stack, overrides or [])
    with importing_torch():
        from rlvr_core.selfcheck.checks import CHECKS
        from rlvr_core.selfcheck.result import Outcome
        from rlvr_core.selfcheck.run import selfcheck as make_checks

    with make_console(stderr=True).status("making a tiny model") as status:
        results = make_checks(
            prepared, CHECKS, lambda check: status.update(f"checking: {check.name}")
        )
    if as_json:
        body = {"checks": [result.to_json() for result in results]}
        typer.echo(json.dumps(without_non_finite(body), indent=2))
    else:
        print_results(results, make_console())
    if any(result.is_plugin_fault for result in results):
        raise typer.Exit(PLUGIN_FAULT_EXIT_CODE)
    if any(result.found.outcome is Outcome.FAILED for result in results):
        raise typer.Exit(1)


def print_results(results: Sequence[CheckResult], console: Console) -> None:
    """Print one line a check, and below them what to do about those that failed."""
    from rich.table import Table
    from rich.text import Text

    from rlvr_core.selfcheck.result import Outcome

    colours = {Outcome.OK: "green", Outcome.FAILED: "red", Outcome.NOT_APPLICABLE: "yellow"}
    table = Table()
    for column in ("check", "outcome", "difference", "allowed", "what was compared"):
        table.add_column(column, overflow="fold")
    for result in results:
        found = result.found
        table.add_row(
            result.name,
            Text(found.outcome.value, style=colours[found.outcome]),
            *("" if one is None else f"{one:.1e}" for one in (found.difference, found.tolerance)),
            Text(found.detail),
        )
    console.print(table)
    for result in results:
        if result.found.outcome is Outcome.FAILED:
            console.print(Text(_advice(result)))


def _advice(result: CheckResult) -> str:
    lines = [
        f"{result.name} failed. {result.invariant}",
        f"  found    {result.found.detail}",
    ]
    if result.suspects:
        lines.append(f"  suspect  {', '.join(result.suspects)}: {result.why_suspected}")
    elif result.why_suspected:
        lines.append(f"  suspect  {result.why_suspected}")
    if result.fix:
        lines.append(f"  fix      {result.fix}")
    return "\n".join(lines)
