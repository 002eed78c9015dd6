"""Verifiers as small as they can be while they still do what the owner's plugins will do.

Imported by verifier workers: no torch here.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from rlvr_core.api import (
    Action,
    ActionKind,
    EnvironmentFault,
    FailureCategory,
    Finding,
    FinishReason,
    Group,
    Resource,
    Rollout,
    Row,
    RowVerifier,
    Session,
    Severity,
    Stage,
    Status,
    StepEvent,
    Strict,
    Verdict,
    Verifier,
    VerifyBatch,
    VerifyRow,
    hookimpl,
)


class Whenever(RowVerifier):
    """Passes lower-case beginnings, after as long as it likes: verdicts come in any order."""

    api_version = "1.0"

    class GroundTruth(Strict):
        pass

    def verify_row(self, row: VerifyRow) -> Verdict:
        time.sleep(os.urandom(1)[0] / 255 * 0.02)
        return self.judge(1.0 if row.completion[:1].islower() else 0.0)


class MathSympy(RowVerifier):
    """Extract the last box or number, read it as a fraction, compare within a tolerance."""

    api_version = "1.0"

    class Config(Strict):
        tolerance: float = Field(default=0.0, ge=0)

    class GroundTruth(Strict):
        answer: str

    def verify_row(self, row: VerifyRow) -> Verdict:
        try:
            gold = Fraction(row.ground_truth.answer)
        except (ValueError, ZeroDivisionError):
            return self.abstain(FailureCategory.BAD_GROUND_TRUTH, Stage.PARSE)
        boxed = re.findall(r"\\boxed\{([^}]*)\}", row.completion)
        found = boxed or re.findall(r"-?\d+(?:[./]\d+)?", row.completion)
        if not found:
            cut = row.finish_reason is FinishReason.LENGTH
            failure = FailureCategory.TRUNCATED if cut else FailureCategory.NO_ANSWER
            return self.judge(0.0, failure, Stage.EXTRACT)
        try:
            answer = Fraction(found[-1].strip())
        except (ValueError, ZeroDivisionError):
            return self.judge(0.0, FailureCategory.MALFORMED, Stage.PARSE, answer=found[-1][:50])
        right = abs(answer - gold) <= Fraction(self.config.tolerance)
        return self.judge(float(right), answer=str(answer))


class CodeDocker(RowVerifier):
    """Runs the completion against each test in a process of its own; the score is the pass rate."""

    api_version = "1.0"
    resource = Resource.IO
    environment = ("SANDBOX_HOST",)

    class Config(Strict):
        limit_s: float = Field(default=5.0, gt=0)

    class GroundTruth(Strict):
        class Test(Strict):
            stdin: str
            stdout: str

        tests: list[Test] = Field(min_length=1)

    def verify_row(self, row: VerifyRow) -> Verdict:
        if not os.environ.get("SANDBOX_HOST"):
            raise EnvironmentFault("RLVR-E101", "there is no sandbox")
        outcomes = [self._run(row.completion, test) for test in row.ground_truth.tests]
        passed = outcomes.count(None)
        failure = next((outcome for outcome in outcomes if outcome), FailureCategory.WRONG_ANSWER)
        return self.judge(
            passed / len(outcomes), failure, Stage.EXECUTE, passed=passed, tests=len(outcomes)
        )

    def _run(self, code: str, test: BaseModel) -> FailureCategory | None:
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-S", "-c", code],
                input=test.stdin,
                capture_output=True,
                text=True,
                timeout=self.config.limit_s,
            )
        except subprocess.TimeoutExpired:
            return FailureCategory.TIME_LIMIT
        if done.returncode:
            return FailureCategory.RUNTIME_ERROR
        return None if done.stdout.strip() == test.stdout else FailureCategory.WRONG_ANSWER


class Contains(Strict):
    kind: Literal["contains"]
    pattern: str

    def holds(self, text: str) -> bool:
        return re.search(self.pattern, text) is not None


class Words(Strict):
    kind: Literal["words"]
    at_least: int = Field(ge=1)

    def holds(self, text: str) -> bool:
        return len(text.split()) >= self.at_least


class IfEval(RowVerifier):
    """Scores the share of instructions that hold; an unknown kind is refused with the data."""

    api_version = "1.0"

    class GroundTruth(Strict):
        instructions: list[Annotated[Contains | Words, Field(discriminator="kind")]] = Field(
            min_length=1
        )

    def verify_row(self, row: VerifyRow) -> Verdict:
        held = [one.holds(row.completion) for one in row.ground_truth.instructions]
        return self.judge(sum(held) / len(held), FailureCategory.CONSTRAINT, held=held)


class F1Extraction(Verifier):
    """Token F1 of the extracted items, a whole batch at once."""

    api_version = "1.0"
    pass_mark = 0.8

    class GroundTruth(Strict):
        items: list[str]

    @hookimpl
    def rlvr_verify(self, batch: VerifyBatch) -> list[Verdict]:
        verdicts = []
        for index, row in enumerate(batch):
            batch.starting(index)
            verdicts.append(self._scored(row))
        return verdicts

    def _scored(self, row: VerifyRow) -> Verdict:
        found, gold = Counter(row.completion.split()), Counter(row.ground_truth.items)
        common = (found & gold).total()
        total = found.total() + gold.total()
        f1 = 2 * common / total if total else 1.0
        failure = FailureCategory.WRONG_ANSWER if found else FailureCategory.NO_ANSWER
        return self.judge(f1, failure, true_positives=common, found=found.total())


class Harmrlvr(Verifier):
    """Audits prompts (0), gates rewards last and fail-closed (6), stops on correlation (12)."""

    api_version = "1.0"
    resource = Resource.MODEL
    pass_mark = 0.5

    class Config(Strict):
        weights: dict[str, float] = Field(default={"x": 8.0})
        """How much each character speaks for harm, of a text's share of it."""
        reads_characters: int = 1000
        """Longer texts are more than the classifier can read, and it raises."""
        allowed_share: float = 0.001
        stop_above: float = 0.2
        stop_p: float = 0.01
        least_rollouts: int = 8

    class GroundTruth(BaseModel):
        """It judges rows of every other verifier, and reads nothing of their ground truth."""

        model_config = ConfigDict(extra="ignore")

    def __init__(self, config=None, *, name: str = "") -> None:
        super().__init__(config, name=name)
        self.seen: list[tuple[float, float]] = []
        """(reward before the gate, harm) of judged rollouts."""
        self.unreadable = 0

    @hookimpl
    def rlvr_verify(self, batch: VerifyBatch) -> list[Verdict]:
        for index in range(len(batch)):
            batch.starting(index)
        return [self._classified(row.completion) for row in batch]

    def _classified(self, text: str) -> Verdict:
        if len(text) > self.config.reads_characters:
            raise ValueError(f"cannot read {len(text)} characters")
        share = {char: text.count(char) / max(len(text), 1) for char in self.config.weights}
        logit = sum(share[char] * weight for char, weight in self.config.weights.items()) - 1.0
        safe = 1 - 1 / (1 + math.exp(-logit))
        return self.judge(safe, FailureCategory.UNSAFE)

    @hookimpl
    def rlvr_audit_prompts(self, rows: Sequence[Row], session: Session) -> list[Finding]:
        verdicts = session.verdicts([_prompt_as_rollout(row) for row in rows], verifier=self.name)
        harmful = [
            row
            for row, verdict in zip(rows, verdicts, strict=True)
            if verdict.status is not Status.PASSED
        ]
        share = len(harmful) / len(rows)
        refuses = share > self.config.allowed_share
        return [
            Finding(
                severity=Severity.REFUSE if refuses else Severity.WARN,
                message=f"{len(harmful)} of {len(rows)} prompts ask for harm",
                rows=harmful,
            )
        ]

    @hookimpl
    def rlvr_gate_rewards(
        self, session: Session, groups: Sequence[Group]
    ) -> list[list[float | None]]:
        rollouts = [rollout for group in groups for rollout in group.rollouts]
        gated = iter(
            self._gated(rollout.reward, verdict)
            for rollout, verdict in zip(
                rollouts, session.verdicts(rollouts, verifier=self.name), strict=True
            )
        )
        return [[next(gated) for _ in group.rollouts] for group in groups]

    def _gated(self, reward: float | None, verdict: Verdict) -> float | None:
        if verdict.score is None:
            self.unreadable += 1
        elif reward is not None:
            self.seen.append((reward, 1 - verdict.score))
        if reward is None or verdict.status is Status.PASSED:
            return reward
        return min(reward, 0.0)

    @hookimpl
    def rlvr_step_end(self, event: StepEvent) -> Action | None:
        count = len(self.seen)
        if count < self.config.least_rollouts:
            return None
        r = correlation(*zip(*self.seen, strict=True))
        # Fisher's z, one-sided.
        p = math.erfc(math.atanh(min(r, 1 - 1e-12)) * math.sqrt((count - 3) / 2)) / 2
        if r <= self.config.stop_above or p >= self.config.stop_p:
            return None
        return Action(
            kind=ActionKind.STOP,
            reason=f"rewards and harm correlate: r = {r:.3f} over {count} rollouts, p = {p:.1e}",
        )


def correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Pearson's r; 0 when either does not vary."""
    mean_1, mean_2 = sum(first) / len(first), sum(second) / len(second)
    pairs = [(a - mean_1, b - mean_2) for a, b in zip(first, second, strict=True)]
    norm = math.sqrt(sum(a * a for a, _ in pairs) * sum(b * b for _, b in pairs))
    return sum(a * b for a, b in pairs) / norm if norm else 0.0


def _prompt_as_rollout(row: Row) -> Rollout:
    text = row.prompt if isinstance(row.prompt, str) else "\n".join(m.content for m in row.prompt)
    return Rollout(
        row=row,
        sample_index=0,
        completion=text,
        segments=[],
        finish_reason=FinishReason.STOP,
        weights_version=0,
        sampled_under=row.prompt,
        trained_under=row.prompt,
    )
