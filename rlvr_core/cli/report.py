"""``rlvr report``: the report page of a run, or its numbers as JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rlvr_core.cli.console import make_console
from rlvr_core.records.layout import to_json_text
from rlvr_core.report.compare import Change
from rlvr_core.report.page import visible, write_report
from rlvr_core.report.read import find_arms, read_arms
from rlvr_core.report.sentences import interval_text, percent, points
from rlvr_core.report.summary import Summary, summarise


def report(
    run: Annotated[
        Path, typer.Argument(help="A run folder, or one with the arms `verifier` and `control`.")
    ],
    control: Annotated[
        Path | None,
        typer.Option("--control", help="Run folder of the control arm, trained with --control."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where the page goes [default: RUN/report.html].")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the numbers and write no page.")
    ] = False,
) -> None:
    """Write the report of a run as one HTML page, and print its main numbers."""
    verifier, found_control = find_arms(run)
    control = control or found_control
    paths = [verifier, *([control] if control else [])]
    if as_json:
        summary = summarise(*read_arms(paths))
        sys.stdout.write(to_json_text(summary.to_json()) + "\n")
        return
    destination = out or run / "report.html"
    summary = write_report(paths, destination)
    print_summary(summary, destination, make_console())


def print_summary(summary: Summary, page: Path, console: Console) -> None:
    """Print the before-and-after table, the sentences and the path of the page."""
    if summary.changes:
        console.print(change_table(summary))
    for sentence in summary.sentences:
        console.print(Text(f"• {visible(sentence)}"))
    # On a line of its own and never wrapped, so that it can be clicked and copied.
    console.print(Text(str(page)), soft_wrap=True)


def change_table(summary: Summary) -> Table:
    """Return the before-and-after table of a summary; it fits a terminal of 80 columns."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1))
    for heading in ("split", "arm", "grader"):
        table.add_column(heading, no_wrap=True)
    for heading in ("before", "after", "change, points"):
        table.add_column(heading, justify="right")
    for change in summary.changes:
        cells = (
            change.split,
            change.arm,
            change.grader,
            f"{percent(change.before.accuracy)}\n{interval_text(change.before)}",
            f"{percent(change.after.accuracy)}\n{interval_text(change.after)}",
            _change_cell(change),
        )
        table.add_row(*(Text(visible(cell)) for cell in cells))
    return table


def _change_cell(change: Change) -> str:
    paired = change.paired
    if paired is None:
        return f"not subtracted: {change.why_not}"
    separated = "separated" if paired.separated else "not separated"
    interval = f"[{points(paired.low)}, {points(paired.high)}]"
    return f"{points(paired.difference)} {separated}\n{interval}"
