"""``rlvr demo``: a real model learns from a verifier, beside a control arm; then a report."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlvr_core.api.errors import StackError, did_you_mean

if TYPE_CHECKING:
    from rich.console import Console

    from rlvr_core.train.prepare import Prepared

RECIPES = {"smollm2-arithmetic": ("data", 2), "smollm2-dead-start": ("data/no-examples", 0)}
"""Recipe -> (folder of its data, worked examples in a prompt)."""

CONTROL_SHARE = 1 / 4
"""The control arm makes this share of the verifier arm's steps."""


def demo(
    out: Annotated[
        Path, typer.Option(help="Folder of the demo; a number is added if taken.")
    ] = Path("runs/demo"),
    seed: Annotated[int, typer.Option(min=0, help="Of the data and of both arms.")] = 0,
    recipe: Annotated[
        str, typer.Option(help="smollm2-arithmetic, or smollm2-dead-start without examples.")
    ] = "smollm2-arithmetic",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Make the data, check everything, train nothing.")
    ] = False,
) -> None:
    """Train SmolLM2-135M to do sums, with a control arm, and write a report.

    Two cores take about 10 minutes if they compute in bfloat16, and half an hour if they do not.
    """
    from rlvr_core.cli.console import make_console
    from rlvr_core.cli.train import require_train_extra
    from rlvr_core.train.prepare import prepare

    console = make_console()
    if not dry_run:
        require_train_extra()
    folder = _free(out)
    stack = lay_out(folder, seed, recipe)
    verifier = prepare(stack)
    if dry_run:
        from rlvr_core.cli.plan import print_plan

        print_plan(verifier, console, as_json=False)
        console.print(f"data and stack: {folder}", markup=False, highlight=False, soft_wrap=True)
        return
    steps = max(1, int(verifier.resolved.stack.train.steps * CONTROL_SHARE))
    control = prepare(stack, [f"train.steps={steps}", "control=control-random"])
    try:
        _train_both(verifier, control, folder)
    except KeyboardInterrupt:
        missing = (
            ""
            if (folder / "control").exists()
            else (
                f"rlvr train {stack} --out {folder / 'control'} train.steps={steps} "
                "control=control-random, and "
            )
        )
        typer.echo(f"then {missing}rlvr report {folder} complete the demo", err=True)
        raise
    _report(folder, console)


def lay_out(folder: Path, seed: int, recipe: str) -> Path:
    """Write the demo's data and stack file, and return the path of the stack."""
    from rlvr_core.data.arithmetic import SIZES, make_arithmetic

    if recipe not in RECIPES:
        raise StackError(
            "RLVR-S106",
            f"the demo has no recipe {recipe!r}{did_you_mean(recipe, RECIPES)}",
            fix=f"recipes: {', '.join(RECIPES)}",
        )
    data, examples = RECIPES[recipe]
    make_arithmetic(folder / data, seed, examples, SIZES, "math-sympy")
    text = files("rlvr_core.recipes").joinpath(f"{recipe}.yaml").read_text("utf-8")
    stack = folder / "stack.yaml"
    stack.write_text(text.replace("\nseed: 0\n", f"\nseed: {seed}\n"), "utf-8")
    return stack


def _train_both(verifier: Prepared, control: Prepared, folder: Path) -> None:
    from rlvr_core.cli.train import run_training

    for prepared, arm in ((verifier, "verifier"), (control, "control")):
        out = folder / arm
        continuing = f"rlvr train {out / 'stack.yaml'} --out {out} --resume"
        run_training(prepared, out, title=f"{arm} arm", continuing=continuing)


def _report(folder: Path, console: Console) -> None:
    from rlvr_core.cli.report import print_summary
    from rlvr_core.report.page import write_report

    page = folder / "report.html"
    summary = write_report([folder / "verifier", folder / "control"], page)
    print_summary(summary, page, console)


def _free(out: Path) -> Path:
    """Return `out`, or `out` with the first number that nothing stands under yet."""
    number, folder = 1, out
    while folder.exists():
        number += 1
        folder = out.with_name(f"{out.name}-{number}")
    return folder
