"""Checks of whole runs: made again, resumed, or evaluated on the way, they end in the same bits."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from safetensors.torch import load_file

from rlvr_core.api.errors import RlvrError, shortened
from rlvr_core.api.verdicts import Json
from rlvr_core.plugins.failures import hook_failure
from rlvr_core.plugins.resolve import LoadedPlugin
from rlvr_core.records import layout
from rlvr_core.records.logs import read_log
from rlvr_core.selfcheck.bench import Bench
from rlvr_core.selfcheck.result import Found, failed, not_applicable, ok
from rlvr_core.selfcheck.tiny_stack import RESUMED_AFTER, STEPS, short_rows
from rlvr_core.train import checkpoint
from rlvr_core.train.plugin_states import give_back, saved_states
from rlvr_core.train.prepare import Prepared
from rlvr_core.train.run import train

EVALUATED_ROWS = 3
"""Of each split."""
SHOWN_CHARACTERS = 200
NOTHING_LEARNT = "no step of a run on made-up verdicts changed the weights"
CHANGING = ("set-learning-rate", "set-kl")
"""Actions of monitors that change training."""
STAGES: Mapping[str, Sequence[str]] = {
    "the rows that were chosen": ("row_id", "sample_index"),
    "the prompts": ("sampled_under", "trained_under"),
    "the completions": ("segments",),
    "the verdicts": ("status", "score"),
    "the rewards": ("reward",),
    "the groups that were kept": ("kept",),
    "the advantages": ("advantages",),
    "the weights of rollouts and groups": ("loss_weight", "group_weight"),
}
"""What a step decides, in this order -> its columns in the table of rollouts."""


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run on the tiny model, and the plugins that made it."""

    folder: Path
    plugins: Sequence[LoadedPlugin]
    learnt_in: frozenset[int]
    """The steps that changed the weights."""
    evaluations: int


def repeat(bench: Bench) -> Found:
    """Make a run twice, with the process's own random generators in other states."""
    first = _plain_run(bench)
    if not first.learnt_in:
        return not_applicable(NOTHING_LEARNT)
    second = run_once(bench, "second", generators=2)
    what = f"{STEPS} steps, made twice with random, numpy and torch seeded otherwise"
    return _compared(what, first, second)


def resume(bench: Bench) -> Found:
    """Compare an unbroken run with one that was resumed on the way."""
    unbroken = _plain_run(bench)
    if not any(step > RESUMED_AFTER for step in unbroken.learnt_in):
        return not_applicable(f"{NOTHING_LEARNT} after step {RESUMED_AFTER}")
    if problem := _state_that_is_not_taken_back(unbroken.plugins):
        return problem
    broken = bench.scratch / "resumed"
    shutil.copytree(unbroken.folder, broken)
    shutil.rmtree(checkpoint.newest(broken))
    resumed = run_once(bench, "resumed", is_resumed=True)
    what = f"{STEPS} steps, unbroken and resumed after step {RESUMED_AFTER}"
    return _compared(what, unbroken, resumed)


def evaluation(bench: Bench) -> Found:
    """Compare a run without evaluations with one that is evaluated after every step."""
    plain = _plain_run(bench)
    if not plain.learnt_in:
        return not_applicable(NOTHING_LEARNT)
    evaluated = run_once(bench, "evaluated", is_evaluated=True)
    if not evaluated.evaluations:
        return not_applicable("nothing was evaluated")
    acting = _acting(evaluated) - _acting(plain)
    if acting:
        names = ", ".join(sorted(acting))
        return not_applicable(f"evaluations are meant to change the run: {names} acts on them")
    what = f"{STEPS} steps, with {evaluated.evaluations} evaluations and without"
    return _compared(what, plain, evaluated)


def _plain_run(bench: Bench) -> FinishedRun:
    """Return the run that the others are compared with, or raise what ended it; it is made once."""
    if "plain run" not in bench.kept:
        try:
            bench.kept["plain run"] = run_once(bench, "plain")
        except RlvrError as error:
            bench.kept["plain run"] = error
    run: FinishedRun | RlvrError = bench.kept["plain run"]
    if isinstance(run, RlvrError):
        raise run
    return run


def run_once(
    bench: Bench,
    name: str,
    *,
    generators: int = 1,
    is_evaluated: bool = False,
    is_resumed: bool = False,
) -> FinishedRun:
    """Train the tiny stack and return the run.

    Args:
        bench: Of the stack.
        name: Of the run's folder.
        generators: Seed of the process's own generators, which are put back afterwards.
        is_evaluated: After every step; else never.
        is_resumed: Continue the run that stands in the folder.

    Raises:
        PluginError: RLVR-P106, a plugin failed; also a monitor, without which a run goes on.
    """
    tiny = bench.tiny()
    if is_evaluated:
        tiny = _with_evaluation(tiny, bench.prepared)
    folder = bench.scratch / name
    with process_generators(generators):
        train(tiny, folder, resume=is_resumed)
    _require_no_monitor_fault(folder, tiny.resolved.plugins)
    steps = read_log(folder, layout.METRICS).records
    return FinishedRun(
        folder,
        tiny.resolved.plugins,
        frozenset(record["step"] for record in steps if record["updates"]),
        len(read_log(folder, layout.EVALS).records),
    )


