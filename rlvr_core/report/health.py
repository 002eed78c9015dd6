"""Verifier health: what each verifier said over a whole run, and how long it took."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from rlvr_core.evaluate.agreement import Agreement, summed_agreement
from rlvr_core.report.read import Run

_COLUMNS = ("verifier", "version", "status", "failure", "latency_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierHealth:
    """All verdicts of one verifier on the rollouts of one run."""

    verifier: str
    versions: list[str]
    verdicts: int
    statuses: dict[str, int]
    failures: dict[str, int]
    latency_median_s: float
    latency_p99_s: float
    latency_max_s: float


@dataclass(slots=True)
class _Tally:
    statuses: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    versions: set[str] = field(default_factory=set)
    latencies_s: list[float] = field(default_factory=list)


def verifier_health(run: Run) -> list[VerifierHealth]:
    """Return one entry a verifier, counted over all rollouts on disk."""
    tallies: defaultdict[str, _Tally] = defaultdict(_Tally)
    for step in run.rollout_steps:
        for row in run.rollouts(step, _COLUMNS):
            if row["status"] is None:
                continue
            tally = tallies[row["verifier"]]
            tally.statuses[row["status"]] += 1
            tally.versions.add(row["version"])
            tally.latencies_s.append(row["latency_s"])
            if row["failure"]:
                tally.failures[row["failure"]] += 1
    return [_health(name, tallies[name]) for name in sorted(tallies)]


def agreements(run: Run) -> list[Agreement]:
    """Return how often members of verifiers that ask others agreed, over all steps."""
    return summed_agreement(line.get("agreement") or {} for line in run.metrics)


def _health(name: str, tally: _Tally) -> VerifierHealth:
    latencies_s = sorted(tally.latencies_s)
    return VerifierHealth(
        verifier=name,
        versions=sorted(tally.versions),
        verdicts=len(latencies_s),
        statuses=dict(tally.statuses.most_common()),
        failures=dict(tally.failures.most_common()),
        latency_median_s=_quantile(latencies_s, 0.5),
        latency_p99_s=_quantile(latencies_s, 0.99),
        latency_max_s=latencies_s[-1],
    )


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
