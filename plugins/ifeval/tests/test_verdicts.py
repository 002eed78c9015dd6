"""Scores, categories, modes and loose variants."""

from __future__ import annotations

import json

import pytest
from rlvr_plugin_ifeval import IFEval
from rlvr_plugin_ifeval.languages import is_written_in
from rlvr_plugin_ifeval.profiles import codes, published_language, scores

from rlvr_core.api import FailureCategory, FinishReason, Stage, Status

NO_COMMA = {"type": "punctuation:no_comma"}
QUOTED = {"type": "startend:quotation"}
TITLE = {"type": "detectable_format:title"}
TWO_WORDS = {
    "type": "length_constraints:number_words",
    "kwargs": {"relation": "less than", "num_words": 3},
}


def truth(*constraints: dict, language: str = "en") -> dict:
    return {"constraints": list(constraints), "language": language}


def test_all_constraints_must_be_followed_by_default(judge):
    both = truth(NO_COMMA, QUOTED, TITLE)
    verdict = judge('"No title here"', both)
    assert (verdict.status, verdict.score) == (Status.FAILED, 0.0)
    assert (verdict.failure, verdict.stage) == (FailureCategory.CONSTRAINT, Stage.COMPARE)
    assert verdict.diagnostics == {"followed": [True, True, False]}
    assert judge('"<<A title>> here"', both).status is Status.PASSED


def test_the_share_of_constraints_is_partial_credit_but_only_all_pass(judge):
    three = truth(NO_COMMA, QUOTED, TITLE)
    verdict = judge('"No title here"', three, score="share")
    assert (verdict.status, verdict.score) == (Status.FAILED, pytest.approx(2 / 3))
    assert judge('"<<A title>> here"', three, score="share").score == 1
    assert judge("a, b", three, score="share").score == 0


def test_a_response_that_says_nothing_is_no_answer(judge):
    for text in ("", "  \n", "<think>a plan", "<think>a plan</think> \n"):
        verdict = judge(text, truth(NO_COMMA))
        assert (verdict.score, verdict.stage) == (0, Stage.EXTRACT)
        assert verdict.failure is FailureCategory.NO_ANSWER
    cut = judge("<think>a plan", truth(NO_COMMA), FinishReason.LENGTH)
    assert (cut.status, cut.failure) == (Status.FAILED, FailureCategory.TRUNCATED)


def test_reasoning_counts_in_official_mode_only(judge):
    text = "<think>a, b</think>Two words"
    assert judge(text, truth(NO_COMMA, TWO_WORDS)).score == 1
    assert judge(text, truth(NO_COMMA), mode="official").score == 0


def test_loose_variants_drop_stars_and_the_first_and_last_line(judge):
    text = 'Sure, here it is:\n"*Two* words"\nI hope, it helps.'
    for constraint in (NO_COMMA, QUOTED, TWO_WORDS):
        for mode in ("strict", "official"):
            assert judge(text, truth(constraint), mode=mode).score == 0
            assert judge(text, truth(constraint), mode=mode, loose=True).score == 1
    assert judge("a, b", truth(NO_COMMA), loose=True).score == 0


def test_loose_never_fails_what_strict_passes(judge):
    stars = {"type": "detectable_format:number_highlighted_sections"}
    stars["kwargs"] = {"num_highlights": 1}
    assert judge("*one*", truth(stars), loose=True).score == 1


