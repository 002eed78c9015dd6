"""The rules for rewards: what the instruction says, with the gaps of the published rules closed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NoReturn

from rlvr_plugin_ifeval import constraints as given
from rlvr_plugin_ifeval.languages import is_written_in
from rlvr_plugin_ifeval.official import OPTIONS, bracketed, compares, unfenced
from rlvr_plugin_ifeval.text import Response, folded, phrase_pattern, seen
from rlvr_plugin_ifeval.words import count_capital_words, count_sentences, count_words

Check = Callable[[Response, Any], bool]

_CASED = re.compile(r"[^\W\d_]")
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")


# Length


def _words(response: Response, wanted: given.WordCount) -> bool:
    return compares(count_words(response), wanted.relation, wanted.num_words)


def _sentences(response: Response, wanted: given.SentenceCount) -> bool:
    return compares(count_sentences(response), wanted.relation, wanted.num_sentences)


_BOLD_ITALIC = re.compile(r"(?<![^\s])\*{3}(?=[^\s*])[^*\n]*(?<=[^\s*])\*{3}(?!\*)")
_PARAGRAPH_DIVIDER = re.compile(r"(?<!\*)\*{3}(?!\*)")


def _paragraphs(response: Response, wanted: given.ParagraphCount) -> bool:
    parts = _PARAGRAPH_DIVIDER.split(_BOLD_ITALIC.sub("x", response.text))
    blanks = [not part.strip() for part in parts]
    return not any(blanks[1:-1]) and len(blanks) - sum(blanks) == wanted.num_paragraphs


_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*+\n)++")
_BEFORE_FIRST_WORD = re.compile(r"[\s\"'“‘「『《(\[*_#>~`-]*")


def _first_word(response: Response, wanted: given.FirstWord) -> bool:
    paragraphs = [part for part in _BLANK_LINES.split(response.text) if part.strip()]
    if len(paragraphs) != wanted.num_paragraphs:
        return False
    paragraph = folded(paragraphs[wanted.nth_paragraph - 1])
    opening = _BEFORE_FIRST_WORD.match(paragraph)
    start = opening.end() if opening else 0
    found = _phrase(wanted.first_word).match(paragraph, start)
    # The first word of "Well-known facts" is not "well".
    return found is not None and not re.match(r"-[^\W_]", paragraph[found.end() :])


# Keywords


@lru_cache(maxsize=1_000)
def _phrase(phrase: str) -> re.Pattern[str]:
    return phrase_pattern(phrase)


def _existence(response: Response, wanted: given.Keywords) -> bool:
    return all(_phrase(word).search(response.folded) for word in wanted.keywords)


def _frequency(response: Response, wanted: given.KeywordCount) -> bool:
    count = len(_phrase(wanted.keyword).findall(response.folded))
    return compares(count, wanted.relation, wanted.frequency)


def _forbidden(response: Response, wanted: given.ForbiddenWords) -> bool:
    return not any(_phrase(word).search(response.folded) for word in wanted.forbidden_words)


def _letters(response: Response, wanted: given.LetterCount) -> bool:
    count = response.text.lower().count(seen(wanted.letter).lower())
    return compares(count, wanted.let_relation, wanted.let_frequency)


# Language and case


def _capital_words(response: Response, wanted: given.CapitalWordCount) -> bool:
    count = count_capital_words(response)
    return compares(count, wanted.capital_relation, wanted.capital_frequency)


def _all_capitals(response: Response, _: given.Arguments) -> bool:
    return response.text.isupper() and is_written_in(response.text.lower(), "en")


def _all_lowercase(response: Response, _: given.Arguments) -> bool:
    return response.text.islower() and is_written_in(response.text, "en")


def _language(response: Response, wanted: given.ResponseLanguage) -> bool:
    return is_written_in(response.text, wanted.language)


# Format

_BULLET = re.compile(r"[^\S\n]*(?:[*-][^\S\n]+[^\s]|-[^\W\d_]|\*[^\W\d_](?!.*\*))")
_RULE = re.compile(r"\s*(?:(?:\*\s*){3,}|(?:-\s*){2,})")


def _bullets(response: Response, wanted: given.BulletCount) -> bool:
    count = sum(
        1 for line in response.text.split("\n") if _BULLET.match(line) and not _RULE.fullmatch(line)
    )
    return count == wanted.num_bullets


# Stars hug what they highlight; three of them are bold and italic at once. `2*3*4` is a product.
_HIGHLIGHT = re.compile(r"(?<![\d*\\])(\*{1,3})(?=[^\s*])[^*\n]*(?<=[^\s*])\1(?!\*)")


def _highlights(response: Response, wanted: given.HighlightCount) -> bool:
    if response.text.count("*") < 2 * wanted.num_highlights:
        return False  # the usual case, much faster than the search
    return len(_HIGHLIGHT.findall(response.text)) >= wanted.num_highlights


def _title(response: Response, _: given.Arguments) -> bool:
    return any(_has_title(line) for line in response.text.split("\n"))


def _has_title(line: str) -> bool:
    start = line.find("<<")
    while start >= 0 and (end := line.find(">>", start + 2)) >= 0:
        if line[start:end].strip("<> \t\u3000"):
            return True
        start = line.find("<<", end)
    return False


def _sections(response: Response, wanted: given.SectionCount) -> bool:
    return len(_section_mark(wanted.section_spliter).findall(response.text)) >= wanted.num_sections


@lru_cache(maxsize=1_000)
def _section_mark(word: str) -> re.Pattern[str]:
    word = seen(word).strip()
    before = r"(?<![^\W_])" if _LETTER_OR_DIGIT.match(word) else ""
    return re.compile(rf"{before}{re.escape(word)}\s?\d+")


def _json(response: Response, _: given.Arguments) -> bool:
    try:
        # Numbers stay text: they may have more digits than Python reads.
        json.loads(unfenced(response.text), parse_constant=_refuse, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _constrained(response: Response, _: given.Arguments) -> bool:
    return sum(1 for option in OPTIONS if option in response.text) == 1


# Content


def _placeholders(response: Response, wanted: given.PlaceholderCount) -> bool:
    lines = response.text.split("\n")
    count = sum(1 for line in lines for inner in bracketed(line) if inner.strip("[ \t\u3000"))
    return count >= wanted.num_placeholders


_POSTSCRIPTS = {
    "P.P.S": r"p\.\s?p\.\s?s(?![^\W_])",
    "P.S.": r"p\.\s?s\.",
}


def _postscript(response: Response, wanted: given.PostscriptMarker) -> bool:
    return _postscript_mark(wanted.postscript_marker).search(response.folded) is not None


@lru_cache(maxsize=1_000)
def _postscript_mark(marker: str) -> re.Pattern[str]:
    body = _POSTSCRIPTS.get(marker.strip()) or re.escape(folded(marker).strip())
    return re.compile(rf"(?<![^\W_]){body}")


# Combinations

_ANSWER_DIVIDER = re.compile(r"(?<!\*)\*{6}(?!\*)")
_NO_LETTERS = re.compile(r"[\W_]+")


def _two_responses(response: Response, _: given.Arguments) -> bool:
    parts = [part.strip() for part in _ANSWER_DIVIDER.split(response.text)]
    answers = [part for part in parts if part]
    if not all(parts[1:-1]) or len(answers) != 2:
        return False
    # Another case, other blanks or another mark make no other answer.
    one, other = (_NO_LETTERS.sub("", folded(answer)) or answer for answer in answers)
    return one != other


def _repeat(response: Response, wanted: given.PromptToRepeat) -> bool:
    prompt = seen(wanted.prompt_to_repeat).strip().lower()
    text = response.text.strip().lower()
    if _wrapping(text, response.is_chinese) and not text.startswith(prompt):
        text = text[1:-1].strip()  # the whole response may have to stand in quotes
    return text.startswith(prompt) and bool(_LETTER_OR_DIGIT.search(text, len(prompt)))


# Start and end

_AFTER_END = ' \t\n\r\f\v\u3000"*_`'  # quotes and emphasis may close after the phrase
_CLOSING_QUOTES = "'」』"


def _end(response: Response, wanted: given.EndPhrase) -> bool:
    phrase = folded(seen(wanted.end_phrase)).strip()
    if phrase != phrase.rstrip(_AFTER_END + _CLOSING_QUOTES):
        text = response.folded.rstrip()
    else:
        text = response.folded.rstrip(_AFTER_END + _CLOSING_QUOTES)
    tail = text[-len(phrase) - 2 :]
    found = _phrase(phrase).search(tail, max(0, len(tail) - len(phrase)))
    return found is not None and found.end() == len(tail)


_QUOTES = {"en": ('""',), "zh": ('""', "“”", "「」", "『』", "＂＂", "〝〞")}


def _wrapping(text: str, is_chinese: bool) -> bool:
    pairs = _QUOTES["zh" if is_chinese else "en"]
    return len(text) > 1 and text[0] + text[-1] in pairs and bool(text[1:-1].strip())


def _quotation(response: Response, _: given.Arguments) -> bool:
    return _wrapping(response.text.strip(), response.is_chinese)


_COMMA = re.compile("[,，﹐︐،]")


def _no_comma(response: Response, _: given.Arguments) -> bool:
    return _COMMA.search(response.text) is None


CHECKS: Mapping[str, Check] = {
    "change_case:capital_word_frequency": _capital_words,
    "change_case:english_capital": _all_capitals,
    "change_case:english_lowercase": _all_lowercase,
    "combination:repeat_prompt": _repeat,
    "combination:two_responses": _two_responses,
    "detectable_content:number_placeholders": _placeholders,
    "detectable_content:postscript": _postscript,
    "detectable_format:constrained_response": _constrained,
    "detectable_format:json_format": _json,
    "detectable_format:multiple_sections": _sections,
    "detectable_format:number_bullet_lists": _bullets,
    "detectable_format:number_highlighted_sections": _highlights,
    "detectable_format:title": _title,
    "keywords:existence": _existence,
    "keywords:forbidden_words": _forbidden,
    "keywords:frequency": _frequency,
    "keywords:letter_frequency": _letters,
    "language:response_language": _language,
    "length_constraints:nth_paragraph_first_word": _first_word,
    "length_constraints:number_paragraphs": _paragraphs,
    "length_constraints:number_sentences": _sentences,
    "length_constraints:number_words": _words,
    "punctuation:no_comma": _no_comma,
    "startend:end_checker": _end,
    "startend:quotation": _quotation,
}
"""Check of each kind: takes the response as a reader sees it, and the arguments."""
