"""Supervised verification, as the rest of core uses it."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self

from rlvr_core.api.errors import EnvironmentFault, RlvrError, StackError, did_you_mean, listed
from rlvr_core.api.verdicts import FailureCategory, Verdict
from rlvr_core.config.models import PluginEntry, VerificationSection
from rlvr_core.plugins.ref import PluginRef
from rlvr_core.verification import plan
from rlvr_core.verification.health import Record, VerifierHealth
from rlvr_core.verification.panel import Panel
from rlvr_core.verification.pump import Pump
from rlvr_core.verification.rows import RawRow
from rlvr_core.verification.tasks import Task


class VerifyEngine:
    """Judges rows in worker processes under deadlines, and answers in the order it was asked.

    Use it as a context manager, or call `start` and `close`. Methods may be called from any thread.

    Args:
        refs: The plugins of the stack's ``verifiers`` section with their entries. Those that are
            no verifiers are passed over.
        settings: The stack's ``verification`` section.
        local_processes: Training processes on this machine, which share its cores.
        seed: Handed to verifiers in `VerifyBatch.seed`.

    Raises:
        PluginError: A verifier could not be imported.
    """

    def __init__(
        self,
        refs: Sequence[tuple[PluginRef, PluginEntry]],
        settings: VerificationSection,
        *,
        local_processes: int = 1,
        seed: int = 0,
    ) -> None:
        found = [plan.instance(ref, entry, settings) for ref, entry in plan.with_members(refs)]
        instances = [instance for instance in found if instance is not None]
        working = [instance for instance in instances if not instance.ref.members]
        self.plans = plan.plan_pools(working, plan.cpu_processes(settings, local_processes))
        """The worker processes that are used, for the printed plan of a run."""
        self._seed = seed
        by_name = {each.name: each for each in instances}
        self._panels = {
            each.name: Panel(each, by_name, seed) for each in instances if each.ref.members
        }
        self._records = {each.name: Record(each, settings) for each in instances}
        self._changed = threading.Condition()
        self._waiting: set[tuple[str, str]] = set()
        self._verdicts: dict[tuple[str, str], Verdict] = {}
        self._abandoned: set[tuple[str, str]] = set()
        self._failures: dict[str, RlvrError] = {}
        self._pump: Pump | None = None
        self._is_closed = False
        self._owner = os.getpid()

    @property
    def verifiers(self) -> list[str]:
        """Instance names of the verifiers that can be asked."""
        return list(self._records)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start the workers and wait until every verifier was built once. Safe to repeat.

        Raises:
            PluginError: A verifier cannot be built, or its worker does not start (RLVR-V102).
        """
        with self._changed:
            self._start_pump()
        pump = self._pump
        if pump is None:
            return
        with self._changed:
            while not all(pool.is_ready for pool in pump.pools):
                self._raise_failure(self._records)
                self._changed.wait(0.02)

    def submit(self, verifier: str, row: RawRow) -> None:
        """Queue a row and return at once; `judge` collects its verdict.

        Raises:
            StackError: No such verifier (RLVR-V103).
            ValueError: A row of that id waits already.
        """
        self._submit(verifier, [row], is_resubmission_allowed=False)

    def judge(self, verifier: str, rows: Sequence[RawRow]) -> list[Verdict]:
        """Return the verdicts of rows in their order; waits for them.

        Rows that were submitted before are not submitted again. Collected ids may be used again.

        Raises:
            StackError: No such verifier (RLVR-V103).
            PluginError: The verifier exceeded its error budget (RLVR-V101) or cannot be started.
        """
        self._submit(verifier, rows, is_resubmission_allowed=True)
        if verifier in self._panels:
            return self._judge_together(self._panels[verifier], rows)
        keys = [(verifier, row.id) for row in rows]
        with self._changed:
            for key in keys:
                while key not in self._verdicts:
                    self._raise_failure((verifier,))
                    self._changed.wait()
            self._raise_failure((verifier,))
            verdicts = [self._verdicts[key] for key in keys]
            for key in keys:
                self._verdicts.pop(key, None)
        return verdicts

    def abandon(self) -> None:
        """Forget every row that was submitted and not collected; its verdict will not be asked for.

        Their ids may only be used again once their verdicts would have been there.
        """
        with self._changed:
            self._abandoned |= self._waiting
            self._verdicts.clear()

    def health(self) -> Mapping[str, VerifierHealth]:
        """Return the counters of each verifier."""
        with self._changed:
            return {name: record.health() for name, record in self._records.items()}

    def close(self) -> None:
        """End all workers; nothing is left behind. Safe to repeat."""
        # A forked child of the training process inherits this object, but not the workers.
        if self._is_closed or os.getpid() != self._owner:
            return
        self._is_closed = True
        if self._pump is not None:
            self._pump.stop()
            atexit.unregister(self.close)

    # What the pump tells, in its thread.

    def delivered(self, verdicts: list[tuple[Task, Verdict]]) -> None:
        """Store verdicts."""
        with self._changed:
            for task, verdict in verdicts:
                key = (task.verifier, task.row.id)
                self._waiting.discard(key)
                if key in self._abandoned:
                    self._abandoned.discard(key)
                else:
                    self._verdicts[key] = verdict
                self._records[task.verifier].add(task.row, verdict)
            self._changed.notify_all()

    def stopped(self, verifier: str, cause: FailureCategory) -> None:
        """Count a worker that was stopped by a row."""
        with self._changed:
            self._records[verifier].stops[cause] += 1

    def failed(self, verifiers: Iterable[str], error: RlvrError) -> None:
        """Remember that these verifiers cannot work."""
        with self._changed:
            self._failures.update(dict.fromkeys(verifiers, error))
            self._changed.notify_all()

    def ended(self) -> None:
        """Wake whoever waits."""
        with self._changed:
            self._changed.notify_all()

    def _start_pump(self) -> None:
        if self._is_closed:
            raise RuntimeError("the verification engine is closed")
        if self._pump is None and self._records:
            self._pump = Pump(self.plans, self, self._seed)
            self._pump.start()
            atexit.register(self.close)

    def _submit(
        self, verifier: str, rows: Sequence[RawRow], *, is_resubmission_allowed: bool
    ) -> None:
        if verifier not in self._records:
            raise StackError(
                "RLVR-V103",
                f"no verifier of the stack is called {verifier!r}"
                f"{did_you_mean(verifier, self._records)}",
                cause=f"the verifiers are: {listed(self._records) or 'none'}",
                fix="route the row to one of them, or add the verifier to the stack",
            )
        if verifier in self._panels:
            panel = self._panels[verifier]
            for member in panel.members:
                self._submit(
                    member,
                    panel.rows_for(member, rows),
                    is_resubmission_allowed=is_resubmission_allowed,
                )
            return
        tasks = []
        with self._changed:
            self._start_pump()
            self._raise_failure((verifier,))
            for row in rows:
                key = (verifier, row.id)
                if key not in self._waiting and key not in self._verdicts:
                    self._waiting.add(key)
                    tasks.append(Task(verifier, row))
                elif not is_resubmission_allowed:
                    raise ValueError(f"row {row.id!r} waits for {verifier!r} already")
        if tasks and self._pump is not None:
            self._pump.put(tasks)

    def _judge_together(self, panel: Panel, rows: Sequence[RawRow]) -> list[Verdict]:
        """Return the verdicts of a verifier that asks others, from theirs."""
        found = {
            member: self.judge(member, panel.rows_for(member, rows)) for member in panel.members
        }
        verdicts = panel.verdicts(rows, found)
        with self._changed:
            for row, verdict in zip(rows, verdicts, strict=True):
                self._records[panel.name].add(row, verdict)
        return verdicts

    def _raise_failure(self, verifiers: Iterable[str]) -> None:
        """Raise what keeps any of `verifiers` from answering. The lock is held."""
        for verifier in verifiers:
            if verifier in self._failures:
                raise self._failures[verifier]
            if self._records[verifier].is_over_budget:
                raise self._records[verifier].budget_error()
        pump = self._pump
        if pump is not None and pump.crash is not None:
            if isinstance(pump.crash, OSError):
                raise EnvironmentFault(
                    "RLVR-V102",
                    "a verifier worker could not be started",
                    cause=str(pump.crash),
                    fix="free memory or processes, or lower verification.workers",
                ) from pump.crash
            raise RuntimeError("the verification thread ended") from pump.crash
        if self._is_closed:
            raise RuntimeError("the verification engine is closed")


def judges_nothing(plugin: str, blame: str) -> StackError:
    """Return the error that a plugin was asked for verdicts and gives none.

    Args:
        plugin: Its name.
        blame: Its distribution and version.
    """
    return StackError(
        "RLVR-V103",
        f"plugin {plugin!r} does not judge completions",
        origin=blame,
        fix="name a verifier that has the hook rlvr_verify; `rlvr plugins show NAME --load` lists "
        "the hooks of one",
    )
