"""``rlvr plugins``: what is installed. Nothing here imports a plugin unless ``--load`` says so."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import distribution
from typing import Annotated

import typer

from rlvr_core.api.errors import StackError, did_you_mean, listed
from rlvr_core.api.verdicts import Json
from rlvr_core.cli.options import AsJson
from rlvr_core.plugins.index import InstalledPlugin, PluginIndex, metadata_of
from rlvr_core.plugins.source_files import declared_api, declared_summary


def list_plugins(as_json: AsJson = False) -> None:
    """List every installed plugin, importing none."""
    index = PluginIndex.scan()
    doubled = {id(plugin) for same in index.duplicates() for plugin in same}
    facts = [_facts(plugin, id(plugin) in doubled) for plugin in index.plugins]
    if as_json:
        typer.echo(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    lines = [["NAME", "FAMILY", "DISTRIBUTION", "VERSION", "API", ""]]
    lines += [
        [
            str(fact["name"]),
            str(fact["family"]),
            str(fact["distribution"]),
            str(fact["version"]),
            str(fact["api"] or "?"),
            "name registered twice: see rlvr plugins doctor" if fact["duplicate"] else "",
        ]
        for fact in facts
    ]
    _print_columns(lines)


def show(
    name: Annotated[str, typer.Argument(help="Name of the plugin.")],
    load: Annotated[
        bool, typer.Option("--load", help="Import it, in a process of its own.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what is known of one plugin; with --load its hooks and settings too."""
    index = PluginIndex.scan()
    found = index.named(name)
    if not found:
        known = {plugin.name for plugin in index.plugins}
        raise StackError(
            "RLVR-S103",
            f"no plugin named {name!r} is installed{did_you_mean(name, known)}",
            cause=f"installed: {listed(known) or 'none'}",
            fix="rlvr plugins list shows what is installed",
        )
    facts = [_all_facts(plugin, len(found) > 1, load) for plugin in found]
    if as_json:
        typer.echo(json.dumps(facts, indent=2, ensure_ascii=False))
    else:
        typer.echo("\n\n".join(_described(fact) for fact in facts))
    failed = [fact["error"] for fact in facts if fact.get("error")]
    if failed:
        raise typer.Exit(1)


def doctor(
    load: Annotated[
        bool, typer.Option("--load", help="Import each plugin, in a process of its own.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say what is wrong with the installed plugins. Exit code 1 when something is."""
    from rlvr_core.plugins.doctor import examine, surroundings

    index = PluginIndex.scan()
    complaints = examine(index, load=load)
    where = surroundings()
    if as_json:
        found = [complaint.to_json() for complaint in complaints]
        typer.echo(
            json.dumps({**where, "plugins": len(index.plugins), "problems": found}, indent=2)
        )
    else:
        for key, value in where.items():
            typer.echo(f"{key:<12} {value}")
        typer.echo(f"{'plugins':<12} {len(index.plugins)}")
        for complaint in complaints:
            typer.echo(f"\nproblem: {complaint.about}: {complaint.message}")
            typer.echo(f"  fix    {complaint.fix}")
        plural = "" if len(complaints) == 1 else "s"
        typer.echo(f"\n{len(complaints) or 'no'} problem{plural}")
    if complaints:
        raise typer.Exit(1)


def _facts(plugin: InstalledPlugin, is_duplicate: bool) -> dict[str, Json]:
    return {
        "name": plugin.name,
        "family": plugin.family.value,
        "distribution": plugin.distribution,
        "version": plugin.version,
        "api": declared_api(plugin.entry_point),
        "duplicate": is_duplicate,
    }


def _all_facts(plugin: InstalledPlugin, is_duplicate: bool, load: bool) -> dict[str, Json]:
    metadata = metadata_of(distribution(plugin.distribution))
    facts = _facts(plugin, is_duplicate) | {
        "summary": declared_summary(plugin.entry_point) or metadata.get("Summary"),
        "license": metadata.get("License-Expression") or metadata.get("License"),
        "requires": list(distribution(plugin.distribution).requires or ()),
        "requires_python": metadata.get("Requires-Python"),
        "report": plugin.report_url,
        "entry_point": plugin.entry_point.value,
        "location": plugin.location,
    }
    if load:
        from rlvr_core.plugins.inspection import inspect_apart

        facts |= inspect_apart(plugin.ref(plugin.name, {}))
    return facts


def _described(facts: dict[str, Json]) -> str:
    schemas = {key: facts.get(key) for key in ("config", "ground_truth")}
    lines = []
    for key, value in facts.items():
        if key in schemas or value in (None, [], False):
            continue
        if key == "error":
            lines.append(f"error        [{value['code']}] {value['message']}: {value['cause']}")
        else:
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            lines.append(f"{key.replace('_', ' '):<16} {text}")
    for title, schema in schemas.items():
        if schema is not None:
            lines += ["", f"{title.replace('_', ' ')}:", *_fields(schema)]
    return "\n".join(lines)


def _fields(schema: dict[str, Json]) -> list[str]:
    lines = []
    for name, field in schema.get("properties", {}).items():
        kind = _kind(field)
        default = f" = {json.dumps(field['default'])}" if "default" in field else ""
        if name in schema.get("required", []):
            default = " (required)"
        note = field.get("description", "")
        lines.append(f"  {name}: {kind}{default}{'  ' + note if note else ''}")
    return lines or ["  (none)"]


def _kind(field: dict[str, Json]) -> str:
    """Return the values of a field in short, such as ``number or null``."""
    options = field.get("anyOf") or field.get("oneOf")
    if options:
        return " or ".join(dict.fromkeys(map(_kind, options)))
    if "enum" in field:
        return " | ".join(json.dumps(value) for value in field["enum"])
    if field.get("type") == "array" and "type" in field.get("items", {}):
        return f"array of {field['items']['type']}"
    return str(field.get("type") or "see --json")


def _print_columns(lines: Sequence[Sequence[str]]) -> None:
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for line in lines:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        typer.echo("  ".join(padded).rstrip())
