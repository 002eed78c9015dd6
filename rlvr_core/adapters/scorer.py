"""One installed verifier behind a pool of workers that starts with the first completion."""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlvr_core.adapters.ground_truth import GroundTruthReader
from rlvr_core.api.errors import DataError, PluginError, RlvrError
from rlvr_core.api.plugin import Family, Verifier
from rlvr_core.api.verdicts import FailureCategory, Json, Status, Verdict
from rlvr_core.config.models import OnTimeout, PluginEntry
from rlvr_core.plugins.resolve import resolve_plugin
from rlvr_core.verification.api import supervision
from rlvr_core.verification.engine import VerifyEngine, judges_nothing
from rlvr_core.verification.given import parse_rows, refuse
from rlvr_core.verification.health import VerifierHealth
from rlvr_core.verification.machine import local_processes


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One completion to judge, as a trainer hands it over."""

    text: str
    ground_truth: Mapping[str, Json] | None
    """None: it is not this verifier's business, and its verdict is ``abstained``."""
    prompt: Any = ""
    """Text, or messages as mappings with role and content."""


class Scorer:
    """Judges completions for a trainer that is not ours.

    The workers start with the first completion and end with the process. Threads may share it. A
    forked process, a copy and an unpickled one get workers of their own. The error budget is that
    of a run: a verifier that breaks on more than 5 % of its last 256 rows raises.

    Args:
        verifier: Registered name of the verifier.
        config: Its settings.
        workers: Worker processes of a verifier that computes. Default: the cores but one, shared
            among the processes that the launcher started on this machine (``LOCAL_WORLD_SIZE``).
        timeout_s: Deadline of a row in seconds, from the moment work on it starts.
        on_timeout: What a row is that passes its deadline twice: ``mask`` makes it an error,
            ``fail`` a failure with the lowest score.

    Raises:
        StackError: No such verifier is installed, or its settings are not allowed.
        PluginError: It cannot be imported.
    """

    _running: VerifyEngine | None

    def __init__(
        self,
        verifier: str,
        config: Mapping[str, Json] | None = None,
        *,
        workers: int | None = None,
        timeout_s: float = 10.0,
        on_timeout: OnTimeout = "mask",
    ) -> None:
        self._arguments = (verifier, config, workers, timeout_s, on_timeout)
        self._settings = supervision(workers=workers, timeout_s=timeout_s, on_timeout=on_timeout)
        self._ref = resolve_plugin(Family.VERIFIERS, verifier, config or {})
        cls = self._ref.load_class()
        if not issubclass(cls, Verifier):
            raise judges_nothing(self._ref.plugin, self._ref.blame)
        self.reader = GroundTruthReader(self._ref.plugin, cls.GroundTruth)
        """Reads what trainers call labels."""
        self._forget()
        _SCORERS.add(self)

    @property
    def name(self) -> str:
        """Registered name of the verifier."""
        return self._ref.plugin

    @property
    def is_running(self) -> bool:
        """True while there are workers."""
        return self._running is not None

    def judge(self, completions: Sequence[Completion]) -> list[Verdict]:
        """Return one verdict a completion, in order.

        Raises:
            DataError: RLVR-D102, completions or prompts are none, or no ground truth was usable so
                far: then a column is more likely wrong than every row.
            PluginError: RLVR-V101, the verifier exceeded its error budget; or it cannot be started.
        """
        verdicts = [_NOT_ITS_BUSINESS] * len(completions)
        places = [at for at, one in enumerate(completions) if one.ground_truth is not None]
        if not places:
            return verdicts
        problems: list[str] = []
        given = parse_rows(
            [(f"completion {at + 1}", _as_row(completions[at])) for at in places], problems
        )
        refuse(problems, len(places), None)
        rows = [replace(one.raw, id=str(next(self._serials))) for one in given]
        found = self._engine().judge(self._ref.name, rows)
        for at, verdict in zip(places, found, strict=True):
            verdicts[at] = verdict
        self._check_wiring(found)
        return verdicts

    def health(self) -> VerifierHealth:
        """Return the counters of the verifier in this process; starts its workers."""
        return self._engine().health()[self._ref.name]

    def close(self) -> None:
        """End the workers; the next completion starts others. Safe to repeat."""
        with self._lock:
            engine, self._running = self._running, None
        if engine is not None:
            engine.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, self._arguments

    def _engine(self) -> VerifyEngine:
        with self._lock:
            if self._running is None:
                entry = {"name": self._ref.name, "plugin": self._ref.plugin, "config": {}}
                self._running = VerifyEngine(
                    [(self._ref, PluginEntry.model_validate(entry))],
                    self._settings,
                    local_processes=local_processes(),
                )
            return self._running

    def _check_wiring(self, verdicts: Sequence[Verdict]) -> None:
        bad = [each for each in verdicts if each.failure is FailureCategory.BAD_GROUND_TRUTH]
        if len(bad) < len(verdicts):
            self._has_judged = True
        elif not self._has_judged:
            raise DataError(
                "RLVR-D102",
                f"no ground truth that was given is one of {self.name!r}",
                origin=self._ref.blame,
                cause=str(bad[0].diagnostics.get("message", "")) or None,
                fix="check which column or label holds the ground truth",
            )

    def _forget(self) -> None:
        """Have no workers, as when new."""
        self._lock = threading.Lock()
        self._running = None
        self._has_judged = False
        self._serials = itertools.count()


_NOT_ITS_BUSINESS = Verdict(status=Status.ABSTAINED, failure=FailureCategory.NOT_APPLICABLE)

_SCORERS: weakref.WeakSet[Scorer] = weakref.WeakSet()


def no_verdict(verdict: Verdict, verifier: str, trainer: str) -> RlvrError:
    """Return the error of a completion without a verdict, for trainers that cannot mask one."""
    failure = verdict.failure.value if verdict.failure else verdict.status.value
    said = verdict.diagnostics.get("message")
    message = (
        f"{verifier!r} has no verdict on a completion ({failure}), and {trainer} cannot leave one "
        "out"
    )
    origin = f"verdicts of version {verdict.version}" if verdict.version else None
    cause = None if said is None else str(said)
    fix = "mend the cause; or say what such a completion is worth: unjudged_score=…"
    if verdict.status is Status.ERROR:
        return PluginError("RLVR-V104", message, origin=origin, cause=cause, fix=fix)
    return DataError("RLVR-V104", message, origin=origin, cause=cause, fix=fix)


def _as_row(completion: Completion) -> dict[str, Any]:
    return {
        "completion": completion.text,
        "ground_truth": completion.ground_truth,
        "prompt": completion.prompt,
    }


def _rebuilt(
    verifier: str,
    config: Mapping[str, Json] | None,
    workers: int | None,
    timeout_s: float,
    on_timeout: OnTimeout,
) -> Scorer:
    return Scorer(verifier, config, workers=workers, timeout_s=timeout_s, on_timeout=on_timeout)


def _forget_workers_of_the_parent() -> None:
    for scorer in list(_SCORERS):
        scorer._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers_of_the_parent)
