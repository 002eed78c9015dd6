"""The plugin: finds the JSON, validates it, counts the parts that are right."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from rlvr_core.api import (
    FailureCategory,
    FinishReason,
    Json,
    JsonPiece,
    Resource,
    RowVerifier,
    Stage,
    Strict,
    Verdict,
    VerifyRow,
    after_reasoning,
    find_json,
    read_json,
)
from rlvr_plugin_json_schema.keywords import TooCostlyError, errors_of
from rlvr_plugin_json_schema.leaves import Path, ends_of, expected_leaves, right_leaves
from rlvr_plugin_json_schema.schema import Schema, read_schema

MAX_CHARACTERS = 200_000
"""How long what follows the reasoning may be; no honest answer comes near."""


class Truth(Strict):
    """What a data row must say."""

    model_config = ConfigDict(serialize_by_alias=True)

    json_schema: dict[str, Any] = Field(
        alias="schema",
        description="The JSON Schema, as an object or as JSON text (draft 4, 6, 7, 2019-09 or "
        "2020-12; the last is the default).",
    )
    expected: Any = Field(
        default=None,
        description="Values that the answer must have, where they are known: all of the answer or "
        "some of its properties. Arrays are compared whole.",
    )

    @field_validator("json_schema", mode="before")
    @classmethod
    def _from_text(cls, schema: Json) -> Json:
        return read_json(schema) if isinstance(schema, str) else schema

    @model_validator(mode="after")
    def _can_judge(self) -> Self:
        schema = read_schema(self.json_schema)
        parts = self.expected_parts()
        try:
            errors = errors_of(schema.validator, self.expected)
        except TooCostlyError as error:
            raise ValueError(f"`expected` is too costly to validate: {error}") from None
        wrong = parts.keys() - right_leaves(self.expected, parts, parts, errors)
        if wrong:
            where = "/".join(min(wrong)) or "the top"
            raise ValueError(f"`expected` breaks the schema at {where!r}")
        return self

    def expected_parts(self) -> dict[Path, Json]:
        """Return path and value of each part that is expected; none without `expected`."""
        if "expected" not in self.model_fields_set:
            return {}
        return dict(expected_leaves(self.expected))


class JsonSchema(RowVerifier):
    """Judges JSON by a schema, with credit for each required part that is right."""

    api_version: ClassVar[str] = "1.0"
    resource: ClassVar[Resource] = Resource.CPU

    class Config(Strict):
        """Settings of the verifier."""

        partial_credit: bool = Field(
            default=True,
            description="JSON that breaks the schema scores the share of required parts that are "
            "right; otherwise 0.",
        )
        whole: bool = Field(
            default=False,
            description="The answer must be JSON and nothing else: no fence, no prose.",
        )

    GroundTruth = Truth
    config: Config

    def verify_row(self, row: VerifyRow) -> Verdict:
        """Judge one completion."""
        truth: Truth = row.ground_truth
        schema = read_schema(truth.json_schema)
        text = after_reasoning(row.completion)
        if text is not None and len(text) > MAX_CHARACTERS:
            return self._too_much(f"the answer has more than {MAX_CHARACTERS:,} characters")
        pieces = [] if text is None else self._pieces(text)
        values = [piece for piece in pieces if piece.error is None]
        if not values:
            return self._unread(row, pieces)
        fitting = [piece for piece in values if schema.may_be(piece.value)]
        piece = (fitting or values)[-1]
        try:
            return self._validated(truth, schema, piece.value)
        except TooCostlyError as error:
            return self._too_much(str(error))

    def reference_completion(self, ground_truth: Truth) -> str | None:
        """Return a completion that passes: the expected value or the schema's example.

        None when neither is there, or none is complete.
        """
        schema = read_schema(ground_truth.json_schema)
        parts = ground_truth.expected_parts()
        examples = ground_truth.json_schema.get("examples", [])
        for value in [ground_truth.expected, *examples] if parts else examples:
            errors = errors_of(schema.validator, value)
            if not errors and len(right_leaves(value, parts, parts, errors)) == len(parts):
                return json.dumps(value, ensure_ascii=False)
        return None

    def _pieces(self, text: str) -> list[JsonPiece]:
        if not self.config.whole:
            return find_json(text)
        if not text.strip():
            return []
        try:
            return [JsonPiece(0, len(text), read_json(text))]
        except ValueError as error:
            return [JsonPiece(0, len(text), None, str(error))]

    def _unread(self, row: VerifyRow, pieces: list[JsonPiece]) -> Verdict:
        """Judge an answer that could not be read; one cut off is told apart."""
        failure = FailureCategory.MALFORMED if pieces else FailureCategory.NO_ANSWER
        if row.finish_reason is FinishReason.LENGTH:
            failure = FailureCategory.TRUNCATED
        if not pieces:
            return self.judge(0.0, failure, Stage.EXTRACT)
        return self.judge(0.0, failure, Stage.PARSE, message=f"JSON: {pieces[-1].error}")

    def _too_much(self, message: str) -> Verdict:
        return self.judge(0.0, FailureCategory.RESOURCE_LIMIT, Stage.EXECUTE, message=message)

    def _validated(self, truth: Truth, schema: Schema, value: Json) -> Verdict:
        errors = errors_of(schema.validator, value)
        expected = truth.expected_parts()
        parts = ends_of([*schema.leaves, *expected])
        right = right_leaves(value, parts, expected, errors)
        shown: dict[str, Json] = {"valid": not errors, "parts": len(parts), "right": len(right)}
        if not errors and len(right) == len(parts):
            return self.judge(1.0, **shown)
        if errors:
            shown["rules"] = sorted({str(error.validator or "false") for error in errors})[:10]
        failure = FailureCategory.CONSTRAINT if errors else FailureCategory.WRONG_ANSWER
        score = _share(len(right), len(parts)) if self.config.partial_credit else 0.0
        return self.judge(score, failure, **shown)


def _share(right: int, parts: int) -> float:
    """Return the credit of a value that is not right: below 1 even if every part is.

    What breaks the schema elsewhere then counts as one more part.
    """
    if right < parts:
        return right / parts
    return parts / (parts + 1)
