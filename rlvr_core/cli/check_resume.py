"""``rlvr train STACK --resume --check``: what is printed of the comparison."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from rlvr_core.cli.train import require_train_extra
from rlvr_core.records.layout import described_changes

if TYPE_CHECKING:
    from rlvr_core.train.check_resume import Comparison, ResumeCheck
    from rlvr_core.train.prepare import Prepared

_NAMES_SHOWN = 3


def check_and_print(prepared: Prepared, out: Path, *, as_json: bool) -> None:
    """Make a step of the run again, print what differs, and exit with 1 if anything does."""
    from rlvr_core.cli.console import make_console
    from rlvr_core.cli.interrupts import importing_torch
    from rlvr_core.cli.live import LiveReporter

    require_train_extra()
    with importing_torch():
        from rlvr_core.train.check_resume import check_resume
        from rlvr_core.train.progress import Silent

    if as_json:
        found = check_resume(prepared, out, Silent())
        typer.echo(json.dumps(found.to_json()))
    else:
        console = make_console()
        with LiveReporter(console, out.name, prepared.resolved.stack.train.steps) as reporter:
            found = check_resume(prepared, out, reporter)
        for line in lines(found):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    if not found.is_equal:
        raise typer.Exit(1)


def lines(found: ResumeCheck) -> Iterator[str]:
    """Say in plain lines what is the same and what is not."""
    start = f"checkpoint {found.step - 1:06d}" if found.step > 1 else "the beginning"
    yield f"step {found.step}, made again from {start}"
    yield from _compared(found.sampled_anew)
    if not found.updates:
        yield "nothing was learnt in this step, so that it does not show whether learning repeats"
    if found.replayed:
        yield "and once more, with the completions and verdicts of the run"
        yield from _compared(found.replayed)
    if found.surroundings:
        yield f"other surroundings than those of the run: {described_changes(found.surroundings)}"
    if found.is_equal:
        yield "equal in every bit: a resume makes the run that an unbroken one would be"
    elif found.replayed and found.replayed.is_equal:
        yield (
            "different, but only in what is sampled and judged: a resume takes that from the "
            "record as far as there is one, and goes on to results of its own"
        )
    else:
        yield "different: a resume does not make the run that an unbroken one would be"


def _compared(made: Comparison) -> Iterator[str]:
    if made.weights_at_start_differ:
        yield "  weights at start  other than those that the run had"
    yield f"  completions       {_share(made.samples, made.other_samples)}"
    yield f"  verdicts          {_share(made.verdicts, made.other_verdicts)}"
    values = dict(made.other_metrics)
    weights = values.pop("weights_fingerprint", None)
    yield f"  metrics           {'other values' if values else 'the same, times left out'}"
    for key, (was, now) in values.items():
        yield f"    {key}: {json.dumps(was)} in the run, {json.dumps(now)} now"
    yield f"  weights after it  {'other bits' if weights else 'the same bits'}"


def _share(total: int, other: Sequence[str]) -> str:
    if not other:
        return f"all {total} the same"
    more = ", …" if len(other) > _NAMES_SHOWN else ""
    return f"{len(other)} of {total} differ: {', '.join(other[:_NAMES_SHOWN])}{more}"
