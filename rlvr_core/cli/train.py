"""``rlvr train``: from a stack file to a run folder."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlvr_core.api.errors import EnvironmentFault, RunEndedError, StackError
from rlvr_core.api.verdicts import Json
from rlvr_core.cli.options import Overrides, StackPath
from rlvr_core.records import layout
from rlvr_core.train.run_lock import require_idle

if TYPE_CHECKING:
    from rlvr_core.train.place import Place
    from rlvr_core.train.prepare import Prepared
    from rlvr_core.train.resume import Resumption
    from rlvr_core.train.run import Outcome


def train(
    stack: StackPath,
    overrides: Overrides = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The run folder. Default: runs/<name of the stack file>[-<control>]."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, print the plan and stop.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run that stands in the run folder.")
    ] = False,
    allow_changes: Annotated[
        bool,
        typer.Option(
            "--allow-changes",
            help="With --resume: accept another stack, other data or plugins, and write it down.",
        ),
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="With --resume: make one step again, compare every bit, and change nothing.",
        ),
    ] = False,
    control: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Control arm; 'random' pays by the toss of a coin."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON lines, for programs.")
    ] = False,
) -> None:
    """Train the stack's model with its verifiers, and leave a run folder.

    Exit codes: 0 finished, 1 --check found a difference, 2 the stack or the data is at fault,
    3 a plugin is, 4 ended early.
    """
    from rlvr_core.cli.console import make_console
    from rlvr_core.train.prepare import prepare

    _require_resume(resume, {"--allow-changes": allow_changes, "--check": check})
    _require_stack_file(stack)
    prepared = prepare(stack, with_control(overrides or [], control))
    name = stack.stem if control is None else f"{stack.stem}-{control}"
    out = out or Path("runs") / name
    if dry_run:
        from rlvr_core.cli.plan import print_plan

        continuing = _resumption(prepared, out, allow_changes=allow_changes) if resume else None
        print_plan(
            prepared,
            make_console(),
            as_json=as_json,
            continuing=continuing,
            out=None if resume else out,
        )
        return
    if check:
        from rlvr_core.cli.check_resume import check_and_print

        check_and_print(prepared, out, as_json=as_json)
        return
    outcome = run_training(
        prepared,
        out,
        title=out.name,
        continuing="the same command with --resume",
        resume=resume,
        allow_changes=allow_changes,
        as_json=as_json,
    )
    if outcome.status != "finished":
        raise RunEndedError(
            "RLVR-T103",
            "the run was ended by a monitor",
            origin=str(outcome.folder),
            cause=outcome.reason,
            fix="events.jsonl in the run folder says which one; --resume continues the run",
        )
    if os.environ.get("RANK", "0") != "0":
        return  # of several processes, the main one alone talks
    if as_json:
        ended = {
            "kind": "end",
            "status": outcome.status,
            "reason": outcome.reason,
            "folder": str(outcome.folder),
        }
        typer.echo(json.dumps(ended))
        return
    for line in (outcome.reason, f"run folder: {out}"):
        if line:
            make_console().print(line, markup=False, highlight=False, soft_wrap=True)


def run_training(
    prepared: Prepared,
    out: Path,
    *,
    title: str,
    continuing: str,
    resume: bool = False,
    allow_changes: bool = False,
    as_json: bool = False,
) -> Outcome:
    """Train and show it: live on a terminal, as plain lines elsewhere, or as JSON lines.

    Args:
        prepared: The stack and its data, checked.
        out: The run folder.
        title: Shown in front of every line.
        continuing: What continues the run after Ctrl-C.
        resume: Continue the run that stands in the run folder.
        allow_changes: On a resume, accept what changed.
        as_json: Print JSON lines.

    Raises:
        EnvironmentFault: RLVR-E101, the ``[train]`` extra is missing.
        KeyboardInterrupt: Ctrl-C or a polite kill; said on standard error.
    """
    from rlvr_core.cli.console import make_console
    from rlvr_core.cli.interrupts import Interrupts
    from rlvr_core.cli.live import LiveReporter
    from rlvr_core.train.place import Place

    require_train_extra()
    place = Place("loading torch")
    steps = prepared.resolved.stack.train.steps
    with Interrupts(place) as interrupts:
        try:
            with interrupts.ending_at_once(lambda: _interrupted(place, out, continuing)):
                from rlvr_core.train.run import train as run

            start = partial(
                run, prepared, out, resume=resume, allow_changes=allow_changes, place=place
            )
            if as_json:
                return start(reporter=JsonReporter())
            with LiveReporter(make_console(), title, steps) as reporter:
                return start(reporter=reporter)
        except (KeyboardInterrupt, Exception) as error:
            # Some libraries make an error of their own of an interruption.
            is_made_of_it = place.is_interrupted and error is not place.conclusion
            if not (isinstance(error, KeyboardInterrupt) or is_made_of_it):
                raise
            typer.echo(_interrupted(place, out, continuing), err=True)
            raise KeyboardInterrupt from error


def _interrupted(place: Place, out: Path, continuing: str) -> str:
    """Say where a run was interrupted, how it is continued, and from where."""
    where = f"interrupted in {place}"
    if not (out / layout.MANIFEST).is_file():
        return f"{where}; nothing was written yet"
    found = layout.complete_checkpoints(out)
    since = f"after step {int(found[-1].name)}" if found else "from its beginning"
    return f"{where}; {continuing} continues {out} {since}"


def _require_resume(resume: bool, given: Mapping[str, bool]) -> None:
    alone = [option for option, is_given in given.items() if is_given and not resume]
    if alone:
        raise StackError(
            "RLVR-S106",
            f"{alone[0]} is about a run that is there already",
            fix=f"add --resume, or leave {alone[0]} out",
        )
    if all(given.values()):
        raise StackError(
            "RLVR-S106",
            f"{' and '.join(given)} do not go together",
            cause="a step can be compared only where nothing was changed",
            fix="leave one of them out",
        )


def _require_stack_file(stack: Path) -> None:
    """Refuse a run folder given as the stack, with the command that continues the run."""
    if not (stack / layout.MANIFEST).is_file():
        return
    present = stack / layout.stack_file(layout.read_manifest(stack))
    raise StackError(
        "RLVR-S101",
        f"{stack} is a run folder, and not a stack file",
        fix=f"to continue the run: {shlex.join(['rlvr', 'train', str(present)])} "
        f"{shlex.join(['--out', str(stack)])} --resume",
    )


def _resumption(prepared: Prepared, out: Path, *, allow_changes: bool) -> Resumption:
    """Return how the run would be continued; raise what the real command would."""
    from rlvr_core.cli.interrupts import importing_torch

    require_train_extra()
    with importing_torch():
        from rlvr_core.train.manifest import make_manifest
        from rlvr_core.train.resume import plan_resume

    processes = int(os.environ.get("WORLD_SIZE", "1"))
    manifest = make_manifest(prepared, out.name, processes)
    stack = prepared.resolved.stack
    require_idle(out)
    return plan_resume(out, manifest, stack, allow_changes=allow_changes)


def with_control(overrides: Sequence[str], control: str | None) -> list[str]:
    """Return overrides that also put the control arm `control` into the stack."""
    return [*overrides, *([f"control=control-{control}"] if control else [])]


def require_train_extra() -> None:
    """Refuse, with the way out, when torch and its companions are not installed.

    Raises:
        EnvironmentFault: RLVR-E101.
    """
    from importlib.util import find_spec

    missing = [name for name in ("torch", "transformers", "accelerate") if not find_spec(name)]
    if missing:
        raise EnvironmentFault(
            "RLVR-E101",
            f"training needs {', '.join(missing)}",
            fix='pip install "rlvr-core[train]"',
        )


class JsonReporter:
    """Prints one JSON object a line: ``{"kind": "step" | "evaluation" | "event", …}``."""

    def phase(self, text: str) -> None:
        """Keep quiet: phases are for people."""

    def step(self, record: Mapping[str, Json]) -> None:
        """Print a finished step."""
        self._print("step", record)

    def evaluation(self, record: Mapping[str, Json]) -> None:
        """Print an evaluation."""
        self._print("evaluation", record)

    def event(self, record: Mapping[str, Json]) -> None:
        """Print an event."""
        self._print("event", {"event": record["kind"], **record})

    def _print(self, kind: str, record: Mapping[str, Json]) -> None:
        typer.echo(json.dumps({**record, "kind": kind}))
