"""Experiments on samplers."""

from __future__ import annotations

from rlvr_core.api.rollouts import Group
from rlvr_core.plugins import border
from rlvr_core.plugins.hooks import answers
from rlvr_core.testing.apart.bench import Bench, BrokenError, NotApplicableError
from rlvr_core.testing.apart.calling import call
from rlvr_core.testing.apart.made_up import (
    MadeUpSession,
    made_up_groups,
    made_up_rows,
    snapshot,
)

_ROWS, _COUNT = 12, 5


def chosen_rows(bench: Bench) -> str:
    """S10."""
    first, second = (_chosen(bench) for _ in range(2))
    if first != second:
        raise BrokenError(f"the same call chooses {first}, then {second}")
    return f"{_COUNT} rows of {_ROWS}, the same ones in another process"


def _chosen(bench: Bench) -> list[str]:
    _needs(bench, "rlvr_select_prompts")
    rows = made_up_rows(_ROWS)
    returned = call(
        bench.new(), "rlvr_select_prompts", rows=rows, count=_COUNT, session=MadeUpSession()
    )
    found = [row.id for row in border.rows(returned, _COUNT)]
    strange = set(found) - {row.id for row in rows}
    if strange:
        raise BrokenError(f"it returns a row that is not of the split: {sorted(strange)[0]!r}")
    return found


def wrapped_prompt(bench: Bench) -> str:
    """S11."""
    _needs(bench, "rlvr_wrap_prompt")
    for row in made_up_rows(3):
        arguments = {"prompt": row.prompt, "row": row, "session": MadeUpSession()}
        border.prompt(call(bench.new(), "rlvr_wrap_prompt", **arguments))
    return "prompts are text or messages"


def sampled_groups(bench: Bench) -> str:
    """S12."""
    _needs(bench, "rlvr_sample_groups")
    rows = made_up_rows(4)
    returned = call(bench.new(), "rlvr_sample_groups", session=MadeUpSession(), rows=rows)
    groups = border.groups(returned, rows)
    _unique_indices(groups)
    sizes = sorted({len(group.rollouts) for group in groups})
    return f"one group a row, of {' or '.join(map(str, sizes))} rollouts"


def rescued_groups(bench: Bench) -> str:
    """S13."""
    _needs(bench, "rlvr_rescue_groups")
    groups = made_up_groups()
    rows = [group.row for group in groups]
    session = MadeUpSession()
    session.sample(rows, 4)  # as the step did: indices go on from there
    found = border.groups(
        call(bench.new(), "rlvr_rescue_groups", session=session, groups=groups), rows
    )
    _unique_indices(found)
    return f"{len(found)} groups, in their order"


def kept_groups(bench: Bench) -> str:
    """S14."""
    _needs(bench, "rlvr_keep_groups")
    groups = made_up_groups()
    before = snapshot(groups)
    returned = call(bench.new(), "rlvr_keep_groups", groups=groups, session=MadeUpSession())
    keeps = border.keeps(returned, len(groups))
    if snapshot(groups) != before:
        raise BrokenError("it changes the groups that it is asked about")
    return f"keeps {sum(keeps)} of {len(keeps)} groups, and changes none"


def _unique_indices(groups: list[Group]) -> None:
    for group in groups:
        indices = [rollout.sample_index for rollout in group.rollouts]
        if len(set(indices)) != len(indices):
            raise BrokenError(f"two rollouts of row {group.row.id!r} have one sample index")


def _needs(bench: Bench, hook: str) -> None:
    if not answers(bench.cls, hook):
        raise NotApplicableError(f"it does not implement {hook}")
