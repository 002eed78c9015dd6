"""What a verdict says, and which ground truths are refused."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from pydantic import ValidationError
from rlvr_plugin_json_schema import JsonSchema

from rlvr_core.api import FailureCategory, FinishReason, Status

SCHEMA = {
    "type": "object",
    "properties": {"code": {"const": "secret"}, "kind": {"enum": ["hidden"]}},
    "required": ["code", "kind"],
}
TRUTH = {"schema": SCHEMA}


@pytest.mark.parametrize(
    ("completion", "failure", "stage"),
    [
        ("", "no_answer", "extract"),
        ("prose", "no_answer", "extract"),
        ("<think>{}", "no_answer", "extract"),
        ('{"code": ', "malformed", "parse"),
        ('{"code": 1, "code": 2}', "malformed", "parse"),
        ("{}", "constraint", "compare"),
        ("[]", "constraint", "compare"),
        ("7", "constraint", "compare"),
        ('{"code": "' + "x" * 200_000 + '"}', "resource_limit", "execute"),
    ],
)
def test_every_way_to_fail_has_its_category_and_stage(judge, completion, failure, stage):
    verdict = judge(completion, TRUTH)
    assert verdict.status is Status.FAILED
    assert (verdict.failure.value, verdict.stage.value) == (failure, stage)


def test_a_valid_answer_with_another_value_is_wrong_and_breaks_no_constraint(judge):
    verdict = judge('{"a": 2}', {"schema": {"type": "object"}, "expected": {"a": 1}})
    assert (verdict.score, verdict.failure) == (0.0, FailureCategory.WRONG_ANSWER)
    assert verdict.diagnostics["valid"] is True


@pytest.mark.parametrize("completion", ["", '{"code": "se'])
def test_an_answer_that_was_cut_off_is_told_apart(judge, completion):
    verdict = judge(completion, TRUTH, finish_reason=FinishReason.LENGTH)
    assert verdict.failure is FailureCategory.TRUNCATED


def test_diagnostics_name_the_broken_rules_and_nothing_of_the_ground_truth(judge):
    verdict = judge('{"code": 1, "kind": 2}', {**TRUTH, "expected": {"kind": "hidden"}})
    assert verdict.diagnostics["rules"] == ["const", "enum"]
    assert "secret" not in json.dumps(verdict.to_json())
    assert "hidden" not in json.dumps(verdict.to_json())


def test_an_expected_null_is_not_an_absent_one(judge):
    truth = {"schema": {"type": ["null", "integer"]}, "expected": None}
    assert judge("null", truth).score == 1
    assert judge("1", truth).score == 0
    assert judge("1", {"schema": truth["schema"]}).score == 1


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({}, "says nothing"),
        ({"title": "x", "$defs": {"a": {"type": "string"}}}, "says nothing"),
        ({"properteis": {"a": {"type": "string"}}}, "says nothing"),
        ({"type": "text"}, "at `type`"),
        ({"type": "object", "properties": []}, "at `properties`"),
        ({"required": "a"}, "at `required`"),
        ({"minimum": "1"}, "at `minimum`"),
        ('{"type": "object"', "Expecting"),
        ('{"type": "object", "type": "array"}', "repeats a key"),
        ({"$schema": "https://example.com/mine", "type": "object"}, "`$schema` is none of"),
        ({"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}}, "top only"),
        ({"$ref": "https://example.com/schema.json"}, "leads nowhere"),
        ({"$ref": "file:///etc/hostname"}, "leads nowhere"),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, "leads nowhere"),
        ({"$ref": "#/$defs/no"}, "leads nowhere"),
        ({"type": "object", "$defs": {"unused": {"$ref": "#no"}}}, "leads nowhere"),
        ({"$ref": "#"}, "without end"),
        ({"anyOf": [{"type": "null"}, {"$ref": "#"}]}, "without end"),
        ({"properties": {"a": {"not": {"$ref": "#/properties/a"}}}}, "without end"),
        (
            {
                "$ref": "#/$defs/a",
                "$defs": {
                    "a": {"allOf": [{"$ref": "#/$defs/b"}]},
                    "b": {"if": {"$ref": "#/$defs/a"}},
                },
            },
            "without end",
        ),
        ({"pattern": "("}, "missing )"),
        ({"pattern": "(?=a)a"}, "looks ahead or behind"),
        ({"pattern": "(?<!a)a"}, "looks ahead or behind"),
        ({"pattern": r"(a)\1"}, "refers back"),
        ({"pattern": r"\A"}, "means nothing"),
        ({"pattern": "a{1001}"}, "repetition"),
        ({"items": {"patternProperties": {"(?!a)": True}}}, "looks ahead or behind"),
        ({"format": "int32"}, "is not checked"),
        ({"patternProperties": {"(a+)+$": True}, "unevaluatedProperties": False}, "repeat nothing"),
        ({"format": "date", "allOf": [{"$ref": f"#/$defs/{n}"} for n in "aa"], "$defs": {
            **{a: {"allOf": [{"$ref": f"#/$defs/{b}"}] * 9} for a, b in pairwise("abcdefg")},
            "g": {"type": "string"}}}, "too costly"),
    ],
)  # fmt: skip
def test_a_schema_that_cannot_judge_is_refused_with_the_reason(schema, reason):
    with pytest.raises(ValidationError) as caught:
        JsonSchema.GroundTruth.model_validate({"schema": schema})
    assert reason in str(caught.value)


def test_a_schema_nested_too_deeply_is_refused():
    schema: dict = {"type": "object"}
    for _ in range(2000):
        schema = {"not": schema}
    with pytest.raises(ValidationError, match="nested too deeply"):
        JsonSchema.GroundTruth.model_validate({"schema": schema})


@pytest.mark.parametrize(
    "truth", [{}, {"schema": None}, {"schema": []}, {"schema": True}, {**TRUTH, "more": 1}]
)
def test_an_odd_ground_truth_is_refused(truth):
    with pytest.raises(ValidationError):
        JsonSchema.GroundTruth.model_validate(truth)


@pytest.mark.parametrize("expected", [{"code": "other"}, {"kind": 1}, [], None, {}])
def test_an_expected_value_that_breaks_the_schema_is_refused(expected):
    truth = {"schema": SCHEMA, "expected": expected}
    with pytest.raises(ValidationError, match="breaks the schema"):
        JsonSchema.GroundTruth.model_validate(truth)


def test_some_of_the_required_values_may_be_expected():
    JsonSchema.GroundTruth.model_validate({"schema": SCHEMA, "expected": {"code": "secret"}})
