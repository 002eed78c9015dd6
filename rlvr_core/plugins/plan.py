"""Show a resolved stack: by stage in call order, and as a stack file with nothing left out."""

from __future__ import annotations

from typing import NamedTuple

from rlvr_core.api.plugin import Family
from rlvr_core.api.verdicts import Json
from rlvr_core.config.models import PLUGIN_LISTS
from rlvr_core.config.rules import VERIFIER_KEYS
from rlvr_core.config.yaml_source import render_yaml
from rlvr_core.plugins.hooks import implementations
from rlvr_core.plugins.resolve import LoadedPlugin, ResolvedStack
from rlvr_core.plugins.settings import written_entry
from rlvr_core.plugins.stages import STAGES, Stage


class PlannedPlugin(NamedTuple):
    """One plugin at one stage."""

    name: str
    """Instance name."""
    plugin: str
    blame: str
    """Distribution and version."""
    is_default: bool
    is_wrapper: bool
    """It runs around the others of this stage."""
    members: tuple[str, ...] = ()
    """Names and plugins of the verifiers that it asks."""


class PlannedStage(NamedTuple):
    """One stage and the plugins it calls, in call order."""

    number: str
    title: str
    hook: str
    plugins: tuple[PlannedPlugin, ...]


def plan_by_stage(resolved: ResolvedStack) -> list[PlannedStage]:
    """Return every stage in the order of the step, those without a plugin too."""
    return [
        PlannedStage(stage.number, stage.title, stage.hook, _at(stage, resolved))
        for stage in STAGES
    ]


def resolved_yaml(resolved: ResolvedStack) -> str:
    """Return the stack as YAML, every default written out, that loads back to an equal stack."""
    stack = resolved.stack
    data: dict[str, Json] = {}
    for key, value in stack.model_dump(mode="json").items():
        if key in PLUGIN_LISTS:
            words = VERIFIER_KEYS if key == Family.VERIFIERS.value else ()
            data[key] = [written_entry(entry, words) for entry in getattr(stack, key)]
        elif key == "control":
            data[key] = None if stack.control is None else written_entry(stack.control)
        else:
            data[key] = value
    return render_yaml(data)


def _at(stage: Stage, resolved: ResolvedStack) -> tuple[PlannedPlugin, ...]:
    plugins: list[LoadedPlugin] = list(resolved.plugins)
    if resolved.control is not None:
        if stage.hook == "rlvr_shape_rewards":
            plugins = [one for one in plugins if not one.answers(stage.hook)]
        plugins.append(resolved.control)
    return tuple(
        PlannedPlugin(
            loaded.name,
            loaded.ref.plugin,
            loaded.ref.blame,
            loaded.is_default,
            found.is_wrapper,
            tuple(f"{one.entry.name} ({one.ref.blame})" for one in loaded.ref.members),
        )
        for loaded in plugins
        for found in implementations(type(loaded.plugin))
        if found.hook == stage.hook
    )
