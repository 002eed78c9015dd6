"""The run: steps, evaluations, checkpoints, records and the end.

Every process runs this; the main process alone writes and talks.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from rlvr_core.api.events import Action, ActionKind, EvalEvent, RunInfo, StepEvent
from rlvr_core.api.rollouts import Group, Rollout, Row
from rlvr_core.api.verdicts import Json
from rlvr_core.config.models import Stack
from rlvr_core.records import layout
from rlvr_core.records.logs import read_log
from rlvr_core.train import checkpoint
from rlvr_core.train.actions import apply_actions
from rlvr_core.train.fingerprint import weights_fingerprint
from rlvr_core.train.measuring import measure_share, measure_split
from rlvr_core.train.metrics import StepTimes, step_record
from rlvr_core.train.plugin_states import give_back, saved_states
from rlvr_core.train.progress import Reporter
from rlvr_core.train.recorder import Recorder
from rlvr_core.train.run_folder import RunFolder
from rlvr_core.train.runtime import Runtime
from rlvr_core.train.session import StepSession
from rlvr_core.train.step import collect, learn


@dataclass(slots=True, kw_only=True, eq=False)
class Run:
    """A run in progress.

    Args:
        runtime: The parts that steps use.
        folder: Where everything is written, by the main process.
        splits: Rows of the splits that are evaluated, by name.
        tokenizer: Saved with every checkpoint.
        reporter: Told of everything on the main process.
        step: The last finished step.
        weights_version: Optimiser updates so far.
        prompts_drawn: Prompts handed out so far.
        weights: Fingerprint of the policy; `begin` takes it.
    """

    runtime: Runtime
    folder: RunFolder
    splits: Mapping[str, Sequence[Row]]
    tokenizer: PreTrainedTokenizerBase
    reporter: Reporter
    step: int = 0
    weights_version: int = 0
    prompts_drawn: int = 0
    weights: str = ""
    _recorder: Recorder = field(init=False)

    def __post_init__(self) -> None:
        self._recorder = Recorder(self.runtime, self.folder, self.log_event)

    @property
    def info(self) -> RunInfo:
        """The facts that monitors get."""
        return RunInfo(
            folder=self.folder.path,
            total_steps=self.runtime.stack.train.steps,
            seed=self.runtime.stack.seed,
            manifest=self.folder.manifest,
        )

    @property
    def _is_main(self) -> bool:
        return bool(self.runtime.accelerator.is_main_process)

    def train(self) -> Action | None:
        """Run the remaining steps. Return the action of a monitor that ended the run, or None."""
        train = self.runtime.stack.train
        ending = self.begin()
        while ending is None and self.step < train.steps:
            ending = self.make_step() or self._evaluate_if_due()
            due = bool(train.checkpoint_every) and self.step % train.checkpoint_every == 0
            if ending is None:
                saves = due or self.step == train.steps
            else:
                saves = ending.kind is not ActionKind.ROLL_BACK
            if saves:
                self._save()
        status = "finished" if ending is None else "stopped"
        self._observe_the_end(status)
        return ending

    def begin(self) -> Action | None:
        """Tell observers of the start, and make the evaluations that are due before a step.

        Returns:
            An action that ends the run, or None.
        """
        self.weights = weights_fingerprint(self.runtime.policy.model)
        if self._is_main:
            self.runtime.dispatcher.run_start(self.info)
            self._log_faults()
        return self._evaluate_if_due()

    def make_step(self) -> Action | None:
        """Make one step, record it, and let monitors speak."""
        runtime = self.runtime
        session = StepSession(
            runtime=runtime,
            step=self.step + 1,
            weights_version=self.weights_version,
            prompts_drawn=self.prompts_drawn,
        )
        self._recorder.begin(session.step, self.weights, self.weights_version)
        started = time.perf_counter()
        self.say(f"step {self.step + 1}: sampling and verifying")
        collected = collect(runtime, session)
        collect_s = time.perf_counter() - started
        self._recorder.keep()
        started = time.perf_counter()
        self.say(f"step {self.step + 1}: learning")
        result = learn(runtime, session, list(compress(collected.groups, collected.kept)))
        times = StepTimes(collect_s=collect_s, train_s=time.perf_counter() - started)
        self._recorder.keep()
        self._recorder.end()
        self.weights = weights_fingerprint(runtime.policy.model)
        self.step += 1
        self.weights_version += result.updates
        self.prompts_drawn = session.prompts_drawn
        groups = runtime.gather(collected.groups)
        kept = runtime.gather(collected.kept)
        record = step_record(
            step=self.step,
            epoch=self.prompts_drawn / len(runtime.train_rows),
            groups=groups,
            kept=kept,
            rounds=collected.rounds,
            result=result,
            weights_version=self.weights_version,
            weights_fingerprint=self.weights,
            learning_rate=runtime.learning_rate(self.step),
            times=times,
        )
        return self._record_step(record, groups, kept)

    def _record_step(
        self, record: Mapping[str, Json], groups: Sequence[Group], kept: Sequence[bool]
    ) -> Action | None:
        actions: list[tuple[str, Action]] = []
        self.runtime.place.enter(f"step {self.step}: writing its records", self.step)
        if self._is_main:
            self.folder.write_rollouts(self.step, groups, kept)
            self.folder.append_metrics(record)
            self.reporter.step(record)
            event = StepEvent(run=self.info, step=self.step, groups=groups, metrics=record)
            actions = self.runtime.dispatcher.step_end(event)
            self._log_faults()
        return apply_actions(self.runtime, self.step, actions, self.log_event)

    def _evaluate_if_due(self) -> Action | None:
        """Measure every split that is due at this step and was not measured yet.

        Asked again after a resume: a pause may have come between a step and its evaluation.

        Returns:
            An action that ends the run, or None.
        """
        every = self.runtime.stack.evaluate.every
        is_last = self.step == self.runtime.stack.train.steps
        if not (self.step == 0 or is_last or (every and self.step % every == 0)):
            return None
        done = self.runtime.gather(self._measured_splits() if self._is_main else [])
        ending = None
        for split, rows in self.splits.items():
            if split not in done and ending is None:
                self.say(f"evaluating {split}: {len(rows)} prompts")
                ending = self._evaluate(split, rows)
        return ending

    def _measured_splits(self) -> list[str]:
        """Return the splits that ``evals.jsonl`` has a record of at this step."""
        records = read_log(self.folder.path, layout.EVALS).records
        return [record["split"] for record in records if record["step"] == self.step]

    def _evaluate(self, split: str, rows: Sequence[Row]) -> Action | None:
        runtime = self.runtime
        measured = measure_split(
            runtime, split, rows, step=self.step, weights_version=self.weights_version
        )
        watched = [*measured.rollouts, *self._canaries(split)]
        for grader, of in measured.record["graders"].items():
            if of["accuracy"] is None:
                reason = f"{grader!r} could not judge one completion of {split}"
                self.log_event(
                    {"step": self.step, "kind": "warn", "monitor": "core", "reason": reason}
                )
        actions: list[tuple[str, Action]] = []
        if self._is_main:
            self.folder.write_evaluation(self.step, split, measured.rollouts, measured.verdicts)
            self.folder.append_eval(measured.record)
            self.reporter.evaluation(measured.record)
            event = EvalEvent(
                run=self.info,
                step=self.step,
                split=split,
                rollouts=watched,
                metrics=measured.record,
            )
            actions = runtime.dispatcher.eval_end(event)
            self._log_faults()
        return apply_actions(runtime, self.step, actions, self.log_event)

    def _canaries(self, split: str) -> Sequence[Rollout]:
        """Return completions of the prompts that monitors add to an evaluation."""
        rows = [
            replace(row, id=f"{monitor}/{row.id}")
            for monitor, row in self.runtime.dispatcher.eval_prompts(split, self.step)
        ]
        if not rows:
            return []
        name = f"{split}-canaries"
        measured = measure_share(self.runtime, name, rows, self.weights_version)
        return self.runtime.gather(measured.rollouts)

    def _save(self) -> None:
        """Write a checkpoint of the finished step."""
        if not self._is_main:
            return
        self.say(f"step {self.step}: writing a checkpoint")
        controls, stack = self.runtime.controls, self.runtime.stack
        problems = checkpoint.save(
            self.folder.path,
            checkpoint.Progress(
                step=self.step,
                weights_version=self.weights_version,
                prompts_drawn=self.prompts_drawn,
                learning_rate=controls.learning_rate,
                kl_coefficient=controls.kl_coefficient,
                stack_learning_rate=stack.train.learning_rate,
                stack_advantage=_advantage(stack),
                plugins=saved_states(self.runtime.dispatcher.plugins),
                weights_fingerprint=self.weights,
            ),
            self.runtime.policy.model,
            self.tokenizer,
            self.runtime.optimizer,
            keep=stack.train.keep_checkpoints,
        )
        start = checkpoint.first_start(self.folder.path, stack.train.keep_checkpoints)
        for reason in [*problems, *self.folder.forget_recordings(start)]:
            self.log_event({"step": self.step, "kind": "warn", "monitor": "core", "reason": reason})

    def resume(self, path: Path) -> None:
        """Take over the counters, the optimiser and the plugins' states of a checkpoint.

        What a monitor has set holds on, unless the stack now says something else than it did when
        the checkpoint was written: then the stack's holds.

        Args:
            path: Of the checkpoint; the policy's weights are its own already.

        Raises:
            PluginError: RLVR-P106, a plugin does not take its own state back.
            RunFolderError: RLVR-T108, the checkpoint is not what was written.
        """
        progress = checkpoint.load_progress(path)
        if weights_fingerprint(self.runtime.policy.model) != progress.weights_fingerprint:
            raise checkpoint.damaged(path, "the weights that it holds are not those it was given")
        self.step = progress.step
        self.weights_version = progress.weights_version
        self.prompts_drawn = progress.prompts_drawn
        controls, stack = self.runtime.controls, self.runtime.stack
        if progress.stack_learning_rate == stack.train.learning_rate:
            controls.learning_rate = progress.learning_rate
        if progress.stack_advantage == _advantage(stack):
            controls.kl_coefficient = progress.kl_coefficient
        for loaded in self.runtime.dispatcher.plugins:
            if loaded.name in progress.plugins:
                give_back(loaded, progress.plugins[loaded.name])
        checkpoint.load_optimizer(path, self.runtime.optimizer)
        for parameters in self.runtime.optimizer.param_groups:
            parameters["weight_decay"] = stack.train.weight_decay
        self.runtime.engine.push(self.runtime.policy.model, self.weights_version)

    def _observe_the_end(self, status: str) -> None:
        self.runtime.place.enter("ending the monitors", self.step)
        if self._is_main:
            actions = self.runtime.dispatcher.run_end(self.info, status)
            self._log_faults()
            for monitor, action in actions:
                event = {"step": self.step, "kind": action.kind.value, "monitor": monitor}
                applied = action.kind is ActionKind.WARN
                self.log_event({**event, "reason": action.reason, "applied": applied})

    def _log_faults(self) -> None:
        faults = self.runtime.dispatcher.faults
        while faults:
            fault = faults.pop(0)
            self.log_event(
                {
                    "step": self.step,
                    "kind": "monitor-fault",
                    "monitor": fault.plugin,
                    "reason": f"{fault.blame}: {fault.message}",
                    "traceback": fault.traceback,
                }
            )

    def log_event(self, record: Mapping[str, Json]) -> None:
        """Write down an event and tell the reporter, on the main process."""
        if self._is_main:
            self.folder.append_event(record)
            self.reporter.event(record)

    def say(self, text: str) -> None:
        """Tell where this process is; the reporter too, on the main process."""
        self.runtime.place.enter(text, self.step)
        if self._is_main:
            self.reporter.phase(text)


def _advantage(stack: Stack) -> Json:
    return [entry.model_dump(mode="json") for entry in stack.advantage]
