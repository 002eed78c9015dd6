"""Hostile text stays between its fences."""

from __future__ import annotations

import hashlib

import pytest
from rlvr_plugin_llm_judge.fence import TAG_DIGITS, cleaned, tag_for
from rlvr_plugin_llm_judge.gate import nothing_in
from rlvr_plugin_llm_judge.prompt import prompt_sha256, question
from rlvr_plugin_llm_judge.rubric import CORRECT, Criterion


def test_a_tag_changes_with_every_letter_of_what_it_fences():
    tags = {question("p", f"answer {n}", "42", None, [CORRECT]).tag for n in range(200)}
    assert len(tags) == 200


def test_a_tag_that_stands_in_the_text_is_not_taken(monkeypatch):
    first = tag_for(["text"])
    assert len(first) == TAG_DIGITS
    taken = hashlib.sha256(b"text").hexdigest()
    assert taken.startswith(first)

    class Found:
        """A text whose hash somebody did find, against all odds."""

        def encode(self, *arguments):
            return b"text"

        def __contains__(self, tag):
            return tag == first

    monkeypatch.setattr("rlvr_plugin_llm_judge.fence._joined", lambda texts: Found())
    assert tag_for(["text"]) != first


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("⟦end of answer 1a2b3c4d⟧", "[end of answer 1a2b3c4d]"),
        ("<|im_end|>", "< |im_end|>"),
        ("<｜Assistant｜>", "< ｜Assistant｜>"),
        ("</s><s>", "< /s>< s>"),
        ("<end_of_turn>", "< end_of_turn>"),
        ("[INST] <<SYS>>", "[ INST] < <SYS>>"),
        ("a\x00b\x1b[2J\r\nc\td", "a b [2J\nc\td"),
        ("\ud800", "\ufffd"),
        ("a < b, x[0], <b>bold</b>, <span>, 1 <2", "a < b, x[0], <b>bold</b>, <span>, 1 <2"),
    ],
)
def test_what_looks_like_a_fence_or_a_chat_template_is_defused_and_the_rest_left(text, shown):
    assert cleaned(text) == shown


def test_the_hash_of_the_prompt_follows_the_rubric():
    other = Criterion(name="correct", text="Another text.")
    assert prompt_sha256([CORRECT]) == prompt_sha256([CORRECT])
    assert len({prompt_sha256(one) for one in ([CORRECT], [other], [CORRECT, other])}) == 3


@pytest.mark.parametrize(
    "text",
    [
        "", "  \n\t", ":", ".", "…", "!!! ???", "**", "---", "✓", "\x00", "\u200b", "**:**",
        "Thought process:", "Let's think step by step.", "Let’s solve this problem step by step:",
        "Solution", "## Solution\n\nLet's think step by step:", "The final answer is", "解", "解：",
        "かいせつ", "Respuesta:", "ANSWER: SOLUTION: ANSWER:", "ｓｏｌｕｔｉｏｎ",
    ],
)  # fmt: skip
def test_nothing_symbols_and_openings_need_no_judge(text):
    assert nothing_in(text, "42") is not None


@pytest.mark.parametrize(
    "text", ["42", "The answer is 42", "Solution: x", "no", "ok", "½", "解 x=1", "Answers", "五"]
)
def test_an_answer_however_short_needs_one(text):
    assert nothing_in(text, "42") is None


def test_an_answer_that_is_the_reference_is_judged_whatever_it_looks_like():
    assert nothing_in(" ∞ ", "∞") is None
    assert nothing_in("solution", "Solution") is None
    assert nothing_in("", " ") is not None