def _require_no_monitor_fault(folder: Path, plugins: Sequence[LoadedPlugin]) -> None:
    for event in read_log(folder, layout.EVENTS).records:
        if event["kind"] == "monitor-fault":
            [at_fault] = [loaded for loaded in plugins if loaded.name == event["monitor"]]
            what = f"failed in step {event['step']}, and the run went on without it"
            raise hook_failure(at_fault, what, event["reason"])


@contextmanager
def process_generators(seed: int) -> Iterator[None]:
    """Seed the generators that the process shares, and put them back."""
    before = random.getstate(), np.random.get_state(), torch.get_rng_state()
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        torch.set_rng_state(before[2])


def _with_evaluation(tiny: Prepared, prepared: Prepared) -> Prepared:
    """Return the stack with evaluations of its splits, or of training rows if it has none."""
    stack = tiny.resolved.stack
    measured = {
        split: short_rows(prepared.splits[split], EVALUATED_ROWS) for split in prepared.measured
    }
    rows = tiny.splits["train"][:EVALUATED_ROWS]
    splits = measured or {"dev": [replace(row, id=f"dev/{row.id}") for row in rows]}
    evaluate = stack.evaluate.model_copy(update={"splits": list(splits), "every": 1})
    data = stack.data.model_copy(update={"dev": stack.data.dev or stack.data.train})
    stack = stack.model_copy(update={"evaluate": evaluate, "data": data})
    return replace(
        tiny,
        resolved=replace(tiny.resolved, stack=stack),
        splits={"train": tiny.splits["train"], **splits},
    )


def _acting(run: FinishedRun) -> set[str]:
    """Return the monitors whose actions changed the run."""
    events = read_log(run.folder, layout.EVENTS).records
    return {event["monitor"] for event in events if event["kind"] in CHANGING}


def _state_that_is_not_taken_back(plugins: Sequence[LoadedPlugin]) -> Found | None:
    """Give each plugin's state to a new one of its kind, which must say the same."""
    states = saved_states(plugins)
    for loaded in plugins:
        plugin = loaded.ref.construct_with(type(loaded.plugin), loaded.plugin.config)
        fresh = replace(loaded, plugin=plugin)
        before = states[loaded.name]
        give_back(fresh, before)
        after = saved_states([fresh])[loaded.name]
        if repr(after) != repr(before):
            said = f"load_state({_cut(before)}), and then state() returns {_cut(after)}"
            return failed(f"{loaded.name}: {said}", culprit=loaded.name)
    return None


def _compared(what: str, first: FinishedRun, second: FinishedRun) -> Found:
    apart = _weights_apart(first, second)
    where = next(_first_differences(first, second), None)
    if where is None and not apart:
        return ok(f"{what}: the same bits", 0.0, 0.0)
    where = where or "the weights, although all that led to them is equal"
    return failed(f"{what}: what differs first is {where}", apart, 0.0)


def _first_differences(first: FinishedRun, second: FinishedRun) -> Iterator[str]:
    """Yield what differs in the order in which a run decides it."""
    for step in range(1, STEPS + 1):
        tables = [
            pq.read_table(run.folder / layout.rollouts_file(step)).to_pylist()
            for run in (first, second)
        ]
        for title, columns in STAGES.items():
            # As text: NaN equals NaN, and every bit of a number shows.
            one, other = (
                repr([[line[column] for column in columns] for line in table]) for table in tables
            )
            if one != other:
                yield f"{title}, in step {step}"
        records = [_record(run, step) for run in (first, second)]
        if records[0]["learning_rate"] != records[1]["learning_rate"]:
            yield f"the learning rate, in step {step}"


def _record(run: FinishedRun, step: int) -> dict[str, Json]:
    records = read_log(run.folder, layout.METRICS).records
    return next(record for record in records if record["step"] == step)


def _weights_apart(first: FinishedRun, second: FinishedRun) -> float:
    """Return the largest difference of weights after the last step; 0: equal bits."""
    apart = 0.0
    one, other = (
        load_file(checkpoint.newest(run.folder) / "model.safetensors") for run in (first, second)
    )
    for name, tensor in one.items():
        if not torch.equal(tensor, other[name]):
            # A difference of NaN is none that a maximum would keep.
            apart = max(apart, float((tensor - other[name]).abs().nan_to_num(torch.inf).max()))
    return apart


def _cut(state: Json) -> str:
    return shortened(repr(state), SHOWN_CHARACTERS)
