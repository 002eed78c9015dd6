"""The verifier ``python``: a reward function in Python, written for TRL, for verl or for nobody."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rlvr_core.adapters.functions import Convention, RewardFunction, load_function, source_path
from rlvr_core.api.events import Finding, Severity
from rlvr_core.api.markers import hookimpl
from rlvr_core.api.plugin import RowVerifier, Strict, VerifyRow
from rlvr_core.api.rollouts import Row
from rlvr_core.api.session import Session
from rlvr_core.api.verdicts import FailureCategory, Json, Status, Verdict

_SHOWN_ROWS = 5


class PythonFunction(RowVerifier):
    """Calls a Python function with each completion; what it returns is the score.

    None is no verdict. An exception, a number that is not finite and one outside of `score_range`
    are errors of the function: the row is masked and counted.
    """

    api_version = "1.0"

    class Config(Strict):
        """Which function, and what its numbers mean."""

        function: str = Field(
            description="`path.py:name` or `module:name`; a path is relative to the folder that "
            "rlvr runs in."
        )
        signature: Literal["auto", "trl", "verl", "plain"] = Field(
            default="auto",
            description="How it is called: `f(prompts, completions, **columns)`, "
            "`f(data_source, solution_str, ground_truth, extra_info)` or `f(completion, …)`; auto: "
            "by the names of its parameters.",
        )
        score_range: tuple[float, float] = Field(
            default=(0.0, 1.0), description="The lowest and the highest score."
        )
        pass_mark: float | None = Field(
            default=None, description="A score at or above it passes; null: the highest."
        )

        @model_validator(mode="after")
        def _can_be_used(self) -> Self:
            lowest, highest = self.score_range
            if lowest >= highest:
                raise ValueError("`score_range` must be [lowest, highest]")
            if self.pass_mark is not None and not lowest <= self.pass_mark <= highest:
                raise ValueError("`pass_mark` must lie in `score_range`")
            _reward_function(self)
            return self

    class GroundTruth(BaseModel):
        """Whatever the function wants to know; each key is one of its arguments."""

        model_config = ConfigDict(extra="allow", frozen=True)

    config: Config

    def __init__(self, config: Config, *, name: str = "") -> None:
        super().__init__(config, name=name)
        self._function = _reward_function(config)
        self.score_range = config.score_range  # type: ignore[misc]
        self.pass_mark = config.pass_mark

    @classmethod
    def version_parts(cls, config: Any) -> Json:
        """Return the digest of the file that holds the function."""
        path = source_path(config.function)
        if path is None:
            found = inspect.getsourcefile(inspect.unwrap(load_function(config.function)))
            path = Path(found) if found else None
        return None if path is None else hashlib.sha256(path.read_bytes()).hexdigest()

    def verify_row(self, row: VerifyRow) -> Verdict:
        """Judge one completion."""
        score = self._function.score(row, _keys(row.ground_truth))
        if score is None:
            return self.abstain(message="the function returned None")
        if not isinstance(score, Real):
            # Core says what is wrong with it.
            return Verdict(status=Status.FAILED, score=score, failure=FailureCategory.WRONG_ANSWER)
        return self.judge(float(score))

    @hookimpl
    def rlvr_audit_prompts(self, rows: Sequence[Row], session: Session) -> list[Finding]:
        """Refuse rows that say nothing for an argument of the function."""
        missing: dict[str, list[Row]] = {}
        for row in rows:
            if row.verifier == self.name:
                for name in self._function.missing(row.ground_truth, row.metadata):
                    missing.setdefault(name, []).append(row)
        return [
            Finding(
                severity=Severity.REFUSE,
                message=f"{len(found)} rows say nothing for {name!r}, which "
                f"{self.config.function} needs",
                rows=found[:_SHOWN_ROWS],
            )
            for name, found in missing.items()
        ]


def _reward_function(config: PythonFunction.Config) -> RewardFunction:
    named = None if config.signature == "auto" else Convention(config.signature)
    return RewardFunction(config.function, named)


def _keys(ground_truth: PythonFunction.GroundTruth) -> Mapping[str, Json]:
    return ground_truth.model_extra or {}
