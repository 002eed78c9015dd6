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
LIMIT_S = 10.0  # the deadline a stack gives by default
TRUTH = {
    "entities": [
        {"text": "Mina Park", "type": "PER", "start": 0, "end": 9},
        {"text": "Oslo", "type": "LOC", "start": 13, "end": 17},
    ],
    "source": "Mina Park in Oslo",
}
CONFIGS = [
    {},
    {"match": "partial"},
    {"match": "partial", "multiset": True, "ignore_type": True},
    {"match": "partial", "offsets": True, "case_sensitive": True},
]
ENTRY = '{"text": "Park", "type": "PER", "start": 0, "end": 4}'


def filled(unit: str, characters: int = LONGEST) -> str:
    return repeated(unit, characters)


BULK = [
    filled("["), filled("{"), filled('{"a":'), filled('{"'), filled("[{"), filled("[1]"),
    filled('"'), filled("\\"), filled('"\\"'), filled("```\n"), filled("```\n["), filled("<think>"),
    filled("[THINK]"), filled("[THINK]</think>"), filled("{a{"), filled("[ "), filled("{ \n"),
    filled("\x00"), filled("\ud800"), filled("{}"), filled("[]\n"), filled(ENTRY + "\n"),
    "[" + "9" * LONGEST + "]", "[1e" + "9" * LONGEST + "]", "[" + filled(ENTRY + ",") + ENTRY + "]",
    "[" + ",".join([ENTRY] * (LONGEST // len(ENTRY))) + "]",
    '[{"text": "' + filled("Park ") + '", "type": "PER"}]',
    '[{"text": "' + filled("ﷺ") + '", "type": "PER"}]',
    '[{"text": "' + filled("\u0301") + '", "type": "PER"}]',
    '[{"text": "' + filled(" \u200b") + '", "type": "PER"}]',
    '{"PER": [' + ",".join(f'"Park {number}"' for number in range(11_000)) + "]}",
    "{" + ",".join(f'"{number}": "Park"' for number in range(11_000)) + "}",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(BULK)))
def test_a_long_answer_is_judged_fast_and_never_right(judge, number):
    for config in (CONFIGS[0], CONFIGS[1]):
        start = time.process_time()
        verdict = judge(BULK[number], TRUTH, **config)
        assert time.process_time() - start < LIMIT_S
        assert verdict.is_judgement
        assert verdict.score < 0.5


@pytest.mark.parametrize("unit", ["[", ENTRY + "\n", "<think>", '"', "x"])
def test_an_answer_of_a_megabyte_is_too_long(judge, unit):
    start = time.process_time()
    verdict = judge(filled(unit, MEGABYTE), TRUTH)
    assert time.process_time() - start < LIMIT_S
    assert verdict.failure.value == ("no_answer" if unit == "<think>" else "resource_limit")


def test_many_claims_against_many_entities_are_paired_fast(judge):
    entities = [{"text": f"a b{number}", "type": "T"} for number in range(1000)]
    claims = [{"text": f"a c{number}", "type": "T"} for number in range(5_000)]
    start = time.process_time()
    verdict = judge(json.dumps(claims), {"entities": entities}, match="partial")
    assert time.process_time() - start < LIMIT_S
    assert verdict.score == pytest.approx(2 * 500 / 6_000)


PIECES = [
    "[", "]", "{", "}", '"', ":", ",", "\\", "\\u", "\\ud800", '"text"', '"type"', '"entities"',
     '"start"', ENTRY, "[" + ENTRY + "]", '{"PER": ["Mina Park"]}', "null", "true", "NaN", "-1",
     "1e999", "9" * 5000, "Oslo", "Mina Park", "PER", "```", "\n```json\n", "~~~\n", "<think>",
     "</think>", "\n", " ", "\x00", "\x1b[2J", "\ud800", "\u202e", "\u200b", "'", "“", "//", "[1]"
]  # fmt: skip
NESTED = st.tuples(st.sampled_from(["[", '{"a":', '{"entities":[']), st.integers(1, 3000)).map(
    lambda pair: pair[0] * pair[1]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["text", "type", "start", "end", "entities", "PER"]), inner
        )
    ),
    max_leaves=20,
).map(json.dumps)
HOSTILE = st.one_of(hostile_texts(PIECES), VALUES, NESTED)


def is_judged(judge, text: str, config: dict) -> None:
    start = time.process_time()
    verdict = judge(text, TRUTH, **config)
    assert time.process_time() - start < LIMIT_S
    assert verdict.is_judgement
    assert 0 <= verdict.score <= 1
    assert (verdict.score == 1) == (verdict.failure is None)


@settings(
    max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(text=HOSTILE, config=st.sampled_from(CONFIGS))
def test_hostile_text_always_gets_a_verdict_fast(judge, text, config):
    is_judged(judge, text, config)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=HOSTILE, config=st.sampled_from(CONFIGS))
def test_ten_thousand_hostile_texts_get_a_verdict_fast(judge, text, config):
    is_judged(judge, text, config)


@pytest.mark.slow
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(unit=HOSTILE.filter(bool), config=st.sampled_from(CONFIGS))
def test_fifty_hostile_megabytes_get_a_verdict_fast(judge, unit, config):
    is_judged(judge, filled(unit, MEGABYTE), config)
    is_judged(judge, filled(unit), config)
