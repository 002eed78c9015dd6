"""``rlvr data``: make data, and look at it without training."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlvr_core.api.errors import StackError, did_you_mean
from rlvr_core.cli.options import plugin_settings

if TYPE_CHECKING:
    from rlvr_core.config.models import DataSource
    from rlvr_core.data.check import DataReport
    from rlvr_core.data.route import Routes

TASKS = ("arithmetic",)
LIBRARIES = ("reasoning-gym", "verifiers")
"""Whose tasks can be made: ``LIBRARY:TASK``."""
_STACK_SUFFIXES = (".yaml", ".yml")
_SHOWN = 20


def make(
    task: Annotated[
        str,
        typer.Argument(help="What to make: arithmetic, reasoning-gym:TASK, or verifiers:TASKSET."),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the files; made when absent.")],
    seed: Annotated[int, typer.Option(help="Chooses and orders the rows.")] = 0,
    examples: Annotated[
        int, typer.Option(help="arithmetic: worked examples a prompt, 2 or 0.")
    ] = 2,
    train: Annotated[int, typer.Option(min=1, help="Rows to train on.")] = 2000,
    dev: Annotated[int, typer.Option(min=1, help="Rows to choose a checkpoint by.")] = 200,
    transfer: Annotated[
        int, typer.Option(min=1, help="arithmetic: rows with other ranges and wording.")
    ] = 200,
    gate: Annotated[int, typer.Option(min=1, help="Rows to open once, for a release.")] = 200,
    verifier: Annotated[
        str, typer.Option(help="arithmetic: verifier.type of every row.")
    ] = "math-sympy",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A setting of the library's task; may be repeated."
        ),
    ] = None,
) -> None:
    """Make train, dev and gate data that share no problem; for arithmetic transfer data too.

    Tasks of a library need it installed: pip install "rlvr-core[reasoning-gym]" or
    "rlvr-core[verifiers]".
    """
    sizes = {"train": train, "dev": dev, "gate": gate}
    library, colon, name = task.partition(":")
    if colon and library in LIBRARIES:
        paths = _of_library(library, name, out, seed, sizes, settings or [])
    elif task in TASKS:
        from rlvr_core.data.arithmetic import make_arithmetic

        if settings:
            raise StackError(
                "RLVR-S106",
                f"--set {settings[0]!r} cannot be used: {task} has no settings",
                fix="leave it out",
            )
        paths = make_arithmetic(out, seed, examples, {**sizes, "transfer": transfer}, verifier)
    else:
        known = (*TASKS, *(f"{one}:…" for one in LIBRARIES))
        raise StackError(
            "RLVR-S106",
            f"there is no data called {task!r}{did_you_mean(task, known)}",
            fix=f"known: {', '.join(known)}",
        )
    for split, path in paths.items():
        with path.open("rb") as file:
            typer.echo(f"{split:<9}{sum(1 for _ in file):>6} rows  {path}")


def _of_library(
    library: str,
    name: str,
    out: Path,
    seed: int,
    sizes: Mapping[str, int],
    pairs: Sequence[str],
) -> dict[str, Path]:
    settings = plugin_settings(pairs, "--set")
    if library == "reasoning-gym":
        from rlvr_core.adapters.reasoning_gym_rows import make_reasoning_gym

        return make_reasoning_gym(out, name, seed, sizes, settings)
    from rlvr_core.adapters.verifiers_rows import make_verifiers

    return make_verifiers(out, name, sizes, settings)


def check(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="STACK|FILE",
            help="One stack file, and KEY.PATH=VALUE to replace values of it; or data files.",
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Look at data: bad rows, sizes, lengths, repeats, overlap. Exit code 1 when it has problems.

    With a stack file every row is also routed and its ground truth checked by the verifier.
    """
    from rlvr_core.data.check import check_data
    from rlvr_core.data.load import read_split

    found, base, routes = _sources(sources)
    splits, problems = {}, []
    for split, source in found.items():
        splits[split], more = read_split(source, base, split, routes)
        problems += more
    report = check_data(splits, problems)
    if as_json:
        typer.echo(json.dumps(report.to_json(), ensure_ascii=False, indent=2))
    else:
        _print(report)
    if not report.ok:
        raise typer.Exit(1)


def _sources(names: Sequence[str]) -> tuple[dict[str, DataSource], Path, Routes | None]:
    """Return what to read by split name, the folder paths start from, and the stack's verifiers."""
    stacks = [name for name in names if Path(name).suffix in _STACK_SUFFIXES]
    if not stacks:
        return _files(names), Path(), None
    overrides = names[1:]
    if names[0] != stacks[0] or not all("=" in one for one in overrides):
        raise StackError(
            "RLVR-S106",
            f"{stacks[0]} is a stack file and stands beside other files",
            fix="give one stack file, then KEY.PATH=VALUE; or data files only",
        )
    return _stack(stacks[0], overrides)


def _files(names: Sequence[str]) -> dict[str, DataSource]:
    from rlvr_core.config.models import DataSource

    stems = [name if name.startswith("hf:") else Path(name).stem for name in names]
    is_clear = len(set(stems)) == len(stems)
    titles = stems if is_clear else names
    return {title: DataSource(path=name) for title, name in zip(titles, names, strict=True)}


def _stack(name: str, overrides: Sequence[str]) -> tuple[dict[str, DataSource], Path, Routes]:
    from rlvr_core.api.plugin import Verifier
    from rlvr_core.config.load import load_stack
    from rlvr_core.data.route import Routes
    from rlvr_core.plugins.members import ground_truth_model
    from rlvr_core.plugins.resolve import resolve_stack

    resolved = resolve_stack(load_stack(name, overrides))
    found = {
        split: source
        for split in type(resolved.stack.data).model_fields
        if (source := getattr(resolved.stack.data, split)) is not None
    }
    verifiers = {
        instance: (ground_truth_model(loaded.ref), loaded.ref.plugin)
        for instance, loaded in resolved.verifiers.items()
        if isinstance(loaded.plugin, Verifier)
    }
    routes = Routes(
        {instance: model for instance, (model, _) in verifiers.items()},
        {instance: plugin for instance, (_, plugin) in verifiers.items()},
    )
    return found, Path(name).parent, routes


def _print(report: DataReport) -> None:
    for name, summary in report.splits.items():
        lengths: Mapping[str, int] = summary.prompt_characters
        routed = ", ".join(f"{verifier} {n}" for verifier, n in summary.by_verifier.items())
        typer.echo(
            f"{name:<9}{summary.rows:>6} rows  {routed}  prompts of {lengths['min']} to "
            f"{lengths['max']} characters (median {lengths['median']})"
        )
    for title, lines in (("note", report.notes), ("problem", report.problems)):
        for line in lines[:_SHOWN]:
            typer.echo(f"{title}: {line}")
        if len(lines) > _SHOWN:
            typer.echo(f"{title}: … and {len(lines) - _SHOWN} more (--json shows all)")
    plural = "" if len(report.problems) == 1 else "s"
    typer.echo(f"{len(report.problems) or 'no'} problem{plural}")
