"""Check what a verifier returned, and turn it into bytes.

A verdict that breaks the contract becomes ``error`` / ``contract_violation`` with one sentence that
says what was expected and what came.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from rlvr_core.api.errors import described
from rlvr_core.api.plugin import Verifier
from rlvr_core.api.verdicts import FailureCategory, Json, Stage, Status, Verdict

MAX_DIAGNOSTICS_BYTES = 4096
"""As JSON in UTF-8."""

_OF_ABSTAINED = frozenset({FailureCategory.NOT_APPLICABLE, FailureCategory.BAD_GROUND_TRUTH})
_OF_ERROR = frozenset(
    {
        FailureCategory.VERIFIER_EXCEPTION,
        FailureCategory.VERIFIER_TIMEOUT,
        FailureCategory.VERIFIER_CRASH,
        FailureCategory.BACKEND_UNAVAILABLE,
        FailureCategory.CONTRACT_VIOLATION,
    }
)
FAILURES: Mapping[Status, frozenset[FailureCategory | None]] = {
    Status.PASSED: frozenset({None}),
    Status.FAILED: frozenset(FailureCategory) - _OF_ABSTAINED - _OF_ERROR,
    Status.ABSTAINED: _OF_ABSTAINED,
    Status.ERROR: _OF_ERROR,
}
"""Which failure categories go with which status."""

_STATUSES = {status.value: status for status in Status}
_CATEGORIES = {category.value: category for category in FailureCategory}
_STAGES = {stage.value: stage for stage in Stage}
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class ContractError(Exception):
    """A verifier returned, or a worker sent, something that it may not."""


class Contract:
    """What the verdicts of one verifier must look like."""

    def __init__(self, verifier: Verifier) -> None:
        self.lowest, self.highest = verifier.score_range
        self.pass_mark = self.highest if verifier.pass_mark is None else verifier.pass_mark

    def encode(self, verdict: Any, latency_s: float) -> bytes:
        """Return a verdict as bytes.

        Raises:
            ContractError: It is not a verdict that this verifier may return.
        """
        if not isinstance(verdict, Verdict):
            raise ContractError(f"expected a Verdict, got {described(verdict)}")
        failure = verdict.failure
        if verdict.status not in FAILURES or failure not in FAILURES[verdict.status]:
            raise ContractError(_wrong_failure(verdict))
        if verdict.stage is not None and verdict.stage not in _STAGES:
            raise ContractError(f"expected a Stage or None, got {described(verdict.stage)}")
        score = self._checked_score(verdict)
        return encode(verdict.status, score, failure, verdict.stage, verdict.diagnostics, latency_s)

    def _checked_score(self, verdict: Verdict) -> float | None:
        score, status = verdict.score, verdict.status
        if not verdict.is_judgement:
            if score is not None:
                raise ContractError(f"expected no score with status {status.value}, got {score!r}")
            return None
        if isinstance(score, bool) or not isinstance(score, Real):
            raise ContractError(
                f"expected a number as score with status {status.value}, got {described(score)}"
            )
        try:
            number = float(score)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise ContractError(f"expected a finite score, got {number}")
        if not self.lowest <= number <= self.highest:
            raise ContractError(
                f"expected a score in [{self.lowest:g}, {self.highest:g}], got {number!r}"
            )
        if (number >= self.pass_mark) != (status is Status.PASSED):
            raise ContractError(
                f"status {status.value} does not fit score {number!r} and pass mark "
                f"{self.pass_mark:g}"
            )
        return number


def check_count(verdicts: Any, count: int) -> Sequence[Any]:
    """Return `verdicts` if it is a sequence of `count` items.

    Raises:
        ContractError: It is not.
    """
    if not isinstance(verdicts, Sequence) or isinstance(verdicts, str | bytes):
        raise ContractError(
            f"expected a sequence of {count} verdicts from rlvr_verify, got {described(verdicts)}"
        )
    if len(verdicts) != count:
        raise ContractError(
            f"expected {count} verdicts from rlvr_verify, one a row, got {len(verdicts)}"
        )
    return verdicts


def encode(
    status: Status,
    score: float | None,
    failure: FailureCategory | None,
    stage: Stage | None,
    diagnostics: Mapping[str, Json],
    latency_s: float,
) -> bytes:
    """Return a verdict as bytes; `decode` turns them back.

    Raises:
        ContractError: The diagnostics are not JSON, or too big.
    """
    if not isinstance(diagnostics, Mapping):
        raise ContractError(f"expected a mapping as diagnostics, got {described(diagnostics)}")
    try:
        text = _encode([status, score, failure, stage, dict(diagnostics), round(latency_s, 6)])
        data = text.encode("utf-8", "surrogatepass")
        if len(data) > MAX_DIAGNOSTICS_BYTES:
            size = len(_encode(dict(diagnostics)).encode("utf-8", "surrogatepass"))
            if size > MAX_DIAGNOSTICS_BYTES:
                raise ContractError(
                    f"expected at most {MAX_DIAGNOSTICS_BYTES} bytes of diagnostics as JSON, "
                    f"got {size}"
                )
    except (TypeError, ValueError, RecursionError) as exc:
        raise ContractError(f"expected diagnostics that are JSON, but: {exc}") from exc
    return data


def decode(data: bytes, verifier: str, version: str) -> Verdict:
    """Return the verdict of bytes made by `encode`, stamped with its verifier.

    Raises:
        ContractError: The bytes are none that `encode` makes.
    """
    try:
        return _decoded(json.loads(data.decode("utf-8", "surrogatepass")), verifier, version)
    except (LookupError, TypeError, ValueError, RecursionError) as exc:
        raise ContractError(f"expected an encoded verdict, but: {exc}") from exc


def _decoded(values: Json, verifier: str, version: str) -> Verdict:
    status, score, failure, stage, diagnostics, latency_s = values
    return Verdict(
        status=_STATUSES[status],
        score=None if score is None else float(score),
        failure=_CATEGORIES[failure] if failure else None,
        stage=_STAGES[stage] if stage else None,
        diagnostics=dict(diagnostics),
        verifier=verifier,
        version=version,
        latency_s=float(latency_s),
    )


def _wrong_failure(verdict: Verdict) -> str:
    allowed = FAILURES.get(verdict.status)
    if allowed is None:
        return f"expected a Status, got {described(verdict.status)}"
    names = ", ".join(sorted(category.value for category in allowed if category)) or "none"
    got = getattr(verdict.failure, "value", repr(verdict.failure))
    return f"expected with status {verdict.status.value} one of these failures: {names}; got {got}"
