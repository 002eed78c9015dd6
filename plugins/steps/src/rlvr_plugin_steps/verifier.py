"""The plugin: checks the answer, aligns the steps, refuses references that align with nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from pydantic import Field, model_validator

from rlvr_core.api import (
    FailureCategory,
    Finding,
    FinishReason,
    Json,
    Resource,
    Row,
    RowVerifier,
    Severity,
    Stage,
    Strict,
    Verdict,
    VerifyRow,
    after_reasoning,
    hookimpl,
)
from rlvr_plugin_steps.coverage import LEAST_COVERAGE, measure_coverage
from rlvr_plugin_steps.grading import Grade, grade
from rlvr_plugin_steps.truth import Truth

MAX_CHARACTERS = 200_000
"""How long what follows the reasoning may be; no honest answer comes near."""


class Steps(RowVerifier):
    """Scores the steps of a solution against those of a reference, behind the final answer."""

    api_version: ClassVar[str] = "1.0"
    resource: ClassVar[Resource] = Resource.CPU

    class Config(Strict):
        """Settings of the verifier."""

        answer_share: float = Field(
            default=0.1,
            ge=0,
            lt=1,
            description="What a right answer earns alone, and what steps to a wrong or missing one "
            "earn at most.",
        )
        pass_mark: float = Field(
            default=0.75, gt=0, le=1, description="A score from here on is `passed`."
        )

        @model_validator(mode="after")
        def _answer_alone_does_not_pass(self) -> Self:
            if self.answer_share >= self.pass_mark:
                raise ValueError("`answer_share` must be less than `pass_mark`")
            return self

    GroundTruth = Truth
    config: Config

    def __init__(self, config: Config | None = None, *, name: str = "") -> None:
        """Take the pass mark from the settings."""
        super().__init__(config, name=name)
        self.pass_mark = self.config.pass_mark

    def verify_row(self, row: VerifyRow) -> Verdict:
        """Judge one completion."""
        text = after_reasoning(row.completion)
        if text is None:
            return self.judge(0.0, _missing(row), Stage.EXTRACT)
        if len(text) > MAX_CHARACTERS:
            message = f"the answer has more than {MAX_CHARACTERS:,} characters"
            return self.judge(0.0, FailureCategory.RESOURCE_LIMIT, Stage.EXTRACT, message=message)
        graded = grade(text, row.ground_truth)
        score = graded.score(self.config.answer_share)
        shown = _diagnostics(graded)
        if graded.is_right is None:
            return self.judge(score, _missing(row), Stage.EXTRACT, **shown)
        failure = FailureCategory.CONSTRAINT if graded.is_right else FailureCategory.WRONG_ANSWER
        return self.judge(score, failure, **shown)

    def reference_completion(self, ground_truth: Truth) -> str:
        """Return a completion that passes: the reference itself."""
        return ground_truth.solution()

    @hookimpl
    def rlvr_audit_prompts(self, rows: Sequence[Row]) -> list[Finding]:
        """Refuse training rows of which too few have steps to align with, and name such rows."""
        own = [row for row in rows if row.verifier == self.name]
        coverage = measure_coverage([Truth.model_validate(row.ground_truth) for row in own])
        faulty = [row for row, fault in zip(own, coverage.found, strict=True) if fault]
        if not faulty:
            return []
        reasons = ", ".join(f"{count} {fault}" for fault, count in coverage.faults.items())
        message = (
            f"{self.name}: {coverage.usable} of {coverage.rows} references can be aligned with "
            f"({coverage.share:.0%}, at least {LEAST_COVERAGE:.0%} must); the others: {reasons}"
        )
        severity = Severity.WARN if coverage.is_enough else Severity.REFUSE
        return [Finding(severity=severity, message=message, rows=faulty)]


def _missing(row: VerifyRow) -> FailureCategory:
    """Return why there is no answer; one cut off is told apart."""
    if row.finish_reason is FinishReason.LENGTH:
        return FailureCategory.TRUNCATED
    return FailureCategory.NO_ANSWER


def _diagnostics(graded: Grade) -> dict[str, Json]:
    return {
        "answer": {True: "right", False: "wrong", None: "none"}[graded.is_right],
        "steps": graded.steps,
        "matched": graded.alignment.matched,
        "precision": round(graded.alignment.precision, 4),
        "recall": round(graded.alignment.recall, 4),
        "wrong_lines": graded.wrong_lines,
    }
