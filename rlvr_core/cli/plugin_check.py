"""``rlvr plugins check``: hold one installed plugin to the checks of its family."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rlvr_core.cli.options import AsJson


class CheckLevel(StrEnum):
    """How many golden cases a verifier must bring."""

    BASIC = "basic"
    LISTED = "listed"


def check(
    name: Annotated[str, typer.Argument(help="Name of an installed plugin.")],
    level: Annotated[
        CheckLevel,
        typer.Option(
            help="Golden cases that there must be: basic 5 that pass, 5 that fail, 3 near misses; "
            "listed 20, 20, 10."
        ),
    ] = CheckLevel.BASIC,
    golden: Annotated[
        Path | None,
        typer.Option(help="Golden cases [default: golden.jsonl of the project]."),
    ] = None,
    project: Annotated[
        Path | None,
        typer.Option(help="Folder of its pyproject.toml [default: where it was installed from]."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NUMBER", help="Make this check only; may be repeated."),
    ] = None,
    timeout_s: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Deadline of a row in seconds.")
    ] = 10.0,
    as_json: AsJson = False,
) -> None:
    """Check a plugin: package, verdicts, robustness, attacks, resources, documentation.

    Exit codes: 0 every check that applies was made and holds, or fails as its project expects; 1
    one does not, or none applies; 2 there is no such plugin, or a path, a number or a golden case
    cannot be used.
    """
    from rlvr_core.cli.console import make_console
    from rlvr_core.testing.run import check_plugin

    with make_console(stderr=True).status("checking") as status:
        report = check_plugin(
            name,
            cases=golden,
            level=level.value,
            project=project,
            timeout_s=timeout_s,
            only=only,
            on_check=lambda one: status.update(f"{one.number}: {one.sentence}"),
        )
    if as_json:
        typer.echo(json.dumps(report.to_json(), indent=2, ensure_ascii=True))
    else:
        report.render(make_console())
    if not report.is_passed:
        raise typer.Exit(1)
