"""``rlvr plugins new``: make a project that passes ``rlvr plugins check`` at once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class NewFamily(StrEnum):
    """What a new plugin is."""

    VERIFIER = "verifier"
    SAMPLER = "sampler"
    ADVANTAGE = "advantage"
    MONITOR = "monitor"


def new(
    name: Annotated[
        str, typer.Argument(help="Name of the plugin: small letters, digits and dashes.")
    ],
    family: Annotated[NewFamily, typer.Option(help="What it is.")] = NewFamily.VERIFIER,
    out: Annotated[
        Path | None, typer.Option(help="Folder to make [default: rlvr-plugin-NAME].")
    ] = None,
) -> None:
    """Make the project of a new plugin: package, tests, golden cases, README, licence, changelog.

    It overwrites nothing: a folder that is there and not empty is refused, with exit code 2.
    """
    from rlvr_core.scaffold.make import make_project

    folder, files = make_project(name, family.value, out)
    for file in files:
        typer.echo(folder / file)
    typer.echo("\nNext:")
    typer.echo(f"  cd {folder}")
    typer.echo('  pip install -e ".[test]"')
    typer.echo(f"  rlvr plugins check {name}")