@pytest.mark.parametrize(
    ("constraint", "text", "official", "strict"),
    [
        ({"type": "keywords:existence", "kwargs": {"keywords": ["cat"]}}, "category", 1, 0),
        ({"type": "keywords:existence", "kwargs": {"keywords": ["3.14"]}}, "3514", 1, 0),
        ({"type": "keywords:existence", "kwargs": {"keywords": ["C++"]}}, "In C++", 1, 1),
        ({"type": "keywords:forbidden_words", "kwargs": {"forbidden_words": ["cat"]}},
         "c\u200bat", 1, 0),
        ({"type": "detectable_format:number_bullet_lists", "kwargs": {"num_bullets": 1}},
         "---\n* one", 0, 1),
        ({"type": "detectable_format:json_format"}, "[NaN]", 1, 0),
        ({"type": "detectable_format:json_format"}, "[" * 100_000, 0, 0),
        ({"type": "combination:repeat_prompt", "kwargs": {"prompt_to_repeat": "Go."}}, "Go.", 1, 0),
        ({"type": "startend:quotation"}, '""', 1, 0),
        ({"type": "detectable_content:number_placeholders", "kwargs": {"num_placeholders": 1}},
         "[]", 1, 0),
        ({"type": "detectable_format:constrained_response"},
         "My answer is yes. My answer is no.", 1, 0),
        ({"type": "language:response_language", "kwargs": {"language": "en"}}, "12 34", 1, 0),
        ({"type": "change_case:capital_word_frequency",
          "kwargs": {"capital_frequency": 2, "capital_relation": "at least"}}, "DON'T", 1, 0),
        ({"type": "detectable_format:number_bullet_lists", "kwargs": {"num_bullets": 1}},
         "*\n* one", 1, 1),
        ({"type": "detectable_format:title"}, "<<>>>", 0, 0),
    ],
)  # fmt: skip
def test_the_two_modes_differ_where_they_are_meant_to(judge, constraint, text, official, strict):
    assert judge(text, truth(constraint), mode="official").score == official
    assert judge(text, truth(constraint)).score == strict


def test_chinese_rules_hold_in_strict_mode_only(judge):
    words = {"type": "length_constraints:number_words"}
    words["kwargs"] = {"relation": "at least", "num_words": 4}
    assert judge("天气很好", truth(words, language="zh")).score == 1
    assert judge("天气很好", truth(words)).score == 0
    assert judge("天气很好", truth(words, language="zh"), mode="official").score == 0


def test_diagnostics_are_small_valid_text_without_the_ground_truth(judge):
    secret = {"type": "keywords:forbidden_words", "kwargs": {"forbidden_words": ["SECRET"]}}
    verdict = judge("a\ud800 secret \x00", truth(*[secret] * 100))
    text = json.dumps(verdict.to_json(), ensure_ascii=False)
    text.encode("utf-8")
    assert len(text) < 4096
    assert "secret" not in text.lower()


def test_verdicts_do_not_depend_on_the_rows_before(judge):
    english = {"type": "change_case:english_lowercase"}
    texts = ["hello there my friend", "hola mi amigo del alma", "xq zv", "ciao"] * 2
    for mode in ("strict", "official"):
        found = [judge(text, truth(english), mode=mode).score for text in texts]
        assert found[:4] == found[4:]


def test_all_languages_of_langdetect_and_any_chinese_are_known():
    assert len(codes()) == 55
    assert {"en", "zh-cn", "zh-tw"} < set(codes())


def test_a_language_is_told_from_its_neighbours():
    texts = {
        "en": "The weather was fine, so we walked to the harbour and looked at the boats.",
        "es": "El tiempo era bueno, así que fuimos al puerto a mirar los barcos.",
        "pt": "O tempo estava bom, então fomos ao porto olhar os barcos.",
        "fr": "Il faisait beau, alors nous sommes allés au port regarder les bateaux.",
        "it": "Il tempo era bello, così siamo andati al porto a guardare le barche.",
        "de": "Das Wetter war schön, also gingen wir zum Hafen und sahen die Boote an.",
        "fi": "Sää oli kaunis, joten kävelimme satamaan katsomaan veneitä.",
        "vi": "Thời tiết đẹp nên chúng tôi đi bộ ra cảng ngắm những con thuyền.",
        "uk": "Погода була гарна, тому ми пішли до гавані подивитися на човни.",
        "ru": "Погода была хорошая, поэтому мы пошли в гавань посмотреть на лодки.",
        "he": "מזג האוויר היה נאה ולכן הלכנו לנמל לראות את הסירות.",
        "ta": "வானிலை நன்றாக இருந்ததால் நாங்கள் துறைமுகத்திற்கு நடந்தோம்.",
    }
    for text_code, text in texts.items():
        assert published_language(text) == text_code
        assert [code for code in texts if is_written_in(text, code)] == [text_code]


def test_long_texts_are_told_by_what_is_spread_over_them():
    english = "The quick answer was not the right one for them. " * 200
    found = scores(english)
    assert max(found, key=found.__getitem__) == "en"
    assert not is_written_in(english + "这里有很多中文。" * 2000, "en")


def test_the_plugin_passes_at_one_only(judge):
    assert IFEval.score_range == (0.0, 1.0)
    assert IFEval().pass_mark is None
