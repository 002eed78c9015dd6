"""From a resolved stack to a finished run folder: what ``rlvr train`` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from accelerate import Accelerator

from rlvr_core.api.verdicts import Json
from rlvr_core.models.source import loading, resolve_model
from rlvr_core.plugins.plan import resolved_yaml
from rlvr_core.rollout.precision import computes_bf16
from rlvr_core.rollout.tokens import PromptTokenizer, stop_ids
from rlvr_core.train.build import load_model, open_runtime
from rlvr_core.train.engines import require_engine
from rlvr_core.train.fingerprint import weights_fingerprint
from rlvr_core.train.loop import Run
from rlvr_core.train.manifest import computation_facts, make_manifest, with_absolute_paths
from rlvr_core.train.place import Place
from rlvr_core.train.prepare import Prepared
from rlvr_core.train.processes import make_accelerator, meet, open_watch
from rlvr_core.train.progress import Reporter, Silent, Unbreakable
from rlvr_core.train.prompt_audit import audit
from rlvr_core.train.prompt_check import check_prompts
from rlvr_core.train.resume import (
    Resumption,
    continued,
    events,
    nothing_left,
    plan_resume,
    with_computation,
    with_initial_weights,
)
from rlvr_core.train.run_folder import RunFolder
from rlvr_core.train.watch import Watch


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
            return Outcome(out, "finished", nothing_left(stack.train.steps))
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
    stack_yaml = resolved_yaml(with_absolute_paths(prepared))
    source = resolve_model(stack.model, say, prepared.base)
    say(loading(begins_at or source))
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
    device = run.runtime.accelerator.device
    if facts["matrix_products"] == "bfloat16" and not computes_bf16(device):
        say(
            f"this {device.type} only imitates bfloat16, which takes many times as long as "
            "float32: train.precision=auto avoids that"
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
