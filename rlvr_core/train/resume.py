"""How a run is continued: from which checkpoint, and with what changed since it last wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from rlvr_core.api.errors import RlvrError, RunFolderError, StackError
from rlvr_core.api.verdicts import Json
from rlvr_core.config.load import load_stack
from rlvr_core.config.models import Stack
from rlvr_core.records import layout
from rlvr_core.train import checkpoint
from rlvr_core.train.run_folder import RunFolder

Changes: TypeAlias = Mapping[str, tuple[Json, Json]]
"""What is no longer as it was, by key path: (before, now)."""

SURROUNDINGS = (
    "system", "machine", "cpu", "python", "torch", "transformers", "vllm", "threads", "devices",
    "processes",
)  # fmt: skip
"""Keys of the manifest's ``hardware`` on which the bits of results depend."""
COMPUTATION = ("device", "attention", "weights", "matrix_products", "prompts_computed_once")
"""The same of its ``computation``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumption:
    """How a run is continued."""

    checkpoint: Path | None
    """None: it begins again."""
    changed: Changes
    """What decides the run's results and was changed with the user's consent."""
    surroundings: Changes
    """Machine, libraries, number of processes."""
    allows_changes: bool
    """The user accepts what is still to be found."""
    is_over: bool
    """The run is finished, and nothing that was changed gives it more to do."""


def nothing_left(steps: int) -> str:
    """Return what is said of a run whose steps are all made."""
    return (
        f"nothing is left to do: {steps} of {steps} steps are made; to go on, raise train.steps "
        "and add --allow-changes"
    )


def plan_resume(
    out: Path, now: Mapping[str, Json], stack: Stack, *, allow_changes: bool
) -> Resumption:
    """Look at the run that stands at `out`; write nothing.

    Args:
        out: The run folder.
        now: The manifest that a new run would get.
        stack: What the run is to be continued with.
        allow_changes: Accept another stack, model, data, plugins or core than the run had.

    Raises:
        RunFolderError: RLVR-T101, something changed; RLVR-T104, not a run folder; RLVR-T108, the
            newest checkpoint is damaged.
        StackError: RLVR-S106, the run is past the last step of the stack.
    """
    before = RunFolder.open_to_continue(out).manifest
    changed = changes(out, before, now, stack)
    _refuse(out, before, changed, allow_changes=allow_changes)
    found = layout.complete_checkpoints(out)
    step = checkpoint.load_progress(found[-1]).step if found else 0
    if found:
        checkpoint.require_undamaged(found[-1])
    if step > stack.train.steps:
        raise StackError(
            "RLVR-S106",
            f"train.steps is {stack.train.steps}, and the run continues after step {step}",
            origin=str(out),
            fix=f"set train.steps to {step} at least, or begin a new run in another folder",
        )
    asks_for_evaluations = any(key.startswith("evaluate.") for key in changed)
    is_made = before.get("status") == "finished" and step == stack.train.steps
    return Resumption(
        checkpoint=found[-1] if found else None,
        changed=changed,
        surroundings=_differences(_surroundings(before), _surroundings(now)),
        allows_changes=allow_changes,
        is_over=is_made and not asks_for_evaluations,
    )


def changes(
    out: Path, before: Mapping[str, Json], now: Mapping[str, Json], stack: Stack
) -> Changes:
    """Return what decides a run's results and is other than it was.

    Where files and folders stand does not count, what they hold does.
    """
    found = dict(_differences(_identity(before), _identity(now)))
    if before.get("stack_sha256") != now.get("stack_sha256"):
        try:
            then = load_stack(out / layout.stack_file(before)).stack
        except RlvrError:
            found["stack"] = (before.get("stack_sha256"), now.get("stack_sha256"))
        else:
            found |= _stack_differences(then.model_dump(mode="json"), stack.model_dump(mode="json"))
    return found


def with_computation(
    resumption: Resumption, before: Mapping[str, Json], now: Mapping[str, Json]
) -> Resumption:
    """Add to the surroundings how the model is computed, which shows once it is loaded.

    Args:
        resumption: What was seen before.
        before: The run's manifest.
        now: What `manifest.computation_facts` says.
    """
    was = before.get("computation", {})
    found = _differences(*({key: facts.get(key) for key in COMPUTATION} for facts in (was, now)))
    return replace(resumption, surroundings={**resumption.surroundings, **found})


def with_initial_weights(
    out: Path, resumption: Resumption, before: Mapping[str, Json], now: str | None
) -> Resumption:
    """Add to the changes that the model is another, which shows once it is loaded.

    Args:
        out: The run folder.
        resumption: What was seen before.
        before: The run's manifest.
        now: Fingerprint of the stack's model; None where nothing needs it any more.

    Raises:
        RunFolderError: RLVR-T101, it is another, and changes are not allowed.
    """
    was = before.get("initial_weights")
    if now is None or was is None or was == now:
        return resumption
    changed = {**resumption.changed, "initial_weights": (was, now)}
    _refuse(out, before, changed, allow_changes=resumption.allows_changes)
    return replace(resumption, changed=changed)


def continued(
    before: Mapping[str, Json], now: Mapping[str, Json], resumption: Resumption, step: int
) -> dict[str, Json]:
    """Return the entries of the manifest of a run that goes on after `step`.

    They say what holds from now on; what held before stands in the entry of ``resumes``.
    """
    keys = ("rlvr_core", "api_version", "plugins", "model", "data", "hardware", "budget")
    entry: dict[str, Json] = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "at_step": step,
    }
    for name in ("changed", "surroundings"):
        found: Changes = getattr(resumption, name)
        if found:
            entry[name] = {key: list(pair) for key, pair in found.items()}
    return {
        **{key: now[key] for key in (*keys, "stack_sha256")},
        "status": "running",
        "ended": None,
        "resumes": [*before.get("resumes", []), entry],
    }


def events(resumption: Resumption, step: int) -> list[dict[str, Json]]:
    """Return the events that tell of a resume with changes."""
    found: list[dict[str, Json]] = []
    if resumption.changed:
        reason = f"continued with changes: {layout.described_changes(resumption.changed)}"
        found.append({"step": step, "kind": "changed", "reason": reason})
    if resumption.surroundings:
        what = layout.described_changes(resumption.surroundings)
        reason = (
            f"continued with other surroundings: {what}. Results agree with those of an unbroken "
            f"run to rounding, and not in every bit"
        )
        found.append({"step": step, "kind": "warn", "monitor": "core", "reason": reason})
    return found


def _refuse(
    out: Path, before: Mapping[str, Json], changed: Changes, *, allow_changes: bool
) -> None:
    stack = out / layout.stack_file(before)
    if "control" in changed:
        raise RunFolderError(
            "RLVR-T101",
            f"{out} holds a run whose control is {layout.short_text(changed['control'][0])}, "
            f"and not {layout.short_text(changed['control'][1])}",
            origin=str(out),
            fix="choose another folder: an arm of an experiment keeps what rewards it",
        )
    if changed and not allow_changes:
        raise RunFolderError(
            "RLVR-T101",
            f"{out} holds a run that differs from this stack in: {', '.join(changed)}",
            origin=str(out),
            cause=layout.described_changes(changed),
            fix=f"resume with what the run had (its stack is {stack}); or go on with the changes "
            "by --allow-changes, which writes them down; or choose another folder for a new run",
        )


def _identity(manifest: Mapping[str, Json]) -> dict[str, Json]:
    model = Path(manifest.get("model", ""))
    control = manifest.get("control")
    plugins = {
        f"plugins.{plugin['name']}": f"{plugin.get('distribution')} {plugin.get('digest')}"
        for plugin in manifest.get("plugins", [])
    }
    data = {
        f"data.{split}": facts.get("content_sha256")
        for split, facts in manifest.get("data", {}).items()
    }
    return {
        "rlvr_core": manifest.get("rlvr_core"),
        # A folder may have been moved; a hub id is compared whole.
        "model": model.name if model.is_absolute() else str(model),
        "control": control and f"{control['name']} {control.get('digest')}",
        **plugins,
        **data,
    }


def _surroundings(manifest: Mapping[str, Json]) -> dict[str, Json]:
    hardware = manifest.get("hardware", {})
    return {key: hardware.get(key) for key in SURROUNDINGS}


def _differences(before: Mapping[str, Json], now: Mapping[str, Json]) -> Changes:
    keys = dict.fromkeys([*before, *now])
    pairs = {key: (before.get(key), now.get(key)) for key in keys}
    return {key: (was, new) for key, (was, new) in pairs.items() if was != new}


def _stack_differences(before: Json, now: Json, path: str = "") -> dict[str, tuple[Json, Json]]:
    """Compare two stacks; files and the model, whose contents are compared, are left out."""
    if path in ("model", "control") or (path.startswith("data.") and path.endswith(".path")):
        return {}
    if isinstance(before, dict) and isinstance(now, dict):
        found: dict[str, tuple[Json, Json]] = {}
        for key in sorted(before.keys() | now.keys()):
            inner = f"{path}.{key}" if path else key
            found |= _stack_differences(before.get(key), now.get(key), inner)
        return found
    return {} if before == now else {path: (before, now)}
