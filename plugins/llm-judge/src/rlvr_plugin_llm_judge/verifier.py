"""The plugin: gates, asks the judges, watches them, and refuses to train unproven."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import TimeoutError as NotInTimeError
from dataclasses import dataclass
from typing import ClassVar, Self

from pydantic import Field, PrivateAttr, model_validator

from rlvr_core.api import (
    Action,
    ActionKind,
    FailureCategory,
    Finding,
    FinishReason,
    Json,
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
    VerifyRow,
    after_reasoning,
    hookimpl,
)
from rlvr_plugin_llm_judge.calibration import (
    Calibration,
    mismatch,
    read_calibration,
    unproven,
)
from rlvr_plugin_llm_judge.canaries import Canary, WrongAnswer, canary, watch_for
from rlvr_plugin_llm_judge.chat import KEY_NAMES, Endpoint, UnansweredError
from rlvr_plugin_llm_judge.gate import MAX_CHARACTERS, nothing_in
from rlvr_plugin_llm_judge.panel import Decision, Panel
from rlvr_plugin_llm_judge.prompt import question
from rlvr_plugin_llm_judge.rubric import CORRECT, Criterion

_TRIAL = "I do not know the answer to this."
_SHOWN_ROWS = 20
_MEMBER = "/"


class Truth(Strict):
    """What a data row must say."""

    reference: str | None = Field(
        default=None,
        min_length=1,
        description="A right answer. Needed unless the config has criteria of its own.",
    )
    notes: str | None = Field(
        default=None, min_length=1, description="What a grader should know about this row."
    )


class Settings(Strict):
    """Settings of the verifier."""

    judges: tuple[Endpoint, ...] = Field(
        min_length=1,
        max_length=3,
        description="One judge, two that must agree, or three of which the median counts.",
    )
    criteria: tuple[Criterion, ...] = Field(
        default=(CORRECT,), min_length=1, max_length=16, description="The rubric."
    )
    pass_mark: float = Field(
        default=1.0, gt=0, le=1, description="The weighted share of marks that passes."
    )
    calibration: str | None = Field(
        default=None,
        description="The file that `rlvr-llm-judge calibrate` wrote, seen from the folder that the "
        "command runs in. Training needs it.",
    )
    deadline_s: float = Field(
        default=9.0,
        gt=0,
        le=3600,
        description="Seconds for one row, all judges and repetitions included. Keep it below the "
        "entry's timeout_s.",
    )
    canary_every: int = Field(default=16, ge=1, le=1024, description="Rows that share one canary.")
    _calibration: Calibration | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _fit(self) -> Self:
        names = [criterion.name for criterion in self.criteria]
        if len(set(names)) < len(names):
            raise ValueError("two criteria have the same name")
        judges = [(judge.base_url, judge.model) for judge in self.judges]
        if len(set(judges)) < len(judges):
            raise ValueError("two judges are the same model at the same endpoint")
        if self.calibration is not None:
            self._calibration = read_calibration(self.calibration)
            reason = mismatch(self._calibration, judges, self.criteria, self.of_the_verdict())
            if reason:
                raise ValueError(f"{self.calibration} is not of this judge: {reason}")
        return self

    @property
    def calibrated(self) -> Calibration | None:
        """What stands in the calibration file."""
        return self._calibration

    @property
    def needs_reference(self) -> bool:
        """Whether the rubric is the one that compares with a reference."""
        return self.criteria == (CORRECT,)

    def of_the_verdict(self) -> dict[str, Json]:
        """Return the settings that a verdict depends on."""
        settings: dict[str, Json] = self.model_dump(
            mode="json", exclude={"calibration", "deadline_s", "canary_every"}
        )
        for judge in settings["judges"]:
            del judge["api_key_env"]
        return settings


@dataclass(frozen=True, slots=True)
class Examination:
    """A verdict and how it came about."""

    verdict: Verdict
    decision: Decision | None = None
    """None: no judge was asked, or none answered."""


class LlmJudge(RowVerifier):
    """Has answers judged by a language model."""

    api_version: ClassVar[str] = "1.0"
    resource: ClassVar[Resource] = Resource.IO
    environment: ClassVar[Sequence[str]] = KEY_NAMES
    Config = Settings
    GroundTruth = Truth
    config: Settings

    @classmethod
    def version_parts(cls, config: Settings) -> Json:
        """Return the digest of the calibration: canaries are made of it, and they mask verdicts."""
        if config.calibrated is None:
            return None
        return hashlib.sha256(config.calibrated.model_dump_json().encode()).hexdigest()

    def __init__(self, config: Settings | None = None, *, name: str = "") -> None:
        super().__init__(config, name=name)
        reasons = unproven(self.config.calibrated, self.config.criteria)
        # Core calls `<who asks>/<member>` what another verifier asks; no entry is called so. The
        # prompts are never shown to a member, so that it cannot wait for them to refuse.
        if _MEMBER in name and reasons:
            raise ValueError(f"{name} may not judge for another verifier: {'; '.join(reasons)}")
        self.pass_mark = self.config.pass_mark
        self._panel = Panel(self.config.judges, self.config.criteria, self.config.pass_mark)
        self._watch = watch_for(self.config.model_dump_json(), self.config.canary_every)
        self._trains = False

    def verify_row(self, row: VerifyRow) -> Verdict:
        """Judge one completion."""
        return self.examine(row).verdict

    def examine(self, row: VerifyRow) -> Examination:
        """Judge one completion, and return with the verdict what each judge said."""
        truth: Truth = row.ground_truth
        if self.config.needs_reference and truth.reference is None:
            message = "the ground truth has no reference, and the rubric compares with it"
            return Examination(self.abstain(FailureCategory.BAD_GROUND_TRUTH, message=message))
        answer = after_reasoning(row.completion)
        reason = "unfinished reasoning" if answer is None else nothing_in(answer, truth.reference)
        if answer is None or reason is not None:
            was_cut = row.finish_reason is FinishReason.LENGTH
            failure = FailureCategory.TRUNCATED if was_cut else FailureCategory.NO_ANSWER
            return Examination(self.judge(0.0, failure, Stage.EXTRACT, gate=reason))
        if len(answer) > MAX_CHARACTERS:
            message = f"the answer has more than {MAX_CHARACTERS:,} characters"
            failure = FailureCategory.RESOURCE_LIMIT
            return Examination(self.judge(0.0, failure, Stage.EXTRACT, message=message))
        return self._asked(row, truth, answer)

    @hookimpl
    def rlvr_audit_prompts(self, rows: Sequence[Row], session: Session) -> list[Finding]:
        """Refuse to train unproven, and without a judge that answers."""
        mine = [row for row in rows if row.verifier == self.name]
        reasons = unproven(self.config.calibrated, self.config.criteria)
        if not mine:
            warned = (
                f"{self.name} is not proven, and no training row is its own: {'; '.join(reasons)}"
            )
            return [Finding(severity=Severity.WARN, message=warned)] if reasons else []
        self._trains = True
        found = [
            Finding(severity=Severity.REFUSE, message=f"{self.name} may not train: {reason}")
            for reason in reasons
        ]
        bare = [row for row in mine if not row.ground_truth.get("reference")]
        if self.config.needs_reference and bare:
            message = f"{self.name}: {len(bare)} rows have no reference, and the rubric needs one"
            found.append(
                Finding(severity=Severity.REFUSE, message=message, rows=bare[:_SHOWN_ROWS])
            )
        if found:
            return found
        [verdict] = session.verdicts([_trial(mine[0])], self.name)
        if verdict.status is Status.ERROR:
            message = f"{self.name} does not judge: {verdict.diagnostics.get('message', '')}"
            return [Finding(severity=Severity.REFUSE, message=message)]
        return []

    @hookimpl
    def rlvr_step_end(self, event: StepEvent) -> list[Action]:
        """Sound the alarm for canaries that passed."""
        kinds = [
            str(rollout.verdict.diagnostics["canary"])
            for group in event.groups
            for rollout in group.rollouts
            if rollout.verdict is not None
            and rollout.verdict.verifier == self.name
            and "canary" in rollout.verdict.diagnostics
        ]
        if not kinds:
            return []
        reason = (
            f"{self.name}: {len(kinds)} verdicts of step {event.step} are masked, since canaries "
            f"were not held to be wrong: {', '.join(sorted(set(kinds)))}"
        )
        return [Action(kind=ActionKind.WARN, reason=reason)]

    def state(self) -> Mapping[str, Json]:
        """Return whether training rows are judged: a resume must ask again whether they may be."""
        return {"trains": self._trains}

    def load_state(self, state: Mapping[str, Json]) -> None:
        """Take back what `state` returned.

        Raises:
            ValueError: The judge trained, and is not proven as it is now.
        """
        self._trains = bool(state["trains"])
        reasons = unproven(self.config.calibrated, self.config.criteria)
        if self._trains and reasons:
            raise ValueError(f"{self.name} may not train: {'; '.join(reasons)}")

    def _asked(self, row: VerifyRow, truth: Truth, answer: str) -> Examination:
        """Ask the judges about an answer that is worth it."""
        deadline_s = time.monotonic() + self.config.deadline_s
        held = self._watch.enter(
            lambda turn: self._judged(
                canary(turn, row.prompt, truth.reference, truth.notes, self._wrong())
            )
        )
        rubric = self.config.criteria
        asked = question(row.prompt, answer, truth.reference, truth.notes, rubric)
        try:
            decision = self._panel.decide(asked, deadline_s)
            self._require_the_calibrated(decision)
            problem = held.result(max(0.0, deadline_s - time.monotonic()))
        except UnansweredError as error:
            return Examination(_broken(str(error)))
        except NotInTimeError:
            return Examination(_broken("the canary of its batch was not judged in time"))
        if problem is not None:
            kind, _, message = problem.partition(": ")
            return Examination(_broken(message, canary=kind))
        shown: dict[str, Json] = {"criteria": decision.marks}
        if len(decision.opinions) > 1:
            shown["judges"] = [dict(opinion.marks) for opinion in decision.opinions]
        if decision.score is None:
            verdict = self.abstain(message="the two judges differ", stage=Stage.COMPARE, **shown)
        else:
            verdict = self.judge(decision.score, **shown)
        return Examination(verdict, decision)

    def _judged(self, one: Canary) -> str | None:
        """Return what a canary says against the judge, as ``kind: sentence``, or None."""
        deadline_s = time.monotonic() + self.config.deadline_s
        rubric = self.config.criteria
        asked = question(one.prompt, one.answer, one.reference, one.notes, rubric)
        try:
            decision = self._panel.decide(asked, deadline_s)
        except UnansweredError as error:
            return f"{one.kind}: the canary of its batch got no verdict: {error}"
        if decision.score is None or decision.score < self.config.pass_mark:
            return None
        return f"{one.kind}: the judge let a wrong answer pass, so its verdicts do not count"

    def _require_the_calibrated(self, decision: Decision) -> None:
        if self.config.calibrated is None:
            return
        for facts, opinion in zip(self.config.calibrated.judges, decision.opinions, strict=True):
            if opinion.model != facts.reported:
                raise UnansweredError(
                    f"{facts.base_url} answers as {opinion.model[:80]!r}, and was calibrated as "
                    f"{facts.reported[:80]!r}"
                )

    def _wrong(self) -> Sequence[WrongAnswer]:
        return self.config.calibrated.wrong if self.config.calibrated else ()


def _broken(message: str, **more: Json) -> Verdict:
    return Verdict(
        status=Status.ERROR,
        failure=FailureCategory.BACKEND_UNAVAILABLE,
        diagnostics={"message": message[:800], **more},
    )


def _trial(row: Row) -> Rollout:
    """Return an answer to a training row that is there to see whether the judge answers."""
    return Rollout(
        row=row,
        sample_index=0,
        completion=_TRIAL,
        segments=[],
        finish_reason=FinishReason.STOP,
        weights_version=0,
        sampled_under=row.prompt,
        trained_under=row.prompt,
    )
