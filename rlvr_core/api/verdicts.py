"""What a verifier says about a completion.

A verdict is not a float. ``failed`` is a judgement on the completion; ``error`` and
``abstained`` say nothing about it, so core masks and counts them and never scores them 0. What
the *completion* did (ran too long, crashed its own tests, printed no answer) is ``failed``,
never ``error``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Json = Any
"""A JSON value: null, bool, number, string, list or string-keyed object."""


class Status(StrEnum):
    """Who is speaking about what."""

    PASSED = "passed"
    """A judgement on the completion: its score reaches the verifier's pass mark."""
    FAILED = "failed"
    """A judgement on the completion: its score is below the pass mark."""
    ABSTAINED = "abstained"
    """Not this verifier's business, or the ground truth is unusable."""
    ERROR = "error"
    """The verifier or its backend broke. Says nothing about the completion."""


class FailureCategory(StrEnum):
    """Why a verdict is not ``passed``."""

    # with FAILED: what the completion did
    NO_ANSWER = "no_answer"
    MALFORMED = "malformed"
    WRONG_ANSWER = "wrong_answer"
    CONSTRAINT = "constraint"
    RUNTIME_ERROR = "runtime_error"
    TIME_LIMIT = "time_limit"
    RESOURCE_LIMIT = "resource_limit"
    UNSAFE = "unsafe"
    TRUNCATED = "truncated"
    # with ABSTAINED
    NOT_APPLICABLE = "not_applicable"
    BAD_GROUND_TRUTH = "bad_ground_truth"
    # with ERROR
    VERIFIER_EXCEPTION = "verifier_exception"
    VERIFIER_TIMEOUT = "verifier_timeout"
    VERIFIER_CRASH = "verifier_crash"
    BACKEND_UNAVAILABLE = "backend_unavailable"
    CONTRACT_VIOLATION = "contract_violation"


class Stage(StrEnum):
    """The rung of the ladder that decided the verdict."""

    EXTRACT = "extract"
    PARSE = "parse"
    EXECUTE = "execute"
    COMPARE = "compare"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One verifier's word on one completion.

    Plugins build it with `Verifier.judge` and `Verifier.abstain`; core stamps `verifier`,
    `version` and `latency_s`.
    """

    status: Status
    score: float | None = None
    """Finite and inside the verifier's `score_range`; None unless passed or failed."""
    failure: FailureCategory | None = None
    """None exactly when the status is passed."""
    stage: Stage | None = None
    diagnostics: Mapping[str, Json] = field(default_factory=dict)
    """Small (4 KiB as JSON at most) and without the ground truth: it is shown to people."""
    verifier: str = ""
    version: str = ""
    latency_s: float = 0.0

    @property
    def is_judgement(self) -> bool:
        """True when the verdict speaks about the completion (passed or failed)."""
        return self.status in (Status.PASSED, Status.FAILED)

    def to_json(self) -> dict[str, Json]:
        """Return the verdict as a JSON object, keys in the documented order."""
        return {
            "status": self.status.value,
            "score": self.score,
            "failure": self.failure.value if self.failure else None,
            "stage": self.stage.value if self.stage else None,
            "diagnostics": dict(self.diagnostics),
            "verifier": self.verifier,
            "version": self.version,
            "latency_s": self.latency_s,
        }
