"""The processes of a run: as many as the launcher (torchrun, mpirun, srun) has started."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import InitProcessGroupKwargs, parse_flag_from_env
from torch.accelerator import current_accelerator

from rlvr_core.api.errors import RunEndedError, StackError, exception_text, listed
from rlvr_core.config.models import Stack
from rlvr_core.rollout.precision import computes_bf16
from rlvr_core.train.noticeboard import Noticeboard
from rlvr_core.train.place import Place
from rlvr_core.train.watch import Watch

SHARDING = {
    "ACCELERATE_USE_FSDP": "FSDP",
    "ACCELERATE_USE_DEEPSPEED": "DeepSpeed",
    "ACCELERATE_USE_MEGATRON_LM": "Megatron-LM",
}
"""What Accelerate's launcher sets -> what it stands for."""


def make_accelerator(stack: Stack) -> Accelerator:
    """Return the accelerator of this process, once all processes have found each other.

    Raises:
        RunEndedError: RLVR-T109, they have not.
        StackError: RLVR-S106, the launcher asks for something that would go unheeded.
    """
    unheeded = [name for key, name in SHARDING.items() if parse_flag_from_env(key)]
    if unheeded:
        raise StackError(
            "RLVR-S106",
            f"the launcher was told to use {listed(unheeded)}, which rlvr does not",
            cause="each process holds the whole model and a part of the prompts",
            fix="launch without it, for example with: torchrun --nproc_per_node=2 …",
        )
    # Backends count a stopped terminal or a sleeping machine as waiting, and NCCL ends a process
    # without a word. `Watch` does neither and comes first; this is for when it cannot.
    timeout = timedelta(seconds=2 * stack.train.process_timeout_s + 60)
    try:
        return Accelerator(
            mixed_precision=_mixed_precision(stack),
            kwargs_handlers=[InitProcessGroupKwargs(timeout=timeout)],
        )
    except (RuntimeError, OSError) as exc:
        raise RunEndedError(
            "RLVR-T109",
            "the processes of the run did not find each other",
            cause=exception_text(exc),
            fix="look at the output of the other processes, and at what the launcher was told "
            "about addresses and ports",
        ) from exc


def _mixed_precision(stack: Stack) -> str:
    """Return the precision of matrix products, as Accelerate names it."""
    asked = stack.train.precision
    if asked == "auto":
        asked = "bf16" if computes_bf16(_device()) else "fp32"
    return "bf16" if asked == "bf16" else "no"


def _device() -> torch.device:
    """Return the device that Accelerate will take."""
    found = None if parse_flag_from_env("ACCELERATE_USE_CPU") else current_accelerator(True)
    return found or torch.device("cpu")


def meet(accelerator: Accelerator, place: Place) -> None:
    """Wait until all processes have come here."""
    with place.meeting():
        accelerator.wait_for_everyone()


def open_watch(run: Path, place: Place, accelerator: Accelerator, timeout_s: float) -> Watch:
    """Return the watch over this process's part of a run. All processes call this together."""
    board = Noticeboard.open(run, accelerator, place) if accelerator.num_processes > 1 else None
    return Watch(run, place, board, timeout_s)
