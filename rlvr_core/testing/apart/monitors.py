"""Experiments on monitors, and on what every plugin with a state promises."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from rlvr_core.api.rollouts import Row
from rlvr_core.plugins import border
from rlvr_core.plugins.hooks import answers
from rlvr_core.testing.apart import watching
from rlvr_core.testing.apart.bench import Bench, BrokenError, NotApplicableError
from rlvr_core.testing.apart.calling import call
from rlvr_core.testing.apart.made_up import (
    eval_event,
    made_up_groups,
    made_up_run,
    snapshot,
    step_event,
)

STEPS = 3


def actions(bench: Bench) -> str:
    """M10."""
    asked = _watched(bench, bench.new())
    return f"{asked} actions in {STEPS} made-up steps"


def numerics(bench: Bench) -> str:
    """M11."""
    before = watching.global_state()
    groups = made_up_groups()
    content = snapshot(groups)
    _watched(bench, bench.new(), groups)
    if snapshot(groups) != content:
        raise BrokenError("it changes the groups of the step")
    changed = watching.changes(before, watching.global_state())
    if changed:
        raise BrokenError(f"it changes {', '.join(changed)}")
    return "groups and global state are as they were"


def canaries(bench: Bench) -> str:
    """M12."""
    if not answers(bench.cls, "rlvr_eval_prompts"):
        raise NotApplicableError("it adds no prompts")
    found: list[list[str]] = []
    for _ in range(2):
        returned = call(bench.new(), "rlvr_eval_prompts", split="dev", step=1)
        found.append([row.id for row in border.sequence_of(returned, Row)])
    if found[0] != found[1]:
        raise BrokenError("two processes would get other rows")
    return f"{len(found[0])} rows, the same ones in another process"


def state(bench: Bench) -> str:
    """R06, of any family."""
    plugin = bench.new()
    if answers(bench.cls, "rlvr_step_end"):
        _watched(bench, plugin)
    saved = plugin.state()
    try:
        text = json.dumps(saved, allow_nan=False)
    except (TypeError, ValueError) as exc:
        raise BrokenError(f"state() is not JSON: {exc}") from exc
    other = bench.new()
    other.load_state(json.loads(text))
    again = json.dumps(other.state(), allow_nan=False)
    if json.loads(again) != json.loads(text):
        raise BrokenError(f"after load_state, state() is {again[:80]} and was {text[:80]}")
    return f"{len(text)} bytes of JSON, which load_state takes back"


def _watched(bench: Bench, plugin: Any, groups: Any = None) -> int:
    """Let a monitor see a short run, and return how many actions it asked for."""
    run = made_up_run(Path(os.environ["TMPDIR"]))
    groups = made_up_groups() if groups is None else groups
    asked = 0
    if answers(bench.cls, "rlvr_run_start"):
        call(plugin, "rlvr_run_start", run=run)
    for step in range(1, STEPS + 1):
        if answers(bench.cls, "rlvr_step_end"):
            returned = call(plugin, "rlvr_step_end", event=step_event(run, step, groups))
            asked += len(border.actions(returned))
    if answers(bench.cls, "rlvr_eval_end"):
        returned = call(plugin, "rlvr_eval_end", event=eval_event(run, STEPS, groups))
        asked += len(border.actions(returned))
    if answers(bench.cls, "rlvr_run_end"):
        asked += len(border.actions(call(plugin, "rlvr_run_end", run=run, status="finished")))
    return asked
