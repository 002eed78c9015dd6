"""The plugin: finds the JSON, reads the entities, scores them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from rlvr_core.api import (
    FailureCategory,
    FinishReason,
    Json,
    Resource,
    RowVerifier,
    Stage,
    Strict,
    Verdict,
    VerifyRow,
    after_reasoning,
    find_json,
)
from rlvr_plugin_f1_extraction.entities import Entity, NoEntitiesError, Rules, claimed, entity_of
from rlvr_plugin_f1_extraction.normalise import normal_text
from rlvr_plugin_f1_extraction.score import Score, score
from rlvr_plugin_f1_extraction.truth import Source, Truth

MAX_CHARACTERS = 200_000
"""How long what follows the reasoning may be; no honest answer comes near."""


class F1Extraction(RowVerifier):
    """Scores the entities in a JSON answer by F1."""

    api_version: ClassVar[str] = "1.0"
    resource: ClassVar[Resource] = Resource.CPU

    class Config(Strict):
        """Settings of the verifier."""

        match: Literal["exact", "partial"] = Field(
            default="exact",
            description="exact: text and type must be right. partial: of the rest, a claimed "
            "entity that overlaps with a right one of its type earns half, one to one.",
        )
        ignore_type: bool = Field(default=False, description="Types do not count.")
        case_sensitive: bool = Field(
            default=False, description="Upper and lower case differ in texts; in types never."
        )
        multiset: bool = Field(
            default=False, description="Repeats count; otherwise both sides are sets."
        )
        offsets: bool = Field(
            default=False,
            description="`start` and `end`, in characters, must be right too, and partial overlap "
            "is that of the two ranges.",
        )

    GroundTruth = Truth
    config: Config

    def verify_row(self, row: VerifyRow) -> Verdict:
        """Judge one completion."""
        truth: Truth = row.ground_truth
        rules = self._rules(truth)
        if rules.offsets and any(entity.start is None for entity in truth.entities):
            return self.abstain(
                FailureCategory.BAD_GROUND_TRUTH,
                message="the setting `offsets` needs `start` and `end` in the ground truth",
            )
        text = after_reasoning(row.completion)
        if text is not None and len(text) > MAX_CHARACTERS:
            message = f"the answer has more than {MAX_CHARACTERS:,} characters"
            return self.judge(0.0, FailureCategory.RESOURCE_LIMIT, Stage.EXTRACT, message=message)
        pieces = [] if text is None else find_json(text, duplicate_keys="last")
        if text is None or not pieces:
            return self._unread(row, FailureCategory.NO_ANSWER, Stage.EXTRACT)
        try:
            entries = claimed(pieces, text)
        except LookupError:
            return self._unread(
                row, FailureCategory.MALFORMED, Stage.PARSE, message=f"JSON: {pieces[-1].error}"
            )
        except NoEntitiesError as kind:
            message = f"{kind} is no list of entities"
            return self.judge(0.0, FailureCategory.CONSTRAINT, Stage.PARSE, message=message)
        return self._scored(truth, rules, [entity_of(entry, rules) for entry in entries])

    def reference_completion(self, ground_truth: Truth) -> str:
        """Return a completion that passes."""
        entries = [entity.model_dump(exclude_none=True) for entity in ground_truth.entities]
        return json.dumps(entries, ensure_ascii=False)

    def _rules(self, truth: Truth) -> Rules:
        untyped = bool(truth.entities) and truth.entities[0].type is None
        return Rules(
            ignore_type=self.config.ignore_type or untyped,
            case_sensitive=self.config.case_sensitive,
            offsets=self.config.offsets,
        )

    def _unread(
        self, row: VerifyRow, failure: FailureCategory, stage: Stage, **diagnostics: Json
    ) -> Verdict:
        """Judge an answer that could not be read; one cut off is told apart."""
        if row.finish_reason is FinishReason.LENGTH:
            failure = FailureCategory.TRUNCATED
        return self.judge(0.0, failure, stage, **diagnostics)

    def _scored(self, truth: Truth, rules: Rules, found: Sequence[Entity]) -> Verdict:
        wanted = [entity_of(entity.model_dump(), rules) for entity in truth.entities]
        ungrounded = _ungrounded(found, truth.source)
        result = score(
            found,
            wanted,
            multiset=self.config.multiset,
            partial=self.config.match == "partial",
            ungrounded=ungrounded,
        )
        diagnostics = _diagnostics(result, found, ungrounded if truth.source is not None else None)
        missing = self._missing(truth, found)
        if missing:
            return self.judge(
                0.0, FailureCategory.CONSTRAINT, required_missing=missing, **diagnostics
            )
        return self.judge(result.f1, **diagnostics)

    def _missing(self, truth: Truth, found: Sequence[Entity]) -> int:
        """Return how many of the required types no claimed entity has."""
        if self.config.ignore_type:
            return 0
        types = {entity.type for entity in found if not entity.malformed}
        return len({normal_text(name) for name in truth.required} - types)


def _ungrounded(found: Sequence[Entity], source: str | None) -> frozenset[Entity]:
    """Return the entities that do not occur in the source text; none without one."""
    if source is None:
        return frozenset()
    place = Source(source)
    return frozenset(
        entity
        for entity in set(found)
        if not entity.malformed and not place.holds(entity.text, entity.span)
    )


def _diagnostics(
    result: Score, found: Sequence[Entity], ungrounded: frozenset[Entity] | None
) -> dict[str, Json]:
    shown: dict[str, Json] = {
        "precision": round(result.precision, 4),
        "recall": round(result.recall, 4),
        "claimed": result.claimed,
        "malformed": sum(entity.malformed for entity in set(found)),
    }
    if ungrounded is not None:
        shown["ungrounded"] = len(ungrounded)
    return shown
