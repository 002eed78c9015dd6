"""Whatever a completion holds, a verdict comes back, in time linear in its length."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlvr_core.testing.hostile_texts import MEGABYTE, filled, hostile_texts

LIMIT_S = 10.0  # the deadline a stack gives by default
LIMIT_MEGABYTE_S = 30.0

COUNT = {"relation": "at least"}
EVERY_KIND = [
    ("length_constraints:number_words", {**COUNT, "num_words": 5}),
    ("length_constraints:number_sentences", {**COUNT, "num_sentences": 3}),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 3}),
    ("length_constraints:nth_paragraph_first_word",
     {"num_paragraphs": 3, "nth_paragraph": 2, "first_word": "so"}),
    ("keywords:existence", {"keywords": ["zebra", "New York"]}),
    ("keywords:frequency", {**COUNT, "keyword": "art work", "frequency": 2}),
    ("keywords:forbidden_words", {"forbidden_words": ["cat", "the end", "坏"]}),
    ("keywords:letter_frequency", {"letter": "a", "let_relation": "at least", "let_frequency": 3}),
    ("detectable_format:number_bullet_lists", {"num_bullets": 3}),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}),
    ("detectable_format:title", {}),
    ("detectable_format:json_format", {}),
    ("detectable_format:multiple_sections", {"section_spliter": "SECTION", "num_sections": 2}),
    ("detectable_format:constrained_response", {}),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}),
    ("change_case:english_lowercase", {}),
    ("change_case:english_capital", {}),
    ("change_case:capital_word_frequency",
     {"capital_relation": "at least", "capital_frequency": 2}),
    ("combination:two_responses", {}),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Write a poem."}),
    ("punctuation:no_comma", {}),
    ("startend:quotation", {}),
    ("startend:end_checker", {"end_phrase": "Peace!"}),
    ("language:response_language", {"language": "en"}),
]  # fmt: skip
CONSTRAINTS = [{"type": kind, "kwargs": arguments} for kind, arguments in EVERY_KIND]
SETTINGS = [("en", "strict", False), ("zh", "strict", True), ("en", "official", True)]
UNITS = [
    "a", "A", " ", "\n", ".", "...", "?!", "*", "** ", "* a\n", "\n- ", "- ", "[", "]", "<<", ">>",
    "<< a >>", "{", '{"a":', "9", '"', "“", "。", "……", "a\u0300\u0323", "\u0300\u0323", "\u200b",
    "\ud800", "\x00", "SECTION 1 ", "p. s. ", "_", "a_", "'s ", "CAN'T", "U.S. ", "a-", "<think>",
    "</think>", "<think></think>", "```json", "a@", "http://", "1. ", "你", "a你。", "ﷺ", "xqzj ",
    "\r\n", "\x85", "\u3000", "Dr. ", "art\n",
]  # fmt: skip


def is_judged(judge, text: str, setting: tuple[str, str, bool], limit_s: float = LIMIT_S) -> None:
    language, mode, loose = setting
    start = time.process_time()
    verdict = judge(
        text,
        {"constraints": CONSTRAINTS, "language": language},
        mode=mode,
        loose=loose,
        score="share",
    )
    assert time.process_time() - start < limit_s
    assert verdict.is_judgement
    assert 0 <= verdict.score < 1


@pytest.fixture(scope="module", autouse=True)
def _warm(judge):
    for setting in SETTINGS:
        is_judged(judge, "warm up ok", setting, limit_s=60)


@pytest.mark.parametrize("unit", UNITS, ids=range(len(UNITS)))
def test_a_costly_response_is_judged_in_linear_time(judge, unit):
    text = (unit * 4_000)[:4_000]
    for response in (text, text + "x", "x" + text + "\nx"):
        for setting in SETTINGS:
            is_judged(judge, response, setting)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["a\u0300\u0323", "\n", "1. ", "*", "<< "])
def test_a_megabyte_is_judged_in_linear_time(judge, unit):
    text = filled(unit, MEGABYTE)
    is_judged(judge, text, ("en", "strict", False), LIMIT_MEGABYTE_S)
    is_judged(judge, text, ("en", "official", False), LIMIT_MEGABYTE_S)


def test_sixty_four_responses_take_less_than_a_second(judge):
    sentence = "Here is *one* thing, and [another] thing that Dr. Lee said to NASA in 1999. "
    texts = [sentence * 15 + str(number) for number in range(64)]
    for mode in ("strict", "official"):
        start = time.process_time()
        for text in texts:
            judge(text, {"constraints": CONSTRAINTS[:24]}, mode=mode)
        assert time.process_time() - start < 1


PIECES = [
    *UNITS, "[[", "(((", ")", "}", "```", "\n\n", "***", "******", "My answer is yes.", "cat",
     "c\u0336at", "New  York", "art work", "P.S.", "“”", "「", "，", ",", "\u202e", "\U000e0041",
     "é", "ß", "İ", "한", "あ", "हिन्दी", "\ufeff", "😀", "SO", "so", "\\", "\u2028", "None", "NaN",
]  # fmt: skip
HOSTILE = hostile_texts(PIECES)
QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=200, derandomize=True, **QUIET)
@given(text=HOSTILE, setting=st.sampled_from(SETTINGS))
def test_hostile_text_always_gets_a_verdict_fast(judge, text, setting):
    is_judged(judge, text, setting)


@pytest.mark.slow
@settings(max_examples=10_000, **QUIET)
@given(text=HOSTILE, setting=st.sampled_from(SETTINGS))
def test_ten_thousand_hostile_texts_get_a_verdict_fast(judge, text, setting):
    is_judged(judge, text, setting)


@pytest.mark.slow
@settings(max_examples=50, **QUIET)
@given(unit=HOSTILE.filter(bool), mode=st.sampled_from(["strict", "official"]))
def test_fifty_hostile_megabytes_get_a_verdict(judge, unit, mode):
    is_judged(judge, filled(unit), ("en", mode, False), LIMIT_MEGABYTE_S)
