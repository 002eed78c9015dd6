"""``rlvr eval``: measure a checkpoint on held-out data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlvr_core.api.errors import StackError, did_you_mean
from rlvr_core.api.verdicts import Json
from rlvr_core.cli.options import Overrides, StackPath

if TYPE_CHECKING:
    from rich.table import Table

SPLITS = ("dev", "transfer", "gate")


def evaluate(
    stack: StackPath,
    overrides: Overrides = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="A checkpoint, or a run folder. Default: the stack's untrained model."),
    ] = None,
    split: Annotated[
        list[str] | None,
        typer.Option(help="dev, transfer or gate; may be repeated. Default: evaluate.splits."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a split.")] = False,
) -> None:
    """Sample and grade every row of the splits, and print the accuracies with their intervals."""
    from rlvr_core.cli.console import make_console
    from rlvr_core.cli.interrupts import importing_torch
    from rlvr_core.cli.live import LiveReporter
    from rlvr_core.cli.train import require_train_extra
    from rlvr_core.train.prepare import prepare

    for name in split or []:
        if name not in SPLITS:
            raise StackError(
                "RLVR-S106",
                f"there is no split {name!r} to evaluate{did_you_mean(name, SPLITS)}",
                fix=f"splits: {', '.join(SPLITS)}",
            )
    require_train_extra()
    prepared = prepare(stack, overrides or [], splits=split)
    with importing_torch():
        from rlvr_core.train.exam import examine

    console = make_console(stderr=True)
    with LiveReporter(console, "evaluation", 0) as reporter:
        records = examine(prepared, checkpoint, list(prepared.measured), reporter)
    if as_json:
        for record in records:
            typer.echo(json.dumps(record))
        return
    make_console().print(accuracy_table(records))


def accuracy_table(records: Sequence[Mapping[str, Json]]) -> Table:
    """Return a table with a line for each split and grader."""
    from rich.table import Table

    table = Table()
    for column in ("split", "grader", "passed", "accuracy", "95 % interval", "no answer read"):
        table.add_column(column)
    for record in records:
        for grader, of in record["graders"].items():
            judged = of["verdicts"] - of["masked"]
            interval = "-" if of["low"] is None else f"{of['low']:.1%} to {of['high']:.1%}"
            table.add_row(
                record["split"],
                grader,
                f"{of['passed']} of {judged}",
                "-" if of["accuracy"] is None else f"{of['accuracy']:.1%}",
                interval,
                "-" if of["parse_failure_rate"] is None else f"{of['parse_failure_rate']:.1%}",
            )
    return table
