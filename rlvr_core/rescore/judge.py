"""Judge the stored rollouts of a run again. The run folder is only read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from rlvr_core.api.errors import RunFolderError, StackError, listed
from rlvr_core.api.plugin import Family
from rlvr_core.api.rollouts import FinishReason, Message, Prompt
from rlvr_core.api.verdicts import Json
from rlvr_core.config.load import load_stack
from rlvr_core.config.models import PluginEntry, Stack
from rlvr_core.plugins.index import PluginIndex
from rlvr_core.plugins.members import ground_truth_model
from rlvr_core.plugins.ref import PluginRef
from rlvr_core.plugins.resolve import resolve_plugin
from rlvr_core.records import layout
from rlvr_core.report.read import Record, Run
from rlvr_core.rescore.result import Rescored, Stored
from rlvr_core.verification.engine import VerifyEngine, judges_nothing
from rlvr_core.verification.rows import RawRow

NO_VERDICT = "were never judged in the run"
NO_TEXT = "have no completion on record"
OTHER_MODEL = "have a ground truth of another model"
_COLUMNS = (
    "row_id", "sample_index", "prompt", "ground_truth", "metadata", "completion", "finish_reason",
    "verifier", "version", "status", "score", "failure",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Given:
    """The verifier that judges every rollout whose ground truth it understands."""

    name: str
    """An entry of the run's stack, or an installed verifier."""
    config: Mapping[str, Json]
    """Settings that replace those of the entry, key by key."""


@dataclass(frozen=True, slots=True)
class _Question:
    stored: Stored
    row: RawRow


def rescore(
    run: Run,
    *,
    steps: Sequence[int],
    given: Given | None = None,
    workers: int | None = None,
    most_flips: int = 20,
    on_step: Callable[[int], None] = lambda step: None,
) -> Rescored:
    """Judge the rollouts of some steps again, each by its own verifier or all by a given one.

    Args:
        run: Its stack says with which settings and deadlines.
        steps: Of those on disk.
        given: Another verifier, or other settings.
        workers: Worker processes for `cpu` verifiers. Default: as the stack says.
        most_flips: How many changed verdicts are kept to be shown.
        on_step: Told of each step that is done.

    Raises:
        RunFolderError: RLVR-T104, a table is damaged or the stack's copy is missing.
        StackError: A verifier is not installed, or the settings are not allowed.
        PluginError: A verifier cannot be used.
    """
    stack = _stack_of(run)
    entries = _entries(run, stack, steps, given)
    index = PluginIndex.scan()
    refs = {
        name: resolve_plugin(Family.VERIFIERS, entry.plugin, entry.config, name, index=index)
        for name, entry in entries.items()
    }
    changes = {"max_error_rate": 1.0, "workers": workers or stack.verification.workers}
    settings = stack.verification.model_copy(update=changes)
    result = Rescored(run=run.name, steps=list(steps), most_flips=most_flips)
    pairs = [(refs[name], entry) for name, entry in entries.items()]
    with VerifyEngine(pairs, settings, seed=stack.seed) as engine:
        unable = [name for name in refs if name not in engine.verifiers]
        if unable:
            raise judges_nothing(unable[0], refs[unable[0]].blame)
        for step in steps:
            asked: dict[str, list[_Question]] = {}
            for question in _questions(run, step, refs, given, result):
                name = given.name if given else question.stored.verifier
                asked.setdefault(name, []).append(question)
                engine.submit(name, question.row)
            for name, questions in asked.items():
                verdicts = engine.judge(name, [one.row for one in questions])
                for question, verdict in zip(questions, verdicts, strict=True):
                    result.add(question.stored, verdict)
            on_step(step)
    return result


def _stack_of(run: Run) -> Stack:
    file = run.path / layout.stack_file(run.manifest)
    if not file.is_file():
        raise RunFolderError(
            "RLVR-T104",
            f"{run.path} holds no {file.name}, which says how its verifiers were set",
            origin=str(file),
            fix="restore the file from a copy of the run folder",
        )
    return load_stack(file).stack


def _entries(
    run: Run, stack: Stack, steps: Sequence[int], given: Given | None
) -> dict[str, PluginEntry]:
    """Return the entries of the verifiers that are to judge, by instance name."""
    own = {entry.name: entry for entry in stack.verifiers}
    if given is not None:
        settings = {"plugin": given.name, "name": given.name, "config": {}}
        entry = own.get(given.name) or PluginEntry.model_validate(settings)
        config = {**entry.config, **given.config}
        return {given.name: entry.model_copy(update={"config": config})}
    used = {
        record["verifier"]
        for step in steps
        for record in run.rollouts(step, ["verifier"])
        if record["verifier"] is not None
    }
    if strange := used - own.keys():
        raise StackError(
            "RLVR-V103",
            f"the run was judged by {listed(strange)}, which its stack does not name any more",
            origin=str(run.path),
            fix="name the verifier that shall judge with --verifier",
        )
    return {name: own[name] for name in sorted(used)}


def _questions(
    run: Run, step: int, refs: Mapping[str, PluginRef], given: Given | None, result: Rescored
) -> Iterator[_Question]:
    for record in run.rollouts(step, _COLUMNS):
        name = given.name if given else record["verifier"]
        if record["status"] is None:
            result.left_out[NO_VERDICT] += 1
        elif record["completion"] is None:
            result.left_out[NO_TEXT] += 1
        elif record["verifier"] != name and not _understands(refs[name], record):
            result.left_out[OTHER_MODEL] += 1
        else:
            yield _question(step, record)


def _understands(ref: PluginRef, record: Record) -> bool:
    try:
        ground_truth_model(ref).model_validate(json.loads(record["ground_truth"]))
    except ValidationError:
        return False
    return True


def _question(step: int, record: Record) -> _Question:
    stored = Stored(
        step=step,
        row_id=record["row_id"],
        sample_index=record["sample_index"],
        completion=record["completion"],
        verifier=record["verifier"],
        version=record["version"],
        status=record["status"],
        score=record["score"],
        failure=record["failure"],
    )
    row = RawRow(
        # As it was called in the run: a verifier that looks at the id then sees the same.
        id=f"step {step}/{record['row_id']}/{record['sample_index']}",
        prompt=_prompt(json.loads(record["prompt"])),
        completion=record["completion"],
        ground_truth=json.loads(record["ground_truth"]),
        metadata=json.loads(record["metadata"] or "{}"),
        finish_reason=FinishReason(record["finish_reason"]),
    )
    return _Question(stored, row)


def _prompt(prompt: Json) -> Prompt:
    if isinstance(prompt, str):
        return prompt
    return tuple(Message(turn["role"], turn["content"]) for turn in prompt)
