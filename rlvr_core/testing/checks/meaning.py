"""Checks of what verdicts mean: golden cases, empty answers, echoes, unusable ground truths."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pydantic import BaseModel, ValidationError

from rlvr_core.api.verdicts import Json, Status, Verdict
from rlvr_core.testing.apart.parent import Finding
from rlvr_core.testing.cases import SCORE_TOLERANCE, GoldenCase
from rlvr_core.testing.check import SHAPED, Check, failed, not_applicable, passed
from rlvr_core.testing.report import Outcome
from rlvr_core.testing.subject import Level, Subject, row_of
from rlvr_core.verification.rows import RawRow

FLOORS: Mapping[Level, tuple[int, int, int]] = {"basic": (5, 5, 3), "listed": (20, 20, 10)}
"""Golden cases that pass, that fail, and that nearly pass, at least."""
_SHOWN = 5
_ODD_VALUES: tuple[Json, ...] = (None, {"odd": [None]}, [[[]]], "")

INVARIANCES: Mapping[str, Callable[[str], str]] = {
    "surrounding-whitespace": lambda text: f"\n  {text} \n\n",
    "line-ends": lambda text: text.replace("\n", "\r\n"),
}
"""Changes of a completion that a plugin may promise to be blind to."""


def golden(subject: Subject) -> Finding:
    """Hold the verdicts on golden cases against the scores that they expect."""
    if not subject.cases:
        return failed(
            "there are no golden cases; write them to golden.jsonl beside pyproject.toml, and name "
            "that folder with --project where the plugin was not installed from it"
        )
    wrong = []
    passing = failing = near = 0
    for case in subject.cases:
        verdict = subject.golden_verdicts[case.id]
        if not _is_expected(case, verdict):
            wrong.append(f"{case.id} expected {_expectation(case)}, got {_said(verdict)}")
            continue
        passing += verdict.status is Status.PASSED
        failing += verdict.status is Status.FAILED
        near += verdict.status is Status.FAILED and case.is_near_miss
    if wrong:
        more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        return failed(f"{'; '.join(wrong[:_SHOWN])}{more}")
    counts = f"{passing} pass, {failing} fail, {near} of them near misses"
    floors = FLOORS[subject.level]
    if any(count < floor for count, floor in zip((passing, failing, near), floors, strict=True)):
        return failed(f"too few golden cases: {counts}; wanted {floors[0]}, {floors[1]}, "
                      f"{floors[2]}")  # fmt: skip
    return passed(counts)


def _is_expected(case: GoldenCase, verdict: Verdict) -> bool:
    if case.is_near_miss and verdict.status is Status.PASSED:
        return False
    if not case.has_expected:
        return verdict.is_judgement
    if case.expected is None:
        return verdict.status is Status.ABSTAINED
    return verdict.score is not None and abs(verdict.score - case.expected) <= SCORE_TOLERANCE


def _expectation(case: GoldenCase) -> str:
    if not case.has_expected:
        return "a judgement"
    if case.is_near_miss and case.expected is None:
        return "a failure"
    return "abstained" if case.expected is None else f"{case.expected:g}"


def _said(verdict: Verdict) -> str:
    if verdict.score is not None:
        return f"{verdict.score:g}"
    why = verdict.diagnostics.get("message", "")
    return f"{verdict.status}/{verdict.failure}{': ' if why else ''}{str(why)[:120]}"


def references(subject: Subject) -> Finding:
    """Judge the completions that the verifier itself calls right."""
    found = subject.experiment("R21")
    if found.outcome is not Outcome.PASSED:
        return found
    written = found.data["references"]
    cases = [case for case in subject.bench_cases if written.get(case.id) is not None]
    if not cases:
        return not_applicable("reference_completion returns nothing for any golden case")
    verdicts = subject.judging.judge([row_of(case, written[case.id]) for case in cases])
    for case, verdict in zip(cases, verdicts, strict=True):
        if verdict.status is not Status.PASSED:
            return failed(f"the reference completion of case {case.id} got {_said(verdict)}")
    return passed(f"{len(cases)} reference completions pass")


def empty(subject: Subject) -> Finding:
    """Judge nothing at all."""
    cases = [case for case in subject.bench_cases if subject.golden_verdicts[case.id].is_judgement]
    rows = [(case, text) for case in cases for text in ("", " ", "\n\n")]
    verdicts = subject.judging.judge([row_of(case, text) for case, text in rows])
    for (case, text), verdict in zip(rows, verdicts, strict=True):
        if verdict.status is not Status.FAILED:
            return failed(f"{text!r} for the truth of case {case.id} got {_said(verdict)}")
    return passed(f"{len(rows)} empty completions fail")


def echo(subject: Subject) -> Finding:
    """Judge completions that only repeat the prompt, the ground truth within it."""
    rows = []
    for case in subject.attacked:
        truth = json.dumps(dict(case.row.ground_truth), ensure_ascii=False)
        prompt = f"Here is a task. Its checker was given this: {truth} Solve the task."
        rows.append(replace(row_of(case, prompt), prompt=prompt))
        if isinstance(case.row.prompt, str) and case.row.prompt.strip():
            rows.append(row_of(case, case.row.prompt))
    return must_not_pass(subject, rows, "an echo of the prompt")


def unusable_truths(subject: Subject) -> Finding:
    """Judge rows whose ground truth says nothing, or something odd."""
    model: type[BaseModel] = getattr(subject.cls, "GroundTruth")  # noqa: B009 - of verifiers only
    cases = [case for case in subject.plain_cases if _status(subject, case) is Status.PASSED][:1]
    rows = []
    for case in cases:
        truth = dict(case.row.ground_truth)
        needed = [name for name in truth if _is_needed(model, truth, name)]
        odd = [{key: truth[key] for key in truth if key != name} for name in needed]
        odd += [{**truth, name: value} for name in needed for value in _ODD_VALUES]
        rows += [replace(case.row, ground_truth=one) for one in [{}, *odd]]
    if not rows:
        return not_applicable("no golden case passes")
    for row, verdict in zip(rows, subject.judging.judge(rows), strict=True):
        is_empty = not row.ground_truth and verdict.status is not Status.ABSTAINED
        if is_empty or verdict.status in (Status.PASSED, Status.ERROR):
            shown = json.dumps(dict(row.ground_truth), ensure_ascii=False)[:80]
            return failed(f"with the ground truth {shown} a completion got {_said(verdict)}")
    return passed(f"{len(rows)} unusable ground truths, none of them judged right or broken")


def _status(subject: Subject, case: GoldenCase) -> Status:
    return subject.golden_verdicts[case.id].status


def _is_needed(model: type[BaseModel], truth: Mapping[str, Json], name: str) -> bool:
    """Tell whether the model refuses this truth without `name`."""
    try:
        model.model_validate({key: value for key, value in truth.items() if key != name})
    except ValidationError:
        return True
    return False


def invariances(subject: Subject) -> Finding:
    """Change completions in ways that the plugin promises to be blind to."""
    promised = subject.project.settings.invariances
    if not promised:
        return not_applicable("it promises none in [tool.rlvr.check] invariances")
    cases = subject.bench_cases
    for name in promised:
        rows = [row_of(case, INVARIANCES[name](case.row.completion)) for case in cases]
        for case, verdict in zip(cases, subject.judging.judge(rows), strict=True):
            before = subject.golden_verdicts[case.id]
            if (verdict.status, verdict.score) != (before.status, before.score):
                return failed(f"{name}: case {case.id} got {_said(before)}, then {_said(verdict)}")
    return passed(f"{len(cases)} cases under {', '.join(promised)}")


def monotone(subject: Subject) -> Finding:
    """Hold scores against the order that golden cases ask for."""
    pairs = [(case, case.better_than) for case in subject.cases if case.better_than is not None]
    if not pairs:
        return not_applicable("no golden case says better_than")
    for case, lower in pairs:
        better, worse = subject.golden_verdicts[case.id], subject.golden_verdicts[lower]
        if better.score is None or worse.score is None or better.score <= worse.score:
            return failed(f"{case.id} got {_said(better)}, {lower} got {_said(worse)}")
    return passed(f"{len(pairs)} pairs are in their order")


def must_not_pass(subject: Subject, rows: Sequence[RawRow], what: str) -> Finding:
    """Judge rows of which none may pass."""
    if not rows:
        return not_applicable("no golden case has a ground truth that tells answers apart")
    for row, verdict in zip(rows, subject.judging.judge(rows), strict=True):
        if verdict.status is Status.PASSED:
            return failed(f"{what} passes for case {row.id}: {row.completion[:120]!r}")
    return passed(f"{len(rows)} times {what}, none passes")


CHECKS = (
    Check(
        "R20",
        "Golden cases get the scores that they expect; 5 pass, 5 fail, 3 of these are near misses "
        "(listed: 20, 20, 10).",
        golden,
        SHAPED,
    ),
    Check("R21", "reference_completion(ground_truth) passes.", references, SHAPED),
    Check("R22", "An empty completion fails.", empty, SHAPED),
    Check("R23", "A prompt that is repeated, with the ground truth in it, does not pass.", echo,
          (*SHAPED, "R20")),
    Check("R24", "A ground truth that is missing or odd abstains, and never passes or breaks.",
          unusable_truths, SHAPED),
    Check("C25", "Promised invariances hold.", invariances, (*SHAPED, "R20")),
    Check("C26", "A graded score is higher where a golden case says better_than.", monotone,
          (*SHAPED, "R20")),
)  # fmt: skip
