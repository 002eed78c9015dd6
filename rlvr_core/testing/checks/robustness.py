"""Checks with long, odd and expensive completions, and of a verifier that hangs or breaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from rlvr_core.api.verdicts import FailureCategory, Status
from rlvr_core.testing import adversarial
from rlvr_core.testing.apart.parent import Finding
from rlvr_core.testing.check import SHAPED, Check, apart, failed, not_applicable, passed
from rlvr_core.testing.stalling import STALL, stalling_ref
from rlvr_core.testing.subject import Subject, row_of

_TRUTHS = 3
_STALL_DEADLINE_S = 1.0
_FAST_ROWS = 4


def endures(subject: Subject, texts: Callable[[str], Mapping[str, str]]) -> Finding:
    """Judge hostile completions: each must be judged, in time."""
    cases = subject.bench_cases[:: max(1, len(subject.bench_cases) // _TRUTHS)][:_TRUTHS]
    rows = [
        (name, row_of(case, text))
        for case in cases
        for name, text in texts(case.row.completion).items()
    ]
    for (name, row), verdict in zip(
        rows, subject.judging.judge([row for _, row in rows]), strict=True
    ):
        if verdict.status is Status.ERROR:
            why = str(verdict.diagnostics.get("message", ""))[:200]
            return failed(f"{name}, for the truth of case {row.id}: {verdict.failure}: {why}")
    return passed(f"{len(rows)} completions judged, each within {subject.timeout_s:g} s")


def hangs(subject: Subject) -> Finding:
    """Let a row hang beside the verifier, and judge before and after."""
    cases = [case for case in subject.bench_cases if _is_fast(subject, case.id)][:_FAST_ROWS]
    if not cases:
        return not_applicable("no golden case takes less than half a second")
    rows = [case.row for case in cases]
    stall = replace(row_of(cases[0], STALL), id="stall")
    before, hung, after = subject.judging.judge_around(
        stalling_ref(subject.ref), rows, stall, _STALL_DEADLINE_S
    )
    if hung.failure is not FailureCategory.VERIFIER_TIMEOUT:
        return failed(f"a row that hangs got {hung.status}/{hung.failure}")
    for case, one, other in zip(cases, before, after, strict=True):
        if (one.status, one.score) != (other.status, other.score):
            why = str(other.diagnostics.get("message", ""))[:200]
            return failed(
                f"case {case.id} got {one.status}, and {other.status} after its worker was killed"
                f"{': ' if why else ''}{why}"
            )
    return passed("a row that hangs costs its own deadline, and the next batch is judged")


def _is_fast(subject: Subject, case_id: str) -> bool:
    verdict = subject.golden_verdicts[case_id]
    return verdict.latency_s < _STALL_DEADLINE_S / 2 and verdict.status is not Status.ERROR


def _of(texts: Callable[[], Mapping[str, str]]) -> Callable[[Subject], Finding]:
    return partial(endures, texts=lambda _: texts())


CHECKS = (
    Check("R40", "Completions of 100,000 characters are judged in time.",
          partial(endures, texts=adversarial.long_texts), SHAPED),
    Check("R41", "NUL, lone surrogates, bidi marks, mixed scripts and 10,000 nested brackets are "
          "judged.", _of(adversarial.odd_texts), SHAPED),
    Check("R42", "Power towers and huge integers are judged in time.",
          _of(adversarial.huge_numbers), SHAPED),
    Check("R43", "Texts on which patterns backtrack are judged in time.",
          _of(adversarial.regex_traps), SHAPED),
    apart("R44", "It works in a thread that is not the main one, and installs no signal handlers.",
          (*SHAPED, "R30")),
    Check("R45", "A row that hangs is ended at its deadline, and the next batch is judged as "
          "before.", hangs, (*SHAPED, "R30")),
    apart("R46", "A fault of its own gets out or becomes status error, never failed.", SHAPED),
)  # fmt: skip
