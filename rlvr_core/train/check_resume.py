"""Does a run continue to the same bits? One of its steps is made again elsewhere, and compared."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

from accelerate import Accelerator
from accelerate.utils import gather_object

from rlvr_core.api.errors import RunFolderError
from rlvr_core.api.verdicts import Json
from rlvr_core.models.source import resolve_model
from rlvr_core.plugins.plan import resolved_yaml
from rlvr_core.records import layout
from rlvr_core.records.logs import read_log
from rlvr_core.train import checkpoint
from rlvr_core.train.build import load_model, open_runtime
from rlvr_core.train.loop import Run
from rlvr_core.train.manifest import make_manifest
from rlvr_core.train.place import Place
from rlvr_core.train.prepare import Prepared
from rlvr_core.train.processes import make_accelerator, meet
from rlvr_core.train.progress import Reporter, Silent
from rlvr_core.train.prompt_audit import audit
from rlvr_core.train.recording import Recording, read_recording
from rlvr_core.train.resume import Changes, plan_resume
from rlvr_core.train.run_folder import RunFolder
from rlvr_core.train.run_lock import require_idle

TIMES = ("collect_s", "train_s", "step_s", "tokens_per_s")
"""Keys of ``metrics.jsonl`` that are never the same twice."""

Entry: TypeAlias = dict[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A step that was made again beside the step of the run."""

    weights_at_start_differ: bool
    samples: int
    other_samples: list[str]
    """Which completions have other tokens or log-probabilities: step, row and sample index."""
    verdicts: int
    other_verdicts: list[str]
    other_metrics: dict[str, tuple[Json, Json]]
    """By key of ``metrics.jsonl``: (of the run, made again)."""

    @property
    def is_equal(self) -> bool:
        """True when every bit is the same, the weights after the step among them."""
        different = (self.other_samples, self.other_verdicts, self.other_metrics)
        return not (self.weights_at_start_differ or any(different))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeCheck:
    """What `check_resume` found."""

    step: int
    """The step that was made again."""
    updates: int
    """That the run made in it; 0: nothing was learnt."""
    surroundings: Changes
    """What differs in machine, libraries and processes from those of the run."""
    sampled_anew: Comparison
    replayed: Comparison | None
    """With the samples and verdicts of the record; made only when those of its own differ."""

    @property
    def is_equal(self) -> bool:
        """True when the step came out the same with nothing taken from the record."""
        return self.sampled_anew.is_equal

    def to_json(self) -> dict[str, Json]:
        """Return it as plain data."""
        return {"is_equal": self.is_equal, **asdict(self)}


def check_resume(prepared: Prepared, out: Path, reporter: Reporter) -> ResumeCheck:
    """Make the step after the newest possible checkpoint again, and compare it with the run's own.

    The run folder is only read. In several processes, all of them call this together.

    Args:
        prepared: The stack of the run.
        out: The run folder.
        reporter: Told of phases, on the main process.

    Raises:
        RunFolderError: RLVR-T101, the stack is not the run's; RLVR-T102, there is no step to make
            again; RLVR-T105, another process is writing; RLVR-T108, the checkpoint is damaged.
    """
    stack = prepared.resolved.stack
    accelerator = make_accelerator(stack)
    manifest = make_manifest(prepared, out.name, accelerator.num_processes)
    if accelerator.is_main_process:
        require_idle(out)
    resumption = plan_resume(out, manifest, stack, allow_changes=False)
    start = _newest_start(out)
    if start:
        checkpoint.require_undamaged(start)
    step = (int(start.name) if start else 0) + 1
    again = _Again(prepared, out, start, step, accelerator, reporter)
    anew = again.compare(is_replay=False)
    differences = anew.other_samples or anew.other_verdicts
    return ResumeCheck(
        step=step,
        updates=_updates(out, step),
        surroundings=resumption.surroundings,
        sampled_anew=anew,
        replayed=again.compare(is_replay=True) if differences else None,
    )


