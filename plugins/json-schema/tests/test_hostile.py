"""Whatever a completion holds, a verdict comes back, and fast."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlvr_core.testing.hostile_texts import MEGABYTE, hostile_texts
from rlvr_core.testing.hostile_texts import filled as repeated

LONGEST = 199_000
"""A little less than the longest answer that is read at all."""
LIMIT_S = 4.0
SCHEMAS = [
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "pattern": "^(\\w+ ?)+$"},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True},
            "when": {"type": "string", "format": "date-time"},
            "next": {"$ref": "#"},
        },
        "patternProperties": {"^x-(a+)+$": {"type": "integer"}},
        "required": ["name", "tags"],
        "additionalProperties": False,
    },
    {
        "anyOf": [
            {"type": "array", "items": {"$dynamicRef": "#node"}, "contains": {"type": "null"}},
            {"type": "object", "additionalProperties": {"$dynamicRef": "#node"}},
            {"type": "number", "multipleOf": 0.01, "maximum": 1e9},
        ],
        "$dynamicAnchor": "node",
    },
    {
        "oneOf": [
            {"properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"properties": {"b": {"not": {"format": "uri"}}}, "required": ["b"]},
        ],
        "unevaluatedProperties": False,
    },
]


def filled(unit: str, characters: int = LONGEST) -> str:
    return repeated(unit, characters)


BULK = [
    filled("["), filled("{"), filled('{"a":'), filled("[{"), filled("[1]"), filled('"'),
    filled('"\\"'), filled("```\n["), filled("<think>"), filled("\x00"), filled("{}"),
    "[" + ",".join(["1"] * (LONGEST // 2 - 9)) + "]",
    "[" + ",".join(["{}"] * (LONGEST // 3 - 9)) + "]",
    '{"tags": [' + ",".join(["{}"] * (LONGEST // 3 - 9)) + "]}",
    '{"name": "' + filled("word ", LONGEST - 99) + '!"}',
    "{" + ",".join(f'"x-{number}": ""' for number in range(LONGEST // 20)) + "}",
    "[" + "9" * 4000 + "." + "9" * 4000 + "]", "[1e-400]", "[" + "9" * 4299 + "]",
    "[[" * 30 + "]]" * 30, '{"next":' * 60 + "{}" + "}" * 60,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(BULK)))
def test_a_long_answer_is_judged_fast(judge, number):
    for schema in SCHEMAS:
        is_judged(judge, BULK[number], schema)


@pytest.mark.parametrize("unit", ["[", "{}", '"', "x"])
def test_an_answer_of_a_megabyte_is_too_long(judge, unit):
    verdict = judge(filled(unit, MEGABYTE), {"schema": SCHEMAS[0]})
    assert verdict.failure.value == "resource_limit"


PIECES = [
    "[", "]", "{", "}", '"', ":", ",", "\\", '"name"', '"tags"', '"next"', '{"a": "x"}', "null",
     "true", "NaN", "-1", "0.1", "1e999", "9" * 5000, "```", "\n```json\n", "<think>", "</think>",
     "\n", " ", "\x00", "\ud800", "\u202e", "'", "“", '"\\ud800"', '"x-aaaa"'
]  # fmt: skip
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=9),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.sampled_from(["name", "tags", "next", "a", "b", "x-aa"]), inner),
    max_leaves=20,
).map(json.dumps)  # fmt: skip
NESTED = st.tuples(st.sampled_from(["[", '{"next":', '{"a":']), st.integers(1, 70)).map(
    lambda pair: pair[0] * pair[1] + "1" + {"[": "]"}.get(pair[0], "}") * pair[1]
)
HOSTILE = st.one_of(hostile_texts(PIECES), JSON_VALUES, NESTED)


def is_judged(judge, text: str, schema: dict) -> None:
    start = time.process_time()
    verdict = judge(text, {"schema": schema})
    assert time.process_time() - start < LIMIT_S
    assert verdict.is_judgement
    assert 0 <= verdict.score <= 1
    assert (verdict.score == 1) == (verdict.failure is None)


@settings(
    max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(text=HOSTILE, schema=st.sampled_from(SCHEMAS))
def test_hostile_text_always_gets_a_verdict_fast(judge, text, schema):
    is_judged(judge, text, schema)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=HOSTILE, schema=st.sampled_from(SCHEMAS))
def test_ten_thousand_hostile_texts_get_a_verdict_fast(judge, text, schema):
    is_judged(judge, text, schema)


@pytest.mark.slow
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(unit=HOSTILE.filter(bool), schema=st.sampled_from(SCHEMAS))
def test_fifty_hostile_megabytes_get_a_verdict_fast(judge, unit, schema):
    is_judged(judge, filled(unit, MEGABYTE), schema)
    is_judged(judge, filled(unit), schema)
