"""``combine``: one verdict of several verifiers, by a rule that the stack declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rlvr_core.api import (
    FailureCategory,
    Stage,
    Status,
    Strict,
    Verdict,
    Verifier,
    VerifyBatch,
    hookimpl,
)

_MOST_MEMBERS = 8
_LONGEST_NAME = 64
_SHOWN_CHARACTERS = 60

Verdicts = Mapping[str, Verdict]
"""Name of each member -> its verdict, the score between 0 and 1."""


class CombineConfig(Strict):
    """Settings of `combine`."""

    of: list[str | dict[str, Any]] = Field(
        min_length=2,
        max_length=_MOST_MEMBERS,
        description="The members, written as entries of `verifiers` are: a name, or a name with "
        "its settings; timeout_s, on_timeout and concurrency may stand there too.",
    )
    rule: Literal["all", "any", "mean", "weighted", "veto"] = Field(
        description="all: each vote passed. any: one did. mean, weighted: the mean score reaches "
        "the pass mark. veto: as mean, of the members without a veto, and 0 where one with a veto "
        "failed.",
    )
    weights: dict[str, float] = Field(
        default={}, description="With the rule weighted: the weight of every member, above 0."
    )
    veto: list[str] = Field(
        default=[], description="With the rule veto: the members that must not fail."
    )
    pass_mark: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="With mean, weighted and veto: the score from which on a verdict is passed.",
    )

    @model_validator(mode="after")
    def _settings_fit_the_rule(self) -> Self:
        names = {next(iter(one), "") if isinstance(one, dict) else one for one in self.of}
        if any(len(name) > _LONGEST_NAME for name in names):
            raise ValueError(f"a member's name may have {_LONGEST_NAME} characters at most")
        if (self.rule == "weighted") != bool(self.weights):
            raise ValueError("weights go with `rule: weighted`, which needs them")
        if self.weights and (
            self.weights.keys() != names or any(weight <= 0 for weight in self.weights.values())
        ):
            raise ValueError("weights must give each member, and no other, a weight above 0")
        if (self.rule == "veto") != bool(self.veto):
            raise ValueError("veto goes with `rule: veto`, which needs it")
        if not set(self.veto) <= names or set(self.veto) == names:
            raise ValueError("veto must name some of the members, and leave at least one to score")
        if self.rule in ("all", "any") and self.pass_mark != 1:
            raise ValueError("a pass mark has no meaning with the rules all and any")
        return self


class Combine(Verifier):
    """Asks several verifiers about each completion and makes one verdict of theirs by a rule.

    A member that errs or abstains has no vote. Without any vote the verdict is an error, or
    abstained where all members abstained. Scores are shares of each member's own range.

    A member with a veto has to be asked: when it errs, the verdict is its error, whatever the
    others say. To let the others decide would pay what it might have stopped; to decide only where
    they failed would mask the good completions alone and bias the rest. One that abstains as not
    applicable has no objection; one whose ground truth is unusable makes the verdict abstain.
    """

    api_version = "1.0"
    Config = CombineConfig
    members_key = "of"
    config: CombineConfig

    class GroundTruth(BaseModel):
        """What each member needs, shared or below the member's name."""

        model_config = ConfigDict(extra="allow", frozen=True)

    def __init__(self, config: CombineConfig, *, name: str = "") -> None:
        super().__init__(config, name=name)
        self.pass_mark = config.pass_mark

    @hookimpl
    def rlvr_verify(self, batch: VerifyBatch) -> list[Verdict]:
        """Return one verdict a row; its `ground_truth` holds those of the members."""
        return [self._combined(row.ground_truth) for row in batch]

    def _combined(self, verdicts: Verdicts) -> Verdict:
        diagnostics = {"members": {name: _shown(one) for name, one in verdicts.items()}}
        votes = {name: one for name, one in verdicts.items() if one.is_judgement}
        unasked = self._unasked(verdicts, votes)
        if unasked is not None:
            return Verdict(
                status=unasked.status,
                failure=unasked.failure,
                stage=unasked.stage,
                diagnostics=diagnostics,
            )
        # The first that failed gives its reason; those with a veto come first.
        order = sorted(votes, key=lambda name: name not in self.config.veto)
        failed = [votes[name] for name in order if votes[name].status is Status.FAILED]
        failure = failed[0].failure if failed else None
        stage = failed[0].stage if failed else None
        return self.judge(
            self._score(votes),
            failure or FailureCategory.WRONG_ANSWER,
            stage or Stage.COMPARE,
            **diagnostics,
        )

    def _unasked(self, verdicts: Verdicts, votes: Verdicts) -> Verdict | None:
        """Return the verdict of a member for whose sake nothing can be said; None: it can."""
        guards = [verdicts[name] for name in self.config.veto if name in verdicts]
        for one in guards:
            if one.status is Status.ERROR or one.failure is FailureCategory.BAD_GROUND_TRUTH:
                return one
        if any(name not in self.config.veto for name in votes):
            return None
        if any(votes[name].status is Status.FAILED for name in self.config.veto if name in votes):
            return None
        silent = [one for name, one in verdicts.items() if name not in votes]
        errors = [one for one in silent if one.status is Status.ERROR]
        return [*errors, *silent][0]

    def _score(self, votes: Verdicts) -> float:
        rule, veto = self.config.rule, self.config.veto
        passed = [one.status is Status.PASSED for one in votes.values()]
        if rule == "all":
            return float(all(passed))
        if rule == "any":
            return float(any(passed))
        if any(one.status is Status.FAILED for name, one in votes.items() if name in veto):
            return 0.0
        scoring = [name for name in votes if name not in veto]
        weights = [self.config.weights.get(name, 1.0) for name in scoring]
        scores = [votes[name].score or 0.0 for name in scoring]
        total = sum(weight * score for weight, score in zip(weights, scores, strict=True))
        return total / sum(weights)


def _shown(verdict: Verdict) -> dict[str, Any]:
    """Return what is kept of a member's verdict; eight of them fit into one verdict."""
    shown: dict[str, Any] = {"status": verdict.status.value, "score": verdict.score}
    if verdict.failure:
        shown["failure"] = verdict.failure.value
    message = verdict.diagnostics.get("message")
    if isinstance(message, str) and not verdict.is_judgement:
        cut = message[:_SHOWN_CHARACTERS]
        shown["message"] = "".join(
            one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in cut
        )
    return shown
