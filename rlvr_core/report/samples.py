"""Groups of rollouts to look at: all completions of one prompt side by side."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from rlvr_core.api.verdicts import Json
from rlvr_core.report.read import Record, Run

GROUPS_PER_STEP = 2
ROLLOUTS_PER_GROUP = 16
COMPLETION_LIMIT = 2000
"""Characters of a completion or a prompt turn that are shown."""

_COPIED = (
    "sample_index",
    "length",
    "finish_reason",
    "status",
    "score",
    "failure",
    "stage",
    "reward",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRollout:
    """One completion with its verdict."""

    sample_index: int
    completion: str
    cut_characters: int
    """Characters of the completion that are not shown."""
    length: int
    finish_reason: str
    status: str | None
    score: float | None
    failure: str | None
    stage: str | None
    diagnostics: str
    reward: float | None
    advantage: float | None
    """Mean over its tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleGroup:
    """One prompt and its completions."""

    arm: str
    step: int
    row_id: str
    prompt: list[tuple[str, str]]
    """(role, text) for each turn; the role of a plain prompt is empty."""
    ground_truth: str
    verifier: str | None
    kept: bool
    dead: bool
    rollouts: list[SampleRollout]
    """The first `ROLLOUTS_PER_GROUP` of them."""
    cut_rollouts: int
    """Rollouts of the group that are not shown."""


def sample_groups(run: Run, arm: str) -> list[SampleGroup]:
    """Return some groups of the first and of the last step on disk.

    Groups with both passed and failed completions come first, then file order, so the choice is the
    same each time.
    """
    steps = list(dict.fromkeys([*run.rollout_steps[:1], *run.rollout_steps[-1:]]))
    chosen: list[SampleGroup] = []
    for step in steps:
        groups: defaultdict[int, list[Record]] = defaultdict(list)
        for row in run.rollouts(step):
            groups[row["group"]].append(row)
        ordered = sorted(groups, key=lambda index: (not _is_mixed(groups[index]), index))
        chosen += [_group(arm, step, groups[index]) for index in ordered[:GROUPS_PER_STEP]]
    return chosen


def _is_mixed(rows: Sequence[Record]) -> bool:
    return {"passed", "failed"} <= {row["status"] for row in rows}


def _group(arm: str, step: int, rows: Sequence[Record]) -> SampleGroup:
    first = rows[0]
    return SampleGroup(
        arm=arm,
        step=step,
        row_id=first["row_id"],
        prompt=_turns(json.loads(first["prompt"])),
        ground_truth=first["ground_truth"],
        verifier=first["verifier"],
        kept=first["kept"],
        dead=first["dead"],
        rollouts=[_rollout(row) for row in rows[:ROLLOUTS_PER_GROUP]],
        cut_rollouts=max(0, len(rows) - ROLLOUTS_PER_GROUP),
    )


def _rollout(row: Record) -> SampleRollout:
    advantages = row["advantages"] or []
    text = row["completion"]
    return SampleRollout(
        **{name: row[name] for name in _COPIED},
        completion=text[:COMPLETION_LIMIT],
        cut_characters=max(0, len(text) - COMPLETION_LIMIT),
        diagnostics=row["diagnostics"] or "{}",
        advantage=sum(advantages) / len(advantages) if advantages else None,
    )


def _turns(prompt: Json) -> list[tuple[str, str]]:
    if isinstance(prompt, str):
        return [("", prompt[:COMPLETION_LIMIT])]
    return [(turn["role"], turn["content"][:COMPLETION_LIMIT]) for turn in prompt]
