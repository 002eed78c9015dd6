"""Arguments and options that several verbs have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlvr_core.api.errors import StackError

if TYPE_CHECKING:
    from rlvr_core.api.verdicts import Json

StackPath = Annotated[Path, typer.Argument(metavar="STACK", help="The stack file.")]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY.PATH=VALUE", help="Replace values of the stack."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def plugin_settings(pairs: Sequence[str], option: str = "--config") -> dict[str, Json]:
    """Return the settings given as ``KEY=VALUE`` to an option, values read as YAML.

    Raises:
        StackError: RLVR-S106, one is not of that form.
    """
    from rlvr_core.config.yaml_source import parse_value

    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise StackError(
                "RLVR-S106",
                f"{option} {pair!r} cannot be used",
                fix=f"write {option} key=value, for example {option} tolerance=1e-6",
            )
        settings[key] = parse_value(value, f"{option} {key}")
    return settings
