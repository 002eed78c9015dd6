"""Building the parts of a run from a resolved stack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from accelerate import Accelerator
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging

from rlvr_core.api.errors import EnvironmentFault, StackError, exception_text, listed
from rlvr_core.api.plugin import Verifier
from rlvr_core.api.rollouts import Row
from rlvr_core.api.session import Aggregation, Need
from rlvr_core.config.models import Stack
from rlvr_core.plugins.dispatch import Dispatcher
from rlvr_core.plugins.resolve import ResolvedStack
from rlvr_core.rollout.tokens import PromptTokenizer, stop_ids
from rlvr_core.train.engines import open_engine
from rlvr_core.train.policy import Layout, Policy, probe_layout
from rlvr_core.train.replay import ReplayingVerifiers, Tape
from rlvr_core.train.runtime import Controls, Runtime
from rlvr_core.verification.engine import VerifyEngine
from rlvr_core.verification.judge import Judge, raw_row
from rlvr_core.verification.machine import local_processes


@dataclass(frozen=True, slots=True, eq=False)
class LoadedModel:
    """A causal language model with its tokenizer, in float32 on the CPU."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase

    def longest(self) -> int | None:
        """Return how many tokens the model has positions for, when its config says so."""
        found = getattr(self.model.config, "max_position_embeddings", None)
        return int(found) if found else None


def load_model(source: Path | str) -> LoadedModel:
    """Load a model folder or hub id.

    Raises:
        EnvironmentFault: RLVR-E102.
    """
    # Its bars would tear the live line apart.
    transformers_logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(source)
        model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
    except (OSError, ValueError, RuntimeError, ImportError) as exc:
        raise EnvironmentFault(
            "RLVR-E102",
            f"the model {str(source)!r} could not be loaded",
            cause=exception_text(exc),
            fix="give a folder that save_pretrained wrote, an id that can be fetched, or smollm2",
        ) from exc
    return LoadedModel(model, tokenizer)


@contextmanager
def open_runtime(
    resolved: ResolvedStack,
    loaded: LoadedModel,
    train_rows: Sequence[Row],
    accelerator: Accelerator,
    reference_source: Path | str,
    verify_engine: VerifyEngine | None = None,
) -> Iterator[Runtime]:
    """Build everything a step needs; verifier workers live until the block ends.

    Args:
        resolved: The stack with its plugins.
        loaded: The policy to train, on a resume that of the checkpoint.
        train_rows: The whole training split.
        accelerator: Of this process.
        reference_source: The model that the run began with.
        verify_engine: Verifier workers of this stack that live longer than the block, so that
            several runtimes can share them.

    Raises:
        StackError: RLVR-S104, the stack asks for a layout that the model can't compute.
    """
    stack = resolved.stack
    verifiers = [plugin for plugin in resolved.plugins if isinstance(plugin.plugin, Verifier)]
    engine = verify_engine or VerifyEngine(
        [(plugin.ref, plugin.entry) for plugin in verifiers],
        stack.verification,
        local_processes=local_processes(),
        seed=stack.seed,
    )
    tape = Tape()
    replaying = ReplayingVerifiers(engine, tape)
    dispatcher = Dispatcher(
        resolved.plugins,
        lambda name, batch: replaying.judge(name, [raw_row(row) for row in batch]),
        resolved.control,
    )
    if Need.MINI_BATCH_STATS in dispatcher.needs and accelerator.num_processes > 1:
        names = [p.name for p in resolved.plugins if Need.MINI_BATCH_STATS in p.plugin.needs]
        raise StackError(
            "RLVR-S104",
            f"{listed(names)} must see whole mini-batches, which processes would share",
            fix="train in one process, or take it out of the stack",
        )
    # Workers start before the model moves to a device: they inherit nothing of it.
    with nullcontext() if verify_engine else engine, ExitStack() as opened:
        model = loaded.model.to(accelerator.device)
        # Dropout would make the ratio of the first update differ from 1, and two runs differ.
        model.eval()
        policy = Policy(
            model,
            temperature=stack.rollout.temperature,
            layout=_layout(stack, loaded),
            autocast=accelerator.autocast,
        )
        yield Runtime(
            stack=stack,
            accelerator=accelerator,
            dispatcher=dispatcher,
            judge=Judge(replaying, dispatcher),
            engine=opened.enter_context(
                open_engine(stack, model, stop_ids(model, loaded.tokenizer), accelerator)
            ),
            tokenizer=PromptTokenizer(loaded.tokenizer, stack.rollout.prompt_format),
            policy=policy,
            reference=_reference(reference_source, policy, stack, accelerator, dispatcher),
            optimizer=_optimizer(model, stack),
            train_rows=train_rows,
            reward_weights={plugin.ref.name: plugin.entry.weight for plugin in verifiers},
            aggregation=_aggregation(dispatcher),
            loss_acts_without_advantage=bool(dispatcher.answering("rlvr_policy_loss").plugin.needs),
            controls=Controls(learning_rate=stack.train.learning_rate),
            tape=tape,
        )


def _layout(stack: Stack, loaded: LoadedModel) -> Layout:
    longest = loaded.longest() or 0
    try:
        return probe_layout(loaded.model, stack.train.layout, longest)
    except ValueError as exc:
        raise StackError("RLVR-S104", str(exc), fix="set train.layout: auto") from exc


def _aggregation(dispatcher: Dispatcher) -> Aggregation:
    """Return the loss plugin's aggregation, else the estimator's, else the token mean."""
    for hook in ("rlvr_policy_loss", "rlvr_estimate_advantages"):
        found = getattr(dispatcher.answering(hook).plugin, "aggregation", None)
        if found is not None:
            return Aggregation(found)
    return Aggregation.TOKEN_MEAN


def _optimizer(model: PreTrainedModel, stack: Stack) -> torch.optim.Optimizer:
    return torch.optim.AdamW(
        [parameter for parameter in model.parameters() if parameter.requires_grad],
        lr=stack.train.learning_rate,
        weight_decay=stack.train.weight_decay,
        fused=True,
    )


def _reference(
    source: Path | str,
    policy: Policy,
    stack: Stack,
    accelerator: Accelerator,
    dispatcher: Dispatcher,
) -> Policy | None:
    """Load the frozen reference, from the model the run began with, if a plugin needs it."""
    if Need.REFERENCE_LOGP not in dispatcher.needs:
        return None
    model = load_model(source).model.to(accelerator.device)
    model.requires_grad_(requires_grad=False)
    model.eval()
    return Policy(
        model,
        temperature=stack.rollout.temperature,
        layout=policy.layout,
        autocast=accelerator.autocast,
    )
