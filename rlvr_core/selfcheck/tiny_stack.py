"""A user's stack made small: its plugins and rows, a tiny model, a few short rollouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from transformers.utils import logging as transformers_logging

from rlvr_core import __version__
from rlvr_core.api.plugin import Family, Verifier
from rlvr_core.api.rollouts import Message, Prompt, Row
from rlvr_core.config.models import PluginEntry, Stack
from rlvr_core.plugins.ref import PluginRef
from rlvr_core.plugins.resolve import LoadedPlugin, ResolvedStack
from rlvr_core.selfcheck.probe import Probe, Scale
from rlvr_core.testing.tiny_model import make_tiny_model
from rlvr_core.train.build import load_model
from rlvr_core.train.prepare import Prepared

ROWS = 12
PROMPT_CHARACTERS = 600
"""Longer prompts lose their beginning: a byte is a token to the tiny model."""
POSITIONS = 16_384
"""Far more than prompts take, for what samplers put around them."""
STEPS = 3
RESUMED_AFTER = 2
"""Steps before the checkpoint that a run is resumed from."""
PROMPTS_PER_STEP = 3
MAX_GROUP_SIZE = 4
MAX_COMPLETION_TOKENS = 10
SHARPNESS = 6.0


def make_sharp_model(folder: Path) -> Path:
    """Write the tiny model to `folder`, with token probabilities as unequal as a trained model's.

    As it is made, every token is about equally likely: a wrong temperature would hardly show, and
    thresholds on entropies would fall between numbers that only rounding tells apart.
    """
    transformers_logging.disable_progress_bar()
    make_tiny_model(folder, positions=POSITIONS)
    model = load_model(folder).model
    embeddings: Any = model.get_input_embeddings()  # the output's too: they are tied
    with torch.no_grad():
        embeddings.weight.mul_(SHARPNESS)
    model.save_pretrained(folder)
    return folder


def tiny_stack(prepared: Prepared, model: Path) -> Prepared:
    """Return a stack like the user's that runs in seconds, with newly constructed plugins.

    Args:
        prepared: The user's stack and data.
        model: Folder of the tiny model.
    """
    stack = _small(prepared.resolved.stack, model)
    return replace(
        prepared,
        resolved=replace(_fresh(prepared.resolved), stack=stack),
        splits={"train": short_rows(prepared.splits["train"], ROWS)},
    )


def short_rows(rows: Sequence[Row], count: int) -> list[Row]:
    """Return `chosen_rows` with prompts that the tiny model reads quickly."""
    return [replace(row, prompt=cut_prompt(row.prompt)) for row in chosen_rows(rows, count)]


def chosen_rows(rows: Sequence[Row], count: int) -> list[Row]:
    """Return the first rows of each verifier, taken in turns, at most `count` of them."""
    by_verifier: dict[str, list[Row]] = {}
    for row in rows:
        by_verifier.setdefault(row.verifier, []).append(row)
    in_turns = [
        queue[place]
        for place in range(count)
        for queue in by_verifier.values()
        if place < len(queue)
    ]
    return in_turns[:count]


def _small(stack: Stack, model: Path) -> Stack:
    rollout = {
        "engine": "transformers",
        "group_size": min(stack.rollout.group_size, MAX_GROUP_SIZE),
        "prompts_per_step": PROMPTS_PER_STEP,
        "max_completion_tokens": min(stack.rollout.max_completion_tokens, MAX_COMPLETION_TOKENS),
        "max_prompt_tokens": None,
    }
    train = {
        "steps": STEPS,
        # Large, so that what differs in one step is seen in the samples of the next.
        "learning_rate": 1e-3,
        "warmup_steps": 0,
        "precision": "fp32",
        "layout": "auto",
        "checkpoint_every": RESUMED_AFTER,
        "keep_checkpoints": STEPS,
    }
    # A verifier that breaks is reported by a check of its own, and must not end the others.
    verification = {"workers": 1, "max_error_rate": 1.0}
    return stack.model_copy(
        update={
            "model": str(model),
            "rollout": stack.rollout.model_copy(update=rollout),
            "train": stack.train.model_copy(update=train),
            "evaluate": stack.evaluate.model_copy(update={"splits": []}),
            "verification": stack.verification.model_copy(update=verification),
        }
    )


def _fresh(resolved: ResolvedStack) -> ResolvedStack:
    """Return the stack with newly constructed plugins, and the probe around them all."""
    plugins = [_constructed(loaded) for loaded in resolved.plugins]
    control = _constructed(resolved.control) if resolved.control else None
    scales = {
        loaded.name: Scale.of(loaded.plugin)
        for loaded in plugins
        if isinstance(loaded.plugin, Verifier)
    }
    # The last of the list is the innermost around a call: the stack's wrappers see its verdicts.
    return replace(resolved, plugins=(*plugins, _probe(scales)), control=control)


def _constructed(loaded: LoadedPlugin) -> LoadedPlugin:
    plugin = loaded.ref.construct_with(type(loaded.plugin), loaded.plugin.config)
    return replace(loaded, plugin=plugin)


def _probe(scales: dict[str, Scale]) -> LoadedPlugin:
    name = "rlvr-selfcheck"
    ref = PluginRef(
        family=Family.MONITORS,
        plugin=name,
        name=name,
        value=f"{Probe.__module__}:{Probe.__qualname__}",
        distribution="rlvr-core",
        version=__version__,
        config={},
    )
    entry = PluginEntry.model_validate(name)
    return LoadedPlugin(ref, entry, Probe(name=name, scales=scales), "rlvr selfcheck")


def cut_prompt(prompt: Prompt) -> Prompt:
    """Return the end of a prompt, as much of it as the tiny model is given."""
    if isinstance(prompt, str):
        return prompt[-PROMPT_CHARACTERS:]
    left = PROMPT_CHARACTERS
    kept: list[Message] = []
    for message in reversed(prompt):
        if left > 0:
            kept.append(replace(message, content=message.content[-left:]))
            left -= len(message.content)
    return tuple(reversed(kept))
