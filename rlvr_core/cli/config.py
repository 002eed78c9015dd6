"""``rlvr config``: look at stack files without training."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from rlvr_core.api.errors import StackError, did_you_mean
from rlvr_core.cli.options import AsJson, Overrides, StackPath


def check(stack: StackPath, overrides: Overrides = None, as_json: AsJson = False) -> None:
    """Check a stack file and the plugins it names. Exit code 2 or 3 when something is wrong."""
    from rlvr_core.config.load import load_stack
    from rlvr_core.plugins.resolve import resolve_stack

    resolved = resolve_stack(load_stack(stack, overrides or ()))
    named = [loaded for loaded in resolved.plugins if not loaded.is_default]
    if as_json:
        plugins = [
            {"name": one.name, "plugin": one.ref.plugin, "from": one.ref.blame} for one in named
        ]
        typer.echo(json.dumps({"ok": True, "stack": str(stack), "plugins": plugins}))
        return
    plural = "" if len(named) == 1 else "s"
    loaded = f"{len(named)} plugin{plural} named and loaded"
    typer.echo(f"{stack}: ok, {loaded}; model and data were not looked at")


def show(stack: StackPath, overrides: Overrides = None, as_json: AsJson = False) -> None:
    """Print the stack with every default written out."""
    from rlvr_core.config.load import load_stack
    from rlvr_core.config.yaml_source import parse_yaml
    from rlvr_core.plugins.plan import resolved_yaml
    from rlvr_core.plugins.resolve import resolve_stack

    text = resolved_yaml(resolve_stack(load_stack(stack, overrides or ())))
    if as_json:
        data = parse_yaml(text, "resolved").data
        typer.echo(json.dumps(data, indent=2, ensure_ascii=False))
    else:
        typer.echo(text, nl=False)


def schema(as_json: AsJson = False) -> None:
    """Print the JSON Schema of stack files, with the settings of all installed plugins."""
    from rlvr_core.plugins.index import PluginIndex
    from rlvr_core.plugins.schema import stack_schema

    built, errors = stack_schema(PluginIndex.scan())
    for error in errors:
        typer.echo(f"left out: {error.render()}", err=True)
    typer.echo(json.dumps(built, indent=None if as_json else 2, ensure_ascii=False))


def copy(
    recipe: Annotated[str, typer.Argument(help="Name of a recipe.")],
    destination: Annotated[
        Path | None, typer.Argument(metavar="DEST", help="File or folder. Default: here.")
    ] = None,
) -> None:
    """Copy a recipe, to be edited. Never overwrites."""
    folder = files("rlvr_core") / "recipes"
    recipes = {
        one.name.removesuffix(".yaml"): one
        for one in folder.iterdir()
        if one.name.endswith(".yaml")
    }
    found = recipes.get(recipe.removesuffix(".yaml"))
    if found is None:
        raise StackError(
            "RLVR-S106",
            f"there is no recipe {recipe!r}{did_you_mean(recipe, recipes)}",
            fix=f"known: {', '.join(sorted(recipes)) or 'none'}",
        )
    target = destination or Path(found.name)
    if target.is_dir():
        target = target / found.name
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(found.read_text(encoding="utf-8"))
    except FileExistsError as exc:
        raise StackError(
            "RLVR-S106", f"{target} exists, and is not overwritten", fix="name another file"
        ) from exc
    except OSError as exc:
        raise StackError(
            "RLVR-S106",
            f"{target} cannot be written",
            cause=exc.strerror,
            fix="name a file in a folder that is there and may be written",
        ) from exc
    typer.echo(str(target))
