"""What judging again shows: how verdicts moved, and which ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from rlvr_core.api.verdicts import Json, Verdict

SCORE_TOLERANCE = 1e-6
"""Scores that differ by no more are the same: they went through a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """One rollout of a run, and what its verifier said of it then."""

    step: int
    row_id: str
    sample_index: int
    completion: str
    verifier: str
    version: str
    status: str
    score: float | None
    failure: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """A rollout whose verdict is another one now."""

    stored: Stored
    now: Verdict

    def to_json(self) -> dict[str, Json]:
        """Return both verdicts, and the completion, as plain data."""
        was = self.stored
        return {
            "step": was.step,
            "row_id": was.row_id,
            "sample_index": was.sample_index,
            "verifier": was.verifier,
            "old": {"status": was.status, "score": was.score, "failure": was.failure},
            "new": {
                "status": self.now.status.value,
                "score": self.now.score,
                "failure": self.now.failure.value if self.now.failure else None,
                "diagnostics": dict(self.now.diagnostics),
            },
            "completion": was.completion,
        }


@dataclass(slots=True, kw_only=True)
class Rescored:
    """The result of judging the rollouts of some steps again."""

    run: str
    steps: list[int]
    most_flips: int
    """How many flips are kept to be shown; all are counted."""
    transitions: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(status then, status now) -> rollouts."""
    flipped: int = 0
    """Rollouts with another status, or another score."""
    flips: list[Flip] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    """Why -> rollouts that were not judged again."""
    old_versions: dict[str, set[str]] = field(default_factory=dict)
    """Verifier that judged in the run -> the versions that it had."""
    new_versions: dict[str, str] = field(default_factory=dict)
    """Verifier that judges now -> its version."""

    @property
    def judged(self) -> int:
        """Rollouts that were judged again."""
        return self.transitions.total()

    def add(self, stored: Stored, now: Verdict) -> None:
        """Count a rollout that was judged again."""
        self.transitions[stored.status, now.status.value] += 1
        self.old_versions.setdefault(stored.verifier, set()).add(stored.version)
        self.new_versions[now.verifier] = now.version
        if not _is_same(stored, now):
            self.flipped += 1
            if len(self.flips) < self.most_flips:
                self.flips.append(Flip(stored=stored, now=now))

    def to_json(self) -> dict[str, Json]:
        """Return the result as plain data."""
        return {
            "run": self.run,
            "steps": self.steps,
            "judged": self.judged,
            "flipped": self.flipped,
            "transitions": [
                {"old": old, "new": new, "rollouts": count}
                for (old, new), count in self.transitions.most_common()
            ],
            "left_out": dict(self.left_out),
            "versions": {
                "old": {name: sorted(found) for name, found in sorted(self.old_versions.items())},
                "new": dict(sorted(self.new_versions.items())),
            },
            "flips": [flip.to_json() for flip in self.flips],
        }


def _is_same(stored: Stored, now: Verdict) -> bool:
    if stored.status != now.status.value or (stored.score is None) != (now.score is None):
        return False
    if stored.score is None or now.score is None:
        return True
    return abs(stored.score - now.score) <= SCORE_TOLERANCE
