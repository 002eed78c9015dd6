"""Arguments and options that several verbs have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

StackPath = Annotated[Path, typer.Argument(metavar="STACK", help="The stack file.")]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY.PATH=VALUE]...", help="Replace values of the stack."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
