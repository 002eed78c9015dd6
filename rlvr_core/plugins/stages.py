"""The stages of a step and the hook of each: one table for checks, plans and dispatch."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from rlvr_core.api import hookspecs

VERIFY = "rlvr_verify"


class Kind(StrEnum):
    """How the results of one hook become one result."""

    ALL_RESULTS = "all results"
    FIRST_RESULT = "first result"
    CHAIN = "chain"
    ROUTED = "routed"
    AND = "and"
    PRODUCT = "product"
    OBSERVERS = "observers"


@dataclass(frozen=True, slots=True)
class Stage:
    """One hook at its place in the step."""

    number: str
    """As people count them; ``""`` for a stage without a number."""
    title: str
    hook: str
    kind: Kind


STAGES: tuple[Stage, ...] = (
    Stage("0", "audit prompts", "rlvr_audit_prompts", Kind.ALL_RESULTS),
    Stage("1", "choose prompts", "rlvr_select_prompts", Kind.FIRST_RESULT),
    Stage("", "wrap prompt", "rlvr_wrap_prompt", Kind.CHAIN),
    Stage("2", "sample groups", "rlvr_sample_groups", Kind.FIRST_RESULT),
    Stage("3", "verify", VERIFY, Kind.ROUTED),
    Stage("4", "rescue dead groups", "rlvr_rescue_groups", Kind.CHAIN),
    Stage("5", "shape rewards", "rlvr_shape_rewards", Kind.CHAIN),
    Stage("6", "gate rewards", "rlvr_gate_rewards", Kind.CHAIN),
    Stage("7", "keep groups", "rlvr_keep_groups", Kind.AND),
    Stage("8", "estimate advantages", "rlvr_estimate_advantages", Kind.FIRST_RESULT),
    Stage("9", "adjust advantages", "rlvr_adjust_advantages", Kind.CHAIN),
    Stage("10", "weigh tokens", "rlvr_weigh_tokens", Kind.PRODUCT),
    Stage("11", "loss", "rlvr_policy_loss", Kind.FIRST_RESULT),
    Stage("12", "watch: run start", "rlvr_run_start", Kind.OBSERVERS),
    Stage("12", "watch: step end", "rlvr_step_end", Kind.OBSERVERS),
    Stage("12", "watch: evaluation prompts", "rlvr_eval_prompts", Kind.OBSERVERS),
    Stage("12", "watch: evaluation end", "rlvr_eval_end", Kind.OBSERVERS),
    Stage("12", "watch: run end", "rlvr_run_end", Kind.OBSERVERS),
)

HOOK_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    stage.hook: tuple(inspect.signature(getattr(hookspecs, stage.hook)).parameters)
    for stage in STAGES
}
"""Hook -> the arguments an implementation may take."""

FIRST_RESULT_HOOKS = tuple(stage.hook for stage in STAGES if stage.kind is Kind.FIRST_RESULT)
