"""From a resolved stack to a finished run folder: what ``rlvr train`` does."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from accelerate import Accelerator

from rlvr_core import __version__
from rlvr_core.api.errors import StackError
from rlvr_core.api.events import Finding, Severity
from rlvr_core.api.plugin import API_VERSION
from rlvr_core.api.verdicts import Json
from rlvr_core.config.models import DataSource
from rlvr_core.data.read import source_path
from rlvr_core.models.source import BUILT_IN, at_hand, resolve_model
from rlvr_core.plugins.plan import resolved_yaml
from rlvr_core.plugins.ref import PluginRef
from rlvr_core.plugins.resolve import LoadedPlugin, ResolvedStack
from rlvr_core.rollout.tokens import PromptTokenizer, stop_ids
from rlvr_core.train.build import load_model, open_runtime
from rlvr_core.train.engines import require_engine
from rlvr_core.train.fingerprint import weights_fingerprint
from rlvr_core.train.loop import Run
from rlvr_core.train.manifest import code_revision, computation_facts, hardware_facts
from rlvr_core.train.place import Place
from rlvr_core.train.prepare import Prepared
from rlvr_core.train.processes import make_accelerator, meet, open_watch
from rlvr_core.train.progress import Reporter, Silent, Unbreakable
from rlvr_core.train.prompt_check import check_prompts
from rlvr_core.train.resume import (
    NOTHING_LEFT,
    Resumption,
    continued,
    events,
    plan_resume,
    with_computation,
    with_initial_weights,
)
from rlvr_core.train.run_folder import RunFolder
from rlvr_core.train.session import StepSession
from rlvr_core.train.watch import Watch
from rlvr_core.verification.plan import with_members
from rlvr_core.verification.version import stamped_version


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    folder: Path
    status: str
    """``finished``, or ``stopped`` by a monitor."""
    reason: str | None = None
    """Why it stopped; or, of a run that was continued and had no step left, that it had none."""


def train(
    prepared: Prepared,
    out: Path,
    *,
    resume: bool = False,
    allow_changes: bool = False,
    reporter: Reporter | None = None,
    place: Place | None = None,
) -> Outcome:
    """Train, and leave a run folder at `out`.

    Args:
        prepared: The stack and its data, checked.
        out: The run folder. New, unless `resume`.
        resume: Continue the run that stands there, from its last complete checkpoint.
        allow_changes: On a resume, accept another stack, other data or plugins; it is written down.
        reporter: Told of progress on the main process.
        place: Kept up to date with where this process is.

    Raises:
        RunFolderError: The folder is taken, or holds another run.
        RlvrError: Whatever is wrong with the stack, the data, the model or a plugin, on this
            process or, with its name in the message, on another.
    """
    stack = prepared.resolved.stack
    place = place or Place()
    accelerator = make_accelerator(stack)
    require_engine(stack, accelerator)
    silent = Silent()
    reporter = Unbreakable(reporter or silent if accelerator.is_main_process else silent)
    timeout_s = stack.train.process_timeout_s
    with open_watch(out, place, accelerator, timeout_s) as watch, ExitStack() as held:
        manifest = make_manifest(prepared, out.name, accelerator.num_processes)
        if not resume:
            RunFolder.require_free(out)
        elif accelerator.is_main_process:
            # What is planned holds only as long as no other process can write.
            held.enter_context(RunFolder.open_to_continue(out).lock())
        meet(accelerator, place)  # none may find the folder that another has made already
        resumption = (
            plan_resume(out, manifest, stack, allow_changes=allow_changes) if resume else None
        )
        if resumption and resumption.is_over:
            return Outcome(out, "finished", NOTHING_LEFT.format(steps=stack.train.steps))
        return _train(
            prepared, out, manifest, resumption, reporter, accelerator, place, watch, held
        )


def _train(
    prepared: Prepared,
    out: Path,
    manifest: Mapping[str, Json],
    resumption: Resumption | None,
    reporter: Reporter,
    accelerator: Accelerator,
    place: Place,
    watch: Watch,
    held: ExitStack,
) -> Outcome:
    stack = prepared.resolved.stack

    def say(phase: str) -> None:
        place.enter(phase)
        reporter.phase(phase)

    begins_at = resumption.checkpoint if resumption else None
    stack_yaml = resolved_yaml(_with_absolute_paths(prepared))
    source = resolve_model(stack.model, say, prepared.base)
    say("loading the model")
    loaded = load_model(begins_at or source)
    tokenizer = PromptTokenizer(loaded.tokenizer, stack.rollout.prompt_format)
    remarks = [*prepared.remarks(), *check_prompts(prepared, tokenizer, loaded.model.config)]
    if not stop_ids(loaded.model, loaded.tokenizer):
        remarks.append("the model names no token that ends a completion: all reach their limit")
    if accelerator.is_main_process and not resumption:
        RunFolder.create(out, manifest, stack_yaml)
    meet(accelerator, place)
    folder = RunFolder.open(out)
    if accelerator.is_main_process and not resumption:
        held.enter_context(folder.lock())
    rows = prepared.splits["train"]
    place.enter("starting the verifiers")
    with (
        watch.owning_the_run(),
        open_runtime(prepared.resolved, loaded, rows, accelerator, source) as runtime,
        watch.concluding(),
    ):
        runtime.place, runtime.dispatcher.on_call = place, place.calls
        run = Run(
            runtime=runtime,
            folder=folder,
            splits={name: prepared.splits[name] for name in stack.evaluate.splits},
            tokenizer=loaded.tokenizer,
            reporter=reporter,
        )
        watch.log = run.log_event
        if resumption:
            _take_up(run, resumption, manifest, stack_yaml)
        elif accelerator.is_main_process:
            folder.update_manifest(initial_weights=_initial_weights(run, None))
        _note_computation(run, say)
        return _run_to_its_end(run, remarks)


def _note_computation(run: Run, say: Callable[[str], None]) -> None:
    """Say and write down how the model is computed."""
    facts = computation_facts(run.runtime)
    say(
        f"computing on {facts['device']} with {facts['attention']} attention, weights in "
        f"{facts['weights']}, products in {facts['matrix_products']}"
    )
    if run.runtime.accelerator.is_main_process:
        run.folder.update_manifest(computation=facts)


def _take_up(
    run: Run, resumption: Resumption, manifest: Mapping[str, Json], stack_yaml: str
) -> None:
    """Bring a run and its folder to where they are continued, and write down what changed."""
    folder = run.folder
    facts = computation_facts(run.runtime)
    resumption = with_computation(resumption, folder.manifest, facts)
    initial = _initial_weights(run, resumption.checkpoint)
    resumption = with_initial_weights(folder.path, resumption, folder.manifest, initial)
    if resumption.checkpoint:
        run.resume(resumption.checkpoint)
    if not run.runtime.accelerator.is_main_process:
        return
    folder.rewind(run.step if resumption.checkpoint else -1)
    entries = continued(folder.manifest, manifest, resumption, run.step)
    if folder.manifest.get("stack_sha256") != manifest["stack_sha256"]:
        entries["stack_file"] = folder.write_stack(stack_yaml)
    if initial:
        entries["initial_weights"] = initial
    folder.update_manifest(**entries)
    for event in events(resumption, run.step):
        run.log_event(event)


def _initial_weights(run: Run, begins_at: Path | None) -> str | None:
    """Return the fingerprint of the model that the stack names, if it is loaded."""
    runtime = run.runtime
    holder = runtime.reference if begins_at else runtime.policy
    return weights_fingerprint(holder.model) if holder else None


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


def _run_to_its_end(run: Run, remarks: Sequence[str]) -> Outcome:
    """Run the remaining steps and write down how the run ended; `Watch` does when it fails."""
    folder = run.folder
    is_main = run.runtime.accelerator.is_main_process
    if run.step == 0:
        run.runtime.place.enter("auditing the prompts")
        audit(run)
        for reason in remarks:
            run.log_event({"step": 0, "kind": "warn", "monitor": "core", "reason": reason})
    ending = run.train()
    status, why = ("stopped", ending.reason) if ending else ("finished", None)
    if is_main:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        folder.update_manifest(status=status, ended={"at": now, "step": run.step, "reason": why})
    # What goes wrong at the very end on the main process is an error on all.
    meet(run.runtime.accelerator, run.runtime.place)
    return Outcome(folder.path, status, why)


def audit(run: Run) -> None:
    """Let plugins look at every prompt before step 0.

    Raises:
        StackError: RLVR-S107, one of them refuses the prompts.
    """
    runtime = run.runtime
    session = StepSession(runtime=runtime, step=0, weights_version=0, prompts_drawn=0)
    findings = runtime.dispatcher.audit_prompts(runtime.train_rows, session)
    for name, finding in findings:
        event = {"step": 0, "kind": "prompt-audit", "monitor": name}
        run.log_event({**event, **_described(finding)})
    refusals = [finding for _, finding in findings if finding.severity is Severity.REFUSE]
    if refusals:
        raise StackError(
            "RLVR-S107",
            "the prompts were refused before the first step",
            cause="\n".join(finding.message for finding in refusals),
            fix="change the training data, or take the plugin that refuses out of the stack",
        )


def _described(finding: Finding) -> dict[str, Json]:
    rows = [row.id for row in finding.rows]
    return {"severity": finding.severity.value, "reason": finding.message, "rows": rows[:20]}


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


def _with_absolute_paths(prepared: Prepared) -> ResolvedStack:
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


def _stack_digest(resolved: ResolvedStack) -> str:
    """Hash the resolved stack without what has entries of its own: control, model, data files."""
    stack = resolved.stack.model_dump(mode="json", exclude={"control", "model"})
    for source in stack["data"].values():
        if source is not None:
            del source["path"]
    return hashlib.sha256(json.dumps(stack, sort_keys=True).encode()).hexdigest()
