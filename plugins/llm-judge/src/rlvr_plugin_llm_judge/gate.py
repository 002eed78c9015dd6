"""Answers that no judge needs to see: nothing, symbols, or an opening without what it opens.

"One Token to Fool LLM-as-a-Judge" (arXiv 2507.08794): a colon, or "Thought process:" alone, was
called right by judges up to nine times in ten, and a policy that finds this writes nothing else.
"""

from __future__ import annotations

import re
import unicodedata

MAX_CHARACTERS = 20_000
"""How long an answer may be. A longer one costs more to judge than it can be worth."""

_LONGEST_OPENING = 400
_APOSTROPHES = re.compile("['’`´]")
_WORDS = re.compile(r"\w+")

_OPENINGS = sorted(
    {
        "thought process", "my thought process", "reasoning", "explanation", "analysis",
        "lets think step by step", "lets think about this step by step", "step by step",
        "lets solve this problem step by step", "lets solve this step by step", "lets solve this",
        "lets solve the problem", "lets break this down", "lets start", "lets begin",
        "to solve this problem", "solution", "the solution", "the solution is", "my solution",
        "here is the solution", "heres the solution", "here is the answer", "heres the answer",
        "here is my answer", "heres my answer", "answer", "the answer", "the answer is",
        "final answer", "the final answer", "the final answer is", "correct answer",
        "the correct answer is", "step 1", "i have carefully considered this",
        "解", "解答", "答", "答案", "答案是", "答案为", "思考过程",
        "让我们一步一步地思考", "让我们一步步思考",
        "かいせつ", "解説", "答え", "풀이", "답", "정답", "respuesta", "la respuesta es",
        "solución",
        "réponse", "la réponse est", "lösung", "antwort", "die antwort ist", "ответ", "решение",
    },
    key=len,
    reverse=True,
)  # fmt: skip


def nothing_in(answer: str, reference: str | None) -> str | None:
    """Return why there is nothing to judge in an answer, or None when there is something.

    Args:
        answer: What follows the reasoning.
        reference: An answer that equals it is judged, whatever it looks like.
    """
    stripped = answer.strip()
    if reference is not None and stripped.casefold() == reference.strip().casefold() != "":
        return None
    if not stripped:
        return "empty"
    if not any(character.isalnum() for character in stripped):
        return "symbols only"
    if len(stripped) <= _LONGEST_OPENING and _is_opening(stripped):
        return "an opening only"
    return None


def _is_opening(text: str) -> bool:
    folded = _APOSTROPHES.sub("", unicodedata.normalize("NFKC", text).casefold())
    rest = " ".join(_WORDS.findall(folded))
    while rest:
        found = next((one for one in _OPENINGS if f"{rest} ".startswith(f"{one} ")), None)
        if found is None:
            return False
        rest = rest[len(found) :].lstrip()
    return True
