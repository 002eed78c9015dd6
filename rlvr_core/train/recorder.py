"""Recording every step of a run, and answering from the record when a step is made again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from rlvr_core.api.verdicts import Json
from rlvr_core.plugins.stages import VERIFY
from rlvr_core.train.recording import Conditions, Recording, read_recording
from rlvr_core.train.run_folder import RunFolder
from rlvr_core.train.runtime import Runtime
from rlvr_core.verification.version import stamped_version

Log = Callable[[Mapping[str, Json]], None]


class Recorder:
    """Records the steps of a run, on all of its processes.

    Args:
        runtime: Its tape is run.
        folder: Of the run; the main process writes.
        log: Takes events.
    """

    def __init__(self, runtime: Runtime, folder: RunFolder, log: Log) -> None:
        self._runtime = runtime
        self._folder = folder
        self._log = log
        self._verifiers = _verifiers_digest(runtime)
        self._step = 0
        self._conditions = Conditions(weights="", weights_version=0, engine="", verifiers="")
        self._kept = 0
        """Entries that `keep` has seen, over all processes."""

    def begin(self, step: int, weights: str, weights_version: int) -> None:
        """Begin a step; what its recording holds is not asked for again.

        Samples count if they were drawn from the same weights, verdicts if the verifiers, their
        settings and the whole row are the same.

        Args:
            step: 1-based.
            weights: Fingerprint of the policy.
            weights_version: Optimiser updates behind it.
        """
        self._step, self._kept = step, 0
        now = self._conditions = Conditions(
            weights=weights,
            weights_version=weights_version,
            engine=self._runtime.stack.rollout.engine,
            verifiers=self._verifiers,
        )
        path = self._folder.recording(step)
        found = read_recording(path) if path.exists() else None
        if found is None:
            if path.exists():
                self._say("sampled-anew", "its recording cannot be read")
            self._runtime.tape.start()
            return
        was = found.conditions
        has_samples = replace(was, verifiers=now.verifiers) == now
        has_verdicts = was.verifiers == now.verifiers
        if not has_samples:
            what = "another engine" if was.engine != now.engine else "other weights"
            self._say("sampled-anew", f"its recording was made with {what}")
        if not has_verdicts:
            self._say("judged-anew", "its recording was made with other verifiers")
        self._runtime.tape.start(
            found.samples if has_samples else (), found.verdicts if has_verdicts else ()
        )

    def keep(self) -> None:
        """Write down what is new since the last call. All processes call this together."""
        tape = self._runtime.tape
        [seen] = self._runtime.sum_over_ranks([len(tape.samples) + len(tape.verdicts)])
        if int(seen) == self._kept:
            return
        is_first, self._kept = self._kept == 0, int(seen)
        samples, verdicts = self._runtime.gather(tape.samples), self._runtime.gather(tape.verdicts)
        replayed = [sum(entry.is_replayed for entry in entries) for entries in (samples, verdicts)]
        if is_first and any(replayed):
            reason = (
                f"{replayed[0]} of {len(samples)} samples and {replayed[1]} of {len(verdicts)} "
                f"verdicts are those that were recorded before"
            )
            self._say("replayed", reason)
        if self._runtime.accelerator.is_main_process and sum(replayed) < self._kept:
            recording = Recording(conditions=self._conditions, samples=samples, verdicts=verdicts)
            self._folder.write_recording(self._step, recording)

    def end(self) -> None:
        """End the step: what is sampled and judged from now on is no part of it."""
        self._runtime.tape.stop()

    def _say(self, kind: str, reason: str) -> None:
        self._log({"step": self._step, "kind": kind, "reason": f"step {self._step}: {reason}"})


def _verifiers_digest(runtime: Runtime) -> str:
    """Hash what decides verdicts beside the rows: plugins with code and settings, and deadlines."""
    limits = runtime.stack.verification.model_dump(mode="json", include={"timeout_s", "on_timeout"})
    plugins = [
        [loaded.name, stamped_version(loaded.ref), loaded.entry.timeout_s, loaded.entry.on_timeout]
        for loaded in runtime.dispatcher.plugins
        if loaded.answers(VERIFY)
    ]
    return hashlib.sha256(json.dumps([limits, plugins]).encode()).hexdigest()
