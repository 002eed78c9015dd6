"""The 25 kinds of constraint and the arguments that each must have."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from rlvr_core.api import Strict
from rlvr_plugin_ifeval.languages import known_codes

Count = Annotated[int, Field(strict=True, ge=1)]
Text = Annotated[str, StringConstraints(strict=True, pattern=r"\S")]
Relation = Literal["at least", "less than"]


class Arguments(Strict):
    """Arguments of a constraint. Those that are null count as missing."""

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, data: Any) -> Any:
        # Published data sets list every argument of every kind, null where it does not apply.
        if isinstance(data, dict):
            return {key: value for key, value in data.items() if value is not None}
        return data


class WordCount(Arguments):
    """How many words."""

    relation: Relation
    num_words: Count


class SentenceCount(Arguments):
    """How many sentences."""

    relation: Relation
    num_sentences: Count


class ParagraphCount(Arguments):
    """How many paragraphs."""

    num_paragraphs: Count


class FirstWord(Arguments):
    """The first word of the nth of so many paragraphs."""

    num_paragraphs: Count
    nth_paragraph: Count
    first_word: Text

    @model_validator(mode="after")
    def _is_there(self) -> Self:
        if self.nth_paragraph > self.num_paragraphs:
            raise ValueError(
                f"nth_paragraph is {self.nth_paragraph}, but there are to be only "
                f"{self.num_paragraphs} paragraphs"
            )
        return self


class Keywords(Arguments):
    """Words that must occur."""

    keywords: list[Text] = Field(min_length=1)


class KeywordCount(Arguments):
    """How often a word occurs."""

    keyword: Text
    frequency: Count
    relation: Relation


class ForbiddenWords(Arguments):
    """Words that must not occur."""

    forbidden_words: list[Text] = Field(min_length=1)


class LetterCount(Arguments):
    """How often a character occurs."""

    letter: Text
    let_frequency: Count
    let_relation: Relation

    @field_validator("letter")
    @classmethod
    def _is_one_character(cls, letter: str) -> str:
        if len(letter.strip()) != 1:
            raise ValueError(f"{letter!r} is not one character")
        return letter.strip()


class CapitalWordCount(Arguments):
    """How many words in capitals."""

    capital_frequency: Count
    capital_relation: Relation


class BulletCount(Arguments):
    """How many items of bullet lists, exactly."""

    num_bullets: Count


class HighlightCount(Arguments):
    """How many highlighted passages, at least."""

    num_highlights: Count


class PlaceholderCount(Arguments):
    """How many placeholders, at least."""

    num_placeholders: Count


class SectionCount(Arguments):
    """How many sections, at least, and the word that opens each."""

    section_spliter: Text
    num_sections: Count


class PostscriptMarker(Arguments):
    """What opens the postscript."""

    postscript_marker: Text


class PromptToRepeat(Arguments):
    """What comes first, word for word."""

    prompt_to_repeat: Text


class EndPhrase(Arguments):
    """What comes last."""

    end_phrase: Text


class ResponseLanguage(Arguments):
    """The language of the whole response."""

    language: Text

    @field_validator("language")
    @classmethod
    def _is_known(cls, language: str) -> str:
        if language not in known_codes():
            raise ValueError(
                f"{language!r} is no language that can be told; known are "
                + ", ".join(sorted(known_codes()))
            )
        return language


class _Constraint(Strict):
    """One instruction that can be checked. `kwargs` may be left out where nothing is needed."""

    @model_validator(mode="before")
    @classmethod
    def _with_arguments(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("kwargs") is None:
            return {**data, "kwargs": {}}
        return data


class _Plain(_Constraint):
    type: Literal[
        "change_case:english_capital",
        "change_case:english_lowercase",
        "combination:two_responses",
        "detectable_format:constrained_response",
        "detectable_format:json_format",
        "detectable_format:title",
        "punctuation:no_comma",
        "startend:quotation",
    ]
    kwargs: Arguments


class _Words(_Constraint):
    type: Literal["length_constraints:number_words"]
    kwargs: WordCount


class _Sentences(_Constraint):
    type: Literal["length_constraints:number_sentences"]
    kwargs: SentenceCount


class _Paragraphs(_Constraint):
    type: Literal["length_constraints:number_paragraphs"]
    kwargs: ParagraphCount


class _FirstWord(_Constraint):
    type: Literal["length_constraints:nth_paragraph_first_word"]
    kwargs: FirstWord


class _Existence(_Constraint):
    type: Literal["keywords:existence"]
    kwargs: Keywords


class _Frequency(_Constraint):
    type: Literal["keywords:frequency"]
    kwargs: KeywordCount


class _Forbidden(_Constraint):
    type: Literal["keywords:forbidden_words"]
    kwargs: ForbiddenWords


class _Letters(_Constraint):
    type: Literal["keywords:letter_frequency"]
    kwargs: LetterCount


class _Capitals(_Constraint):
    type: Literal["change_case:capital_word_frequency"]
    kwargs: CapitalWordCount


class _Bullets(_Constraint):
    type: Literal["detectable_format:number_bullet_lists"]
    kwargs: BulletCount


class _Highlights(_Constraint):
    type: Literal["detectable_format:number_highlighted_sections"]
    kwargs: HighlightCount


class _Sections(_Constraint):
    type: Literal["detectable_format:multiple_sections"]
    kwargs: SectionCount


class _Placeholders(_Constraint):
    type: Literal["detectable_content:number_placeholders"]
    kwargs: PlaceholderCount


class _Postscript(_Constraint):
    type: Literal["detectable_content:postscript"]
    kwargs: PostscriptMarker


class _Repeat(_Constraint):
    type: Literal["combination:repeat_prompt"]
    kwargs: PromptToRepeat


class _End(_Constraint):
    type: Literal["startend:end_checker"]
    kwargs: EndPhrase


class _Language(_Constraint):
    type: Literal["language:response_language"]
    kwargs: ResponseLanguage


Constraint = Annotated[
    _Plain | _Words | _Sentences | _Paragraphs | _FirstWord | _Existence | _Frequency | _Forbidden
    | _Letters | _Capitals | _Bullets | _Highlights | _Sections | _Placeholders | _Postscript
    | _Repeat | _End | _Language,
    Field(discriminator="type"),
]  # fmt: skip
"""One constraint: `type` names the kind, `kwargs` holds exactly the arguments of that kind."""
