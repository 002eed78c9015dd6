"""``rlvr report``: the report page of a run, or its numbers as JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rlvr_core.evaluate.layout import to_json_text
from rlvr_core.report.page import visible, write_report
from rlvr_core.report.read import find_arms, read_run
from rlvr_core.report.sentences import accuracy_text, p_text, points
from rlvr_core.report.summary import Summary, summarise


def report(
    run: Annotated[
        Path, typer.Argument(help="A run folder, or one with the arms `verifier` and `control`.")
    ],
    control: Annotated[
        Path | None, typer.Option("--control", help="Run folder of the control arm.")
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
        summary = summarise(*(read_run(path) for path in paths))
        sys.stdout.write(to_json_text(summary.to_json()) + "\n")
        return
    destination = out or run / "report.html"
    summary = write_report(paths, destination)
    print_summary(summary, destination, Console())


def print_summary(summary: Summary, page: Path, console: Console) -> None:
    """Print the before-and-after table, the sentences and the path of the page."""
    if summary.changes:
        console.print(change_table(summary))
    for sentence in summary.sentences:
        console.print(Text(f"• {visible(sentence)}"))
    # On a line of its own and never wrapped, so that it can be clicked and copied.
    console.print(Text(str(page)), soft_wrap=True)


def change_table(summary: Summary) -> Table:
    """Return the before-and-after table of a summary, for a terminal."""
    table = Table(title=None)
    for heading in ("split", "arm", "grader"):
        table.add_column(heading)
    for heading in ("before", "after", "change, points", "McNemar", "separated"):
        table.add_column(heading, justify="right")
    for change in summary.changes:
        paired = change.paired
        compared = (change.why_not or "", "", "")
        if paired is not None:
            interval = f"[{points(paired.low)}, {points(paired.high)}]"
            compared = (
                f"{points(paired.difference)} {interval}",
                p_text(paired.p_value),
                "yes" if paired.separated else "no",
            )
        cells = (
            change.split,
            change.arm,
            change.grader,
            accuracy_text(change.before),
            accuracy_text(change.after),
            *compared,
        )
        table.add_row(*(Text(visible(cell)) for cell in cells))
    return table