@dataclass(frozen=True, slots=True)
class _Again:
    """Makes one step of a run again."""

    prepared: Prepared
    out: Path
    start: Path | None
    step: int
    accelerator: Accelerator
    reporter: Reporter

    def compare(self, *, is_replay: bool) -> Comparison:
        with _scratch(self.accelerator) as folder:
            run_folder = self._lay_out(folder / "run", is_replay=is_replay)
            weights = self._make(run_folder)
            meet(self.accelerator, Place())
            recorded, now = (
                read_recording(run / layout.recorded_file(self.step))
                for run in (self.out, run_folder)
            )
            if recorded is None or now is None:
                raise _nothing_to_check(self.out, f"the recording of step {self.step} is damaged")
            names, other_verdicts = _other_verdicts(recorded, now)
            return Comparison(
                weights_at_start_differ=weights != recorded.conditions.weights,
                samples=len(recorded.samples),
                other_samples=_other_samples(recorded, now),
                verdicts=names,
                other_verdicts=other_verdicts,
                other_metrics=_other_metrics(
                    _metrics(self.out, self.step), _metrics(run_folder, self.step)
                ),
            )

    def _lay_out(self, folder: Path, *, is_replay: bool) -> Path:
        """Make a run folder that stands where the run stood before the step."""
        if self.accelerator.is_main_process:
            manifest = make_manifest(self.prepared, self.out.name, self.accelerator.num_processes)
            made = RunFolder.create(folder, manifest, resolved_yaml(self.prepared.resolved))
            for record in read_log(self.out, layout.EVALS).records:
                if self.start and record["step"] < self.step:
                    made.append_eval(record)  # it is not made again
            if is_replay:
                source = self.out / layout.recorded_file(self.step)
                made.recording(self.step).write_bytes(source.read_bytes())
        meet(self.accelerator, Place())
        return folder

    def _make(self, folder: Path) -> str:
        """Make the step, and return the fingerprint of the weights before it."""
        prepared, stack = self.prepared, self.prepared.resolved.stack
        initial = resolve_model(stack.model, self.reporter.phase, prepared.base)
        loaded = load_model(self.start or initial)
        rows = prepared.splits["train"]
        with open_runtime(prepared.resolved, loaded, rows, self.accelerator, initial) as runtime:
            run = Run(
                runtime=runtime,
                folder=RunFolder.open(folder),
                splits={name: prepared.splits[name] for name in stack.evaluate.splits},
                tokenizer=loaded.tokenizer,
                reporter=_PhasesOnly(self.reporter),
            )
            if self.start:
                run.resume(self.start)
            else:
                audit(run)
            run.begin()
            weights = run.weights
            run.make_step()
            return weights


class _PhasesOnly(Silent):
    """Passes on what is being done, and no results: they are no news."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter

    def phase(self, text: str) -> None:
        """Pass on."""
        self._reporter.phase(text)


def _newest_start(out: Path) -> Path | None:
    """Return the newest checkpoint whose next step was made and is on record; None: the beginning.

    One whose next step learnt something comes before one in which nothing was learnt.

    Raises:
        RunFolderError: RLVR-T102, there is neither.
    """
    starts = {
        (int(path.name) if path else 0) + 1: path
        for path in (*reversed(layout.complete_checkpoints(out)), None)
    }
    made = [
        step
        for step in starts
        if (out / layout.recorded_file(step)).exists() and _metrics(out, step)
    ]
    for step in (*(step for step in made if _updates(out, step)), *made):
        return starts[step]
    raise _nothing_to_check(out, "no step after a checkpoint that is kept was finished")


def _nothing_to_check(out: Path, cause: str) -> RunFolderError:
    return RunFolderError(
        "RLVR-T102",
        "the run has no step that could be made again and compared",
        origin=str(out),
        cause=cause,
        fix="check while the run is between two checkpoints, or keep two: train.keep_checkpoints",
    )


@contextmanager
def _scratch(accelerator: Accelerator) -> Iterator[Path]:
    """Make a folder that all processes know, and remove it."""
    made = tempfile.TemporaryDirectory() if accelerator.is_main_process else None
    names = [made.name] if made else []
    [name] = gather_object(names) if accelerator.num_processes > 1 else names
    try:
        yield Path(name)
        meet(accelerator, Place())
    finally:
        if made:
            made.cleanup()


def _metrics(run: Path, step: int) -> Entry | None:
    records = read_log(run, layout.METRICS).records
    return next((record for record in reversed(records) if record["step"] == step), None)


def _updates(run: Path, step: int) -> int:
    return int((_metrics(run, step) or {}).get("updates") or 0)


def _other_metrics(was: Entry | None, now: Entry | None) -> dict[str, tuple[Json, Json]]:
    was, now = was or {}, now or {}
    keys = [key for key in dict.fromkeys([*was, *now]) if key not in TIMES]
    return {key: (was.get(key), now.get(key)) for key in keys if was.get(key) != now.get(key)}


def _other_samples(recorded: Recording, now: Recording) -> list[str]:
    answers = {entry.key: entry.sample for entry in now.samples}
    return [entry.name for entry in recorded.samples if answers.get(entry.key) != entry.sample]


def _other_verdicts(recorded: Recording, now: Recording) -> tuple[int, list[str]]:
    """Return how many verdicts there are, and which differ in more than the time they took."""
    was, new = _verdicts(recorded), _verdicts(now)
    other = [name for name in dict.fromkeys([*was, *new]) if was.get(name) != new.get(name)]
    return sum(map(len, was.values())), other


def _verdicts(recording: Recording) -> dict[str, Sequence[Entry]]:
    found = defaultdict[str, list[Entry]](list)
    for entry in recording.verdicts:
        verdict = entry.verdict.to_json()
        del verdict["latency_s"]
        found[f"{entry.name} by {verdict['verifier']}"].append(verdict)
    return dict(found)
