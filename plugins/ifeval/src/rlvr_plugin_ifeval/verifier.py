"""The plugin: judges a response by the constraints of its row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from rlvr_core.api import (
    FailureCategory,
    FinishReason,
    Resource,
    RowVerifier,
    Stage,
    Status,
    Strict,
    Verdict,
    VerifyRow,
)
from rlvr_plugin_ifeval import official, strict
from rlvr_plugin_ifeval.constraints import Constraint
from rlvr_plugin_ifeval.reference import followed_by_design
from rlvr_plugin_ifeval.text import Language, Response, after_reasoning, seen

MAX_CONSTRAINTS = 100


class IFEval(RowVerifier):
    """Judges whether a response follows instructions that can be checked: 25 kinds of IFEval."""

    api_version: ClassVar[str] = "1.0"
    resource: ClassVar[Resource] = Resource.CPU

    class Config(Strict):
        """Settings of the verifier."""

        mode: Literal["strict", "official"] = Field(
            default="strict",
            description="strict: rules made for rewards, with Chinese ones. official: the "
            "published rules, faults included, to compare with published scores.",
        )
        score: Literal["all", "share"] = Field(
            default="all",
            description="all: 1 when every constraint is followed, else 0. share: the share of "
            "constraints that are followed; only 1 passes.",
        )
        loose: bool = Field(
            default=False,
            description="A constraint is followed when it holds for the response or for any of "
            "seven others: without stars, without the first line, the last line, or both.",
        )

    class GroundTruth(Strict):
        """What a data row must say.

        `instruction_id_list` and a list of `kwargs`, as in the published data, may stand instead
        of `constraints`.
        """

        constraints: list[Constraint] = Field(
            min_length=1,
            max_length=MAX_CONSTRAINTS,
            description="Each has a `type`, such as punctuation:no_comma, and its `kwargs`.",
        )
        language: Language = Field(
            default="en", description="zh: the Chinese rules hold, in mode strict."
        )

        @model_validator(mode="before")
        @classmethod
        def _as_published(cls, data: Any) -> Any:
            if not isinstance(data, dict) or "instruction_id_list" not in data:
                return data
            rest = {key: data[key] for key in data if key not in ("instruction_id_list", "kwargs")}
            kinds, arguments = data["instruction_id_list"], data.get("kwargs")
            if not isinstance(kinds, list) or not isinstance(arguments, list):
                raise ValueError("instruction_id_list and kwargs must be lists")
            if len(kinds) != len(arguments):
                raise ValueError(
                    f"{len(kinds)} kinds in instruction_id_list, but {len(arguments)} kwargs"
                )
            if "constraints" in rest:
                raise ValueError("give constraints or instruction_id_list, not both")
            pairs = zip(kinds, arguments, strict=True)
            return {**rest, "constraints": [{"type": kind, "kwargs": had} for kind, had in pairs]}

    config: Config

    def verify_row(self, row: VerifyRow) -> Verdict:
        """Judge one completion."""
        response = self._response(row.completion)
        if response is None or not response.strip():
            is_cut = row.finish_reason is FinishReason.LENGTH
            return self.judge(
                0.0,
                FailureCategory.TRUNCATED if is_cut else FailureCategory.NO_ANSWER,
                Stage.EXTRACT,
            )
        truth = row.ground_truth
        variants = [response, *(_variants(response) if self.config.loose else ())]
        followed = self._followed(variants, truth.constraints, truth.language)
        share = sum(followed) / len(followed)
        score = share if self.config.score == "share" else float(share == 1)
        return self.judge(score, FailureCategory.CONSTRAINT, followed=followed)

    def reference_completion(self, ground_truth: GroundTruth) -> str | None:
        """Return a completion that passes; None where none is found.

        It is made by rule, and judged before it is given out: constraints that contradict each
        other have none, and neither have languages other than English and Chinese.
        """
        response = followed_by_design(ground_truth.constraints, ground_truth.language)
        if response is None:
            return None
        row = VerifyRow(id="", prompt="", completion=response, ground_truth=ground_truth)
        return response if self.verify_row(row).status is Status.PASSED else None

    def _response(self, completion: str) -> str | None:
        """Return what counts of a completion; None when it never got to its response."""
        if self.config.mode == "official":
            return completion
        rest = after_reasoning(completion)
        return None if rest is None else seen(rest)

    def _followed(
        self, variants: list[str], constraints: list[Constraint], language: Language
    ) -> list[bool]:
        if self.config.mode == "official":
            return [
                any(official.CHECKS[wanted.type](text, wanted.kwargs) for text in variants)
                for wanted in constraints
            ]
        responses = [Response(text, language) for text in variants]
        return [
            any(strict.CHECKS[wanted.type](response, wanted.kwargs) for response in responses)
            for wanted in constraints
        ]


def _variants(response: str) -> Iterator[str]:
    """Yield the loose variants of a response that are not blank: as published."""
    lines = response.split("\n")
    cut = ["\n".join(lines[part]).strip() for part in (slice(1, None), slice(-1), slice(1, -1))]
    for text in (response.replace("*", ""), *cut, *(text.replace("*", "") for text in cut)):
        if text.strip():
            yield text
