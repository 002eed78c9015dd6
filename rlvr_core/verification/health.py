"""How each verifier is doing, and when it has broken too often."""

from __future__ import annotations

import json
import shlex
from collections import Counter, deque
from dataclasses import dataclass, field

from rlvr_core.api.errors import PluginError, shortened
from rlvr_core.api.verdicts import FailureCategory, Json, Status, Verdict
from rlvr_core.config.models import VerificationSection
from rlvr_core.plugins.ref import PluginRef
from rlvr_core.verification.plan import Instance
from rlvr_core.verification.rows import RawRow

MIN_ERRORS = 8
"""Fewer errors than this never stop a run, whatever share they are."""

_SHOWN_ROWS = 3
_LATENCIES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierHealth:
    """Counters of one verifier since the engine started."""

    verdicts: int
    by_status: dict[str, int]
    errors: int
    timeouts: int
    """Times that a row passed its deadline; a row may do so twice."""
    crashes: int
    """Times that a row ended its worker process."""
    restarts: int
    """Workers that were replaced because of this verifier's rows."""
    latency_median_s: float
    latency_p95_s: float

    def to_json(self) -> dict[str, Json]:
        """Return the counters as a JSON object."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class Record:
    """What is remembered about one verifier. Guarded by the engine's lock."""

    instance: Instance
    settings: VerificationSection
    statuses: Counter[Status] = field(default_factory=Counter)
    stops: Counter[FailureCategory] = field(default_factory=Counter)
    latencies_s: deque[float] = field(default_factory=lambda: deque(maxlen=_LATENCIES))
    failures: deque[tuple[RawRow, Verdict]] = field(
        default_factory=lambda: deque(maxlen=_SHOWN_ROWS)
    )
    window: deque[bool] = field(default_factory=deque)
    errors_in_window: int = 0
    is_over_budget: bool = False

    def add(self, row: RawRow, verdict: Verdict) -> None:
        """Count one verdict."""
        is_error = verdict.status is Status.ERROR
        self.statuses[verdict.status] += 1
        self.latencies_s.append(verdict.latency_s)
        self.window.append(is_error)
        self.errors_in_window += is_error
        if len(self.window) > self.settings.error_window:
            self.errors_in_window -= self.window.popleft()
        if is_error:
            self.failures.append((row, verdict))
            share = self.errors_in_window / self.settings.error_window
            if self.errors_in_window >= MIN_ERRORS and share > self.settings.max_error_rate:
                self.is_over_budget = True

    def health(self) -> VerifierHealth:
        """Return the counters."""
        ordered = sorted(self.latencies_s)
        return VerifierHealth(
            verdicts=self.statuses.total(),
            by_status={status.value: self.statuses[status] for status in Status},
            errors=self.statuses[Status.ERROR],
            timeouts=self.stops[FailureCategory.VERIFIER_TIMEOUT],
            crashes=self.stops[FailureCategory.VERIFIER_CRASH],
            restarts=self.stops.total(),
            latency_median_s=quantile(ordered, 0.5),
            latency_p95_s=quantile(ordered, 0.95),
        )

    def budget_error(self) -> PluginError:
        """Return the error that ends a run whose verifier breaks too often."""
        instance, settings = self.instance, self.settings
        shown = "\n".join(_shown(row, verdict) for row, verdict in self.failures)
        return PluginError(
            "RLVR-V101",
            f"verifier {instance.name!r} broke on {self.errors_in_window} of its last "
            f"{len(self.window)} rows; at most {settings.max_error_rate:.0%} of "
            f"{settings.error_window} may",
            origin=f"{instance.ref.blame}, verdicts of version {instance.version}",
            cause=f"the last ones:\n{shown}",
            fix=f"try such a row with `{_command(instance.ref)}`; raise "
            "verification.max_error_rate only if masking these rows is what you want",
            report=instance.ref.report_url,
        )


def _command(ref: PluginRef) -> str:
    """Return the command that judges the rows of a file as this instance does."""
    settings = [
        f"--config {shlex.quote(f'{key}={_as_given(value)}')}" for key, value in ref.config.items()
    ]
    return " ".join(["rlvr verify", ref.plugin, "FILE", *settings])


def _as_given(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def quantile(ordered: list[float], share: float) -> float:
    """Return the value below which `share` of `ordered` lies; 0 when it is empty."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def _shown(row: RawRow, verdict: Verdict) -> str:
    failure = verdict.failure.value if verdict.failure else ""
    message = str(verdict.diagnostics.get("message", ""))[:300]
    frames = verdict.diagnostics.get("traceback")
    where = f"\n  at {frames[-1]}" if isinstance(frames, list) and frames else ""
    completion = shortened(row.completion, 120)
    return f"row {row.id!r}: {failure}: {message}{where}\n  completion {completion!r}"
