"""The arithmetic of a run before it starts. Needs no torch and no model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from rlvr_core.api.rollouts import Prompt, Row
from rlvr_core.api.verdicts import Json
from rlvr_core.config.models import Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """What a run will do, in numbers."""

    train_rows: int
    prompts_per_step: int
    group_size: int
    rollouts_per_step: int
    updates_per_step: int
    steps: int
    total_prompts: int
    total_rollouts: int
    total_updates: int
    steps_per_epoch: float
    epochs: float
    evaluations: int
    """Times that each split is evaluated."""
    evaluation_completions: int
    """Completions of one evaluation, all splits together."""
    longest_prompt: int | None
    """Tokens; None when the tokenizer is not at hand."""
    micro_batches_per_update: int | None
    """At most, with every group alive and every completion at its limit."""

    def to_json(self) -> dict[str, Json]:
        """Return the numbers as a JSON object."""
        return asdict(self)


def plan_run(
    stack: Stack,
    splits: Mapping[str, Sequence[Row]],
    prompt_tokens: Callable[[Prompt], int] | None,
    processes: int = 1,
) -> RunPlan:
    """Work out the numbers of a run.

    Args:
        stack: As resolved.
        splits: Rows by split; ``train`` and those that are evaluated.
        prompt_tokens: Length of a prompt as the model sees it; None when unknown.
        processes: That share the work.
    """
    rollout, train, evaluate = stack.rollout, stack.train, stack.evaluate
    rows = splits["train"]
    longest = max(prompt_tokens(row.prompt) for row in rows) if prompt_tokens else None
    updates = train.mini_batches * train.passes
    held_out = [len(splits[split]) for split in evaluate.splits if split in splits]
    between = (train.steps - 1) // evaluate.every if evaluate.every else 0
    return RunPlan(
        train_rows=len(rows),
        prompts_per_step=rollout.prompts_per_step,
        group_size=rollout.group_size,
        rollouts_per_step=rollout.prompts_per_step * rollout.group_size,
        updates_per_step=updates,
        steps=train.steps,
        total_prompts=rollout.prompts_per_step * train.steps,
        total_rollouts=rollout.prompts_per_step * rollout.group_size * train.steps,
        total_updates=updates * train.steps,
        steps_per_epoch=len(rows) / rollout.prompts_per_step,
        epochs=rollout.prompts_per_step * train.steps / len(rows),
        evaluations=2 + between if held_out else 0,
        evaluation_completions=sum(held_out) * evaluate.samples_per_prompt,
        longest_prompt=longest,
        micro_batches_per_update=longest and _micro_batches(stack, longest, processes),
    )


def _micro_batches(stack: Stack, longest: int, processes: int) -> int:
    """Return the most micro-batches an update can take when prompts are shared in each group."""
    completion = stack.rollout.max_completion_tokens
    group = longest + stack.rollout.group_size * completion
    budget = stack.train.micro_batch_tokens
    prompts = math.ceil(stack.rollout.prompts_per_step / processes / stack.train.mini_batches)
    if group <= budget:
        return math.ceil(prompts / (budget // group))
    per_bundle = max(1, (budget - longest) // completion)
    return prompts * math.ceil(stack.rollout.group_size / per_bundle)
