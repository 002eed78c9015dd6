"""The plugin: finds the answer, checks the ground truth, climbs the ladder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from rlvr_core.api import (
    FailureCategory,
    Resource,
    RowVerifier,
    Stage,
    Strict,
    Verdict,
    VerifyRow,
)
from rlvr_plugin_math_sympy.compare import prepared, same_answer, shape_of
from rlvr_plugin_math_sympy.extract import find_answer
from rlvr_plugin_math_sympy.forms import is_plain_number, wants_number
from rlvr_plugin_math_sympy.guards import MAX_ANSWER_CHARACTERS
from rlvr_plugin_math_sympy.leaves import Ladder
from rlvr_plugin_math_sympy.normalise import canonical, tidy

SHOWN_CHARACTERS = 200
MAX_GOLD_WORDS = 12
_WORTHLESS = frozenset({"nan", "none", "null", "true", "false"})
_WORD = re.compile(r"[A-Za-z]{2,}")
_TEXT = re.compile(r"\\text\{([^{}]*)\}")


class MathSympy(RowVerifier):
    """Judges a mathematical answer against a ground truth: score 1 or 0."""

    api_version: ClassVar[str] = "1.0"
    resource: ClassVar[Resource] = Resource.CPU

    class Config(Strict):
        """Settings of the verifier."""

        extraction: Literal["strict", "flexible"] = Field(
            default="strict",
            description="strict: only a box or an explicit marker is an answer. flexible: the last "
            "number counts when neither is found.",
        )
        tolerance: float | None = Field(
            default=None,
            gt=0,
            description="Absolute tolerance for ground truths that are not integers, on top of the "
            "rounding policies T1 and T2.",
        )
        require_number: bool = Field(
            default=False,
            description="When the ground truth is a plain number, the answer must be one as well: "
            "12 + 30 is no answer to 'What is 12 + 30?'",
        )

    class GroundTruth(Strict):
        """What a data row must say."""

        answer: str | int | float | list[str] = Field(
            description="The right answer as text, LaTeX or a number; a list means any of these."
        )

        @field_validator("answer", mode="before")
        @classmethod
        def _says_something(cls, answer: object) -> object:
            if isinstance(answer, bool):
                raise ValueError(
                    "true and false are no answers; write the text or the number meant"
                )
            if answer == []:
                raise ValueError("an empty list holds no right answer; name at least one")
            return answer

    config: Config

    def verify_row(self, row: VerifyRow) -> Verdict:
        """Judge one completion."""
        answer = find_answer(row.completion, self.config.extraction)
        if answer is None:
            return self.judge(0.0, FailureCategory.NO_ANSWER, Stage.EXTRACT)
        shown = _printable(answer.text)[:SHOWN_CHARACTERS]
        if any(_is_worthless(prepared(part[:SHOWN_CHARACTERS])) for part in answer.parts):
            return self.judge(0.0, FailureCategory.MALFORMED, Stage.PARSE, answer=shown)
        golds = [gold for gold in _golds(row.ground_truth.answer) if _is_usable(prepared(gold))]
        if not golds:
            return self.abstain(FailureCategory.BAD_GROUND_TRUTH, Stage.PARSE, answer=shown)
        if self.config.require_number and _is_no_number(answer.parts, golds):
            failure, stage = FailureCategory.WRONG_ANSWER, Stage.COMPARE
            return self.judge(0.0, failure, stage, answer=shown, rung="form")
        return self._climb(answer.parts, golds, shown)

    def _climb(self, parts: Sequence[str], golds: Sequence[str], shown: str) -> Verdict:
        rung, unreadable = "string", False
        for gold in golds:
            ladder = Ladder(self.config.tolerance)
            if same_answer(parts, gold, ladder):
                return self.judge(1.0, answer=shown, rung=ladder.rung)
            rung = max(rung, ladder.rung, key=_height)
            unreadable |= bool(ladder.unreadable)
        failure = FailureCategory.MALFORMED if unreadable else FailureCategory.WRONG_ANSWER
        stage = Stage.PARSE if unreadable else Stage.COMPARE
        return self.judge(0.0, failure, stage, answer=shown, rung=rung)


def _height(rung: str) -> int:
    return ("string", "number", "structure", "symbolic").index(rung)


def _is_no_number(parts: Sequence[str], golds: Sequence[str]) -> bool:
    """Return whether a number is wanted and the answer is none, nor a ground truth word by word."""
    tidied_golds = [prepared(gold) for gold in golds]
    if not any(wants_number(shape_of(gold)) for gold in tidied_golds):
        return False
    tidied = [tidy(part[: MAX_ANSWER_CHARACTERS * 20]) for part in parts]
    if len(tidied) == 1 and canonical(tidied[0]) in map(canonical, tidied_golds):
        return False
    return not all(is_plain_number(shape_of(part)) for part in tidied)


def _golds(answer: str | int | float | list[str]) -> list[str]:
    if isinstance(answer, list):
        return answer
    return [answer if isinstance(answer, str) else _number_text(answer)]


def _number_text(number: int | float) -> str:
    """Return a number as people write it: 42 for 42.0, no exponent letter surprises."""
    if isinstance(number, float) and number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    return str(number)


def _is_worthless(tidied: str) -> bool:
    return _TEXT.sub(r"\1", tidied).strip(" ().").casefold() in _WORTHLESS


def _is_usable(tidied_gold: str) -> bool:
    """Return whether a ground truth can be judged by rules: not blank, not prose, not nan."""
    if not tidied_gold.strip(" .,;$") or _is_worthless(tidied_gold):
        return False
    words = _WORD.findall(re.sub(r"\\[A-Za-z]+", " ", _TEXT.sub(r" \1 ", tidied_gold)))
    return len(words) <= MAX_GOLD_WORDS


def _printable(text: str) -> str:
    """Return `text` without lone surrogates and control characters: valid JSON text."""
    return "".join(c if c.isprintable() else " " for c in text[: SHOWN_CHARACTERS * 2])
