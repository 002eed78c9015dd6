"""The published rules, faults included, so that scores compare with published ones.

Each check answers as the checkers of google-research's instruction_following_eval and of
lm-evaluation-harness do, in time linear in the response. Where sentences end is an approximation,
since theirs is a trained model and a download; the language is what `langdetect` says with seed 0,
where theirs draws at random.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from rlvr_plugin_ifeval import constraints as given
from rlvr_plugin_ifeval.profiles import published_language
from rlvr_plugin_ifeval.published_tokens import capital_tokens
from rlvr_plugin_ifeval.words import count_sentences_as_published

Check = Callable[[str, Any], bool]

OPTIONS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
"""What a response to ``detectable_format:constrained_response`` may say."""

_BLANKS = re.compile(r"\s*")
_PARAGRAPH_DIVIDER = re.compile(r"\s?\*\*\*\s?")
_SINGLE_STARS = re.compile(r"\*([^\n*]*)\*")
_DOUBLE_STARS = re.compile(r"\*\*([^\n*]*)\*\*")
_FENCES = ("```json", "```Json", "```JSON", "```")


def compares(count: int, relation: given.Relation, bound: int) -> bool:
    """Return whether `count` is at least, or less than, `bound`."""
    return count < bound if relation == "less than" else count >= bound


def unfenced(text: str) -> str:
    """Return `text` without a Markdown fence around it."""
    text = text.strip()
    for fence in _FENCES:
        text = text.removeprefix(fence)
    return text.removesuffix("```").strip()


@lru_cache(maxsize=1_000)
def _pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """Compile what the published checkers take for a pattern; what is none is meant literally."""
    try:
        return re.compile(source, flags)
    except (re.error, OverflowError, RecursionError):
        return re.compile(re.escape(source), flags)


def _words(text: str, wanted: given.WordCount) -> bool:
    return compares(len(re.findall(r"\w+", text)), wanted.relation, wanted.num_words)


def _sentences(text: str, wanted: given.SentenceCount) -> bool:
    return compares(count_sentences_as_published(text), wanted.relation, wanted.num_sentences)


def _paragraphs(text: str, wanted: given.ParagraphCount) -> bool:
    blanks = [not part.strip() for part in _PARAGRAPH_DIVIDER.split(text)]
    if any(blanks[1:-1]):
        return False
    return len(blanks) - sum(blanks) == wanted.num_paragraphs


def _first_word(text: str, wanted: given.FirstWord) -> bool:
    chunks = text.split("\n\n")
    if sum(1 for chunk in chunks if chunk.strip()) != wanted.num_paragraphs:
        return False
    words = chunks[wanted.nth_paragraph - 1].split()  # blank chunks shift this: as published
    if not words:
        return False
    word = re.split("[.,?!'\"]", words[0].lstrip("'").lstrip('"'), maxsplit=1)[0]
    return word.lower() == wanted.first_word.lower()


def _existence(text: str, wanted: given.Keywords) -> bool:
    return all(_pattern(word, re.IGNORECASE).search(text) for word in wanted.keywords)


def _frequency(text: str, wanted: given.KeywordCount) -> bool:
    found = _pattern(wanted.keyword.strip(), re.IGNORECASE).findall(text)
    return compares(len(found), wanted.relation, wanted.frequency)


def _forbidden(text: str, wanted: given.ForbiddenWords) -> bool:
    patterns = (_pattern(rf"\b{word}\b", re.IGNORECASE) for word in wanted.forbidden_words)
    return not any(pattern.search(text) for pattern in patterns)


def _letters(text: str, wanted: given.LetterCount) -> bool:
    letter = wanted.letter.lower()
    # For a letter that is not ASCII the published checkers draw another one; texts in other
    # scripts have none of that.
    count = text.lower().count(letter) if letter.isascii() else 0
    return compares(count, wanted.let_relation, wanted.let_frequency)


def _capital_words(text: str, wanted: given.CapitalWordCount) -> bool:
    return compares(capital_tokens(text), wanted.capital_relation, wanted.capital_frequency)


def _is_english(text: str) -> bool:
    return published_language(text) in ("en", None)  # a text without letters passes: as published


def _all_capitals(text: str, _: given.Arguments) -> bool:
    return text.isupper() and _is_english(text)


def _all_lowercase(text: str, _: given.Arguments) -> bool:
    return text.islower() and _is_english(text)


def _language(text: str, wanted: given.ResponseLanguage) -> bool:
    return published_language(text) in (wanted.language, None)


def _bullets(text: str, wanted: given.BulletCount) -> bool:
    stars = _lines_that_begin(text, lambda mark, after: mark == "*" and after not in ("*", ""))
    dashes = _lines_that_begin(text, lambda mark, after: mark == "-")
    return stars + dashes == wanted.num_bullets


def _lines_that_begin(text: str, is_bullet: Callable[[str, str], bool]) -> int:
    """Count lines whose first two characters that are not blank pass; blank lines may precede."""
    count, position = 0, 0
    while True:
        blanks = _BLANKS.match(text, position)
        first = blanks.end() if blanks else position
        count += (found := is_bullet(text[first : first + 1], text[first + 1 : first + 2]))
        # A lone star takes the next line with it: as published.
        skip = 2 if found and text[first : first + 2] == "*\n" else 0
        position = text.find("\n", first + skip) + 1
        if not position:
            return count


def _highlights(text: str, wanted: given.HighlightCount) -> bool:
    single = sum(1 for inner in _SINGLE_STARS.findall(text) if inner.strip())
    double = sum(1 for inner in _DOUBLE_STARS.findall(text) if inner.strip())
    return single + double >= wanted.num_highlights


def _title(text: str, _: given.Arguments) -> bool:
    for line in text.split("\n"):
        start, end = line.find("<<"), line.rfind(">>")
        if 0 <= start <= end - 3 and line[start : end + 2].lstrip("<").rstrip(">").strip():
            return True
    return False


def _sections(text: str, wanted: given.SectionCount) -> bool:
    # Where the word is a pattern with groups, the published checker counts those as well.
    parts = _pattern(rf"\s?{wanted.section_spliter.strip()}\s?\d+\s?").split(text)
    return len(parts) - 1 >= wanted.num_sections


def _json(text: str, _: given.Arguments) -> bool:
    try:
        json.loads(unfenced(text))
    except (ValueError, RecursionError):
        return False
    return True


def _constrained(text: str, _: given.Arguments) -> bool:
    return any(option in text for option in OPTIONS)


def _placeholders(text: str, wanted: given.PlaceholderCount) -> bool:
    count = sum(len(contents) for contents in map(bracketed, text.split("\n")))
    return count >= wanted.num_placeholders


def bracketed(line: str) -> list[str]:
    """Return what stands in square brackets, from each opening one to the next closing one."""
    found = []
    start = line.find("[")
    while start >= 0 and (end := line.find("]", start)) >= 0:
        found.append(line[start + 1 : end])
        start = line.find("[", end)
    return found


_POSTSCRIPTS = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}


def _postscript(text: str, wanted: given.PostscriptMarker) -> bool:
    marker = wanted.postscript_marker.strip()
    return bool(_pattern(_POSTSCRIPTS.get(marker, marker.lower())).search(text.lower()))


def _two_responses(text: str, _: given.Arguments) -> bool:
    parts = [part.strip() for part in text.split("******")]
    if not all(parts[1:-1]):
        return False
    answers = [part for part in parts if part]
    return len(answers) == 2 and answers[0] != answers[1]


def _repeat(text: str, wanted: given.PromptToRepeat) -> bool:
    return text.strip().lower().startswith(wanted.prompt_to_repeat.strip().lower())


def _end(text: str, wanted: given.EndPhrase) -> bool:
    return text.strip().strip('"').lower().endswith(wanted.end_phrase.strip().lower())


def _quotation(text: str, _: given.Arguments) -> bool:
    text = text.strip()
    return len(text) > 1 and text[0] == '"' and text[-1] == '"'


def _no_comma(text: str, _: given.Arguments) -> bool:
    return "," not in text


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
"""Check of each kind: takes the response as it is and the arguments."""
