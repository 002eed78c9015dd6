"""``rlvr rescore``: judge a run's stored rollouts again, and show the verdicts that changed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlvr_core.api.errors import RunFolderError, StackError, shortened

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rlvr_core.report.read import Run
    from rlvr_core.rescore.result import Flip, Rescored

_SHOWN_CHARACTERS = 100
_STEPS = re.compile(r"(\d*):(\d*)|(\d+)")


def rescore(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    verifier: Annotated[
        str | None,
        typer.Option(
            help="Judge with this entry of the run's stack, or this installed verifier [default: "
            "each rollout by its own]."
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A setting of --verifier; may be repeated."),
    ] = None,
    steps: Annotated[
        str | None,
        typer.Option(
            metavar="FROM:TO", help="Only these steps, both included; 5: means from 5 on."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Changed verdicts that are shown.")] = 20,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes [default: as the stack says].")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Judge a run's stored rollouts with the verifiers installed now. Exit code 1 if any changed.

    The run is only read. A verdict has changed when its status or its score is another one.
    Rollouts whose ground truth --verifier does not understand are left out and counted.
    """
    from rlvr_core.cli.console import make_console
    from rlvr_core.cli.options import plugin_settings
    from rlvr_core.records.layout import to_json_text
    from rlvr_core.report.read import read_run
    from rlvr_core.rescore.judge import Given
    from rlvr_core.rescore.judge import rescore as judge_again

    if config and verifier is None:
        raise StackError(
            "RLVR-S106",
            "--config is given without --verifier",
            fix="say with --verifier whose settings they are",
        )
    settings = plugin_settings(config or [])
    found = read_run(run)
    chosen = chosen_steps(found, steps)
    with _Progress(len(chosen)) as progress:
        result = judge_again(
            found,
            steps=chosen,
            given=Given(verifier, settings) if verifier else None,
            workers=workers,
            most_flips=limit,
            on_step=progress.step_done,
        )
    if not result.judged:
        raise RunFolderError(
            "RLVR-T104",
            f"none of the {result.left_out.total()} rollouts of {run} can be judged again",
            origin=str(run),
            cause="; ".join(_left_out(result)) or "the steps hold no rollouts",
            fix="give the verifier whose ground truth the rows hold, or other steps",
        )
    if as_json:
        sys.stdout.write(to_json_text(result.to_json()) + "\n")
    else:
        _print(result, make_console())
    if result.flipped:
        raise typer.Exit(1)


def chosen_steps(run: Run, text: str | None) -> list[int]:
    """Return the steps on disk that ``FROM:TO`` means; None means all.

    Raises:
        RunFolderError: RLVR-T104, the run holds no rollouts.
        StackError: RLVR-S106, the text is of another form, or means no step that is there.
    """
    if not run.rollout_steps:
        raise RunFolderError(
            "RLVR-T104",
            f"{run.path} holds no rollouts",
            origin=str(run.path / "rollouts"),
            cause="the run made no step yet, or the folder was removed",
            fix="give a run folder with rollouts/*.parquet",
        )
    match = _STEPS.fullmatch("" if text is None else text.strip())
    if text is None or text.strip() == ":":
        return run.rollout_steps
    if match is None:
        raise StackError(
            "RLVR-S106", f"--steps {text!r} cannot be read", fix="write --steps 10:20, 10: or 10"
        )
    only = match[3]
    first = int(only or match[1] or 1)
    last = int(only or match[2] or run.rollout_steps[-1])
    chosen = [step for step in run.rollout_steps if first <= step <= last]
    if not chosen:
        raise StackError(
            "RLVR-S106",
            f"--steps {text}: the run holds no rollouts of these steps",
            origin=str(run.path),
            fix=f"it holds steps {run.rollout_steps[0]} to {run.rollout_steps[-1]}",
        )
    return chosen


class _Progress:
    """Shows on stderr how many steps were judged again; in a terminal only."""

    def __init__(self, total: int) -> None:
        from rich.progress import Progress

        from rlvr_core.cli.console import make_console

        console = make_console(stderr=True)
        self._progress = Progress(console=console, transient=True, disable=not console.is_terminal)
        self._task = self._progress.add_task("steps judged again", total=total)

    def __enter__(self) -> _Progress:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def step_done(self, step: int) -> None:
        self._progress.advance(self._task)


def _print(result: Rescored, console: Console) -> None:
    from rich.text import Text

    for line in _versions(result):
        console.print(Text(line))
    for (old, new), count in result.transitions.most_common():
        console.print(Text(f"{old:>10} → {new:<10}{count:>8}"))
    if result.flips:
        console.print(_table(result.flips))
    if result.flipped > len(result.flips):
        console.print(f"… and {result.flipped - len(result.flips)} more; --limit shows more")
    for line in _left_out(result):
        console.print(f"{line}, and were left out")
    share = f" ({result.flipped / result.judged:.1%})" if result.judged else ""
    console.print(
        Text(f"{result.flipped} of {result.judged} verdicts changed{share}, {_steps(result)}")
    )


def _versions(result: Rescored) -> Iterator[str]:
    from rlvr_core.report.page import visible

    for name, versions in sorted(result.old_versions.items()):
        yield visible(f"then: {name} {', '.join(sorted(versions))}")
    for name, version in sorted(result.new_versions.items()):
        yield visible(f"now:  {name} {version}")


def _steps(result: Rescored) -> str:
    first, last = result.steps[0], result.steps[-1]
    return f"step {first}" if first == last else f"steps {first} to {last}"


def _left_out(result: Rescored) -> list[str]:
    return [f"{count} rollouts {why}" for why, count in result.left_out.items()]


def _table(flips: list[Flip]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD)
    for heading in ("step", "row", "sample", "then", "now"):
        table.add_column(heading, no_wrap=True)
    table.add_column("end of the completion")
    for flip in flips:
        was, now = flip.stored, flip.now
        failure = now.failure.value if now.failure else None
        cells = (
            str(was.step),
            was.row_id,
            str(was.sample_index),
            _said(was.status, was.score, was.failure),
            _said(now.status.value, now.score, failure),
        )
        shown = Text(_end(was.completion), no_wrap=True, overflow="ellipsis")
        table.add_row(*(Text(_shown(cell)) for cell in cells), shown)
    return table


def _said(status: str, score: float | None, failure: str | None) -> str:
    parts = [status, *([failure] if failure else []), *([] if score is None else [f"{score:.4g}"])]
    return " ".join(parts)


def _shown(text: str) -> str:
    from rlvr_core.report.page import visible

    return shortened(visible(" ".join(text.split())), _SHOWN_CHARACTERS)


def _end(completion: str) -> str:
    """Return the end of a completion, where answers stand, on one line and harmless to look at."""
    from rlvr_core.report.page import visible

    # A little is enough: of a hostile megabyte no more is looked at.
    line = " ".join(completion[-4 * _SHOWN_CHARACTERS :].split())
    return visible(line if len(line) <= _SHOWN_CHARACTERS else f"…{line[-_SHOWN_CHARACTERS:]}")
