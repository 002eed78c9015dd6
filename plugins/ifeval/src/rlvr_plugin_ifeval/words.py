"""Counting words and sentences, without downloaded models."""

from __future__ import annotations

import re

from rlvr_plugin_ifeval.languages import HAN
from rlvr_plugin_ifeval.text import Response

# Vowel signs and accents belong to the word, though Python counts them as no letters.
_MARKS = (
    r"\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u06d6-\u06ed\u0900-\u0963\u0966-\u0df3\u0e31-\u0e4e\u0eb1-\u0ece"
)
_WORD = re.compile(rf"[^\W_][\w{_MARKS}]*")
_WORD_OR_HAN = re.compile(rf"[{HAN}]|[^\W_{HAN}](?:(?![{HAN}])[\w{_MARKS}])*")
_CAPITAL_CANDIDATE = re.compile(r"[^\W_]+(?:[-'’./&]+[^\W_]+)*")


def count_words(response: Response) -> int:
    """Return how many words there are: letters and digits in a row, hyphens part words.

    By the Chinese rules, each Chinese character is a word of its own.
    """
    return len((_WORD_OR_HAN if response.is_chinese else _WORD).findall(response.text))


def count_capital_words(response: Response) -> int:
    """Return how many words are written in capitals only; a hyphenated word is one word."""
    words = _CAPITAL_CANDIDATE.findall(response.text)
    return sum(1 for word in words if word.isupper() or _is_possessive_of_capitals(word))


def _is_possessive_of_capitals(word: str) -> bool:
    return word.endswith(("'s", "’s")) and word[:-2].isupper()


_TITLES = frozenset([
    "mr", "mrs", "ms", "mx", "dr", "prof", "st", "sr", "fr", "rev", "hon", "gov", "sen", "rep",
    "gen", "col", "maj", "capt", "cpt", "lt", "sgt", "cmdr", "adm", "pres", "messrs", "mme",
    "mlle", "mt", "vs", "viz", "cf", "fig", "figs", "eq", "eqs", "ch", "vol", "nos",
    "pp", "approx", "ca", "eds", "e.g", "i.e",
])  # fmt: skip
"""Abbreviations that something always follows."""
_ABBREVIATIONS = frozenset([
    "etc", "inc", "ltd", "co", "corp", "jr", "bros", "dept", "univ", "assn", "ave", "blvd", "rd",
    "hwy", "al", "avg", "tel", "ext", "misc", "jan", "feb", "mar",
    "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec", "tue", "tues",
    "thu", "thur", "thurs", "fri", "ph.d", "m.d", "b.a", "m.a", "b.s", "m.s", "d.c", "a.m",
    "p.m", "u.s", "u.k", "u.n", "e.u", "u.s.a", "a.d", "b.c", "ft", "sec", "est", "ed",
])  # fmt: skip
"""Abbreviations that may end a sentence: they do when a capital letter or nothing follows."""
_STARTERS = frozenset([
    "a", "an", "the", "he", "she", "it", "they", "we", "i", "you", "this", "that", "these",
    "those", "there", "here", "his", "her", "its", "their", "our", "my", "your", "but", "however",
    "and", "so", "then", "if", "when", "while", "after", "before", "in", "on", "at", "as", "for",
    "from", "with", "who", "what", "where", "why", "how", "is", "are", "do", "does", "did", "can",
    "will", "would", "yes", "no", "not", "now", "one", "some", "many", "most", "all", "another",
    "every", "each", "both", "meanwhile", "finally", "first", "second", "next", "also",
    "although", "because",
])  # fmt: skip
"""Words that begin a sentence more often than they go on after an initial or an acronym."""

_STOP = re.compile(
    r"(?P<marks>[.!?…](?<![.!?…]{2})[.!?…]*+)(?P<closers>[\"'”’)\]}*_»]*)(?P<space>\s+|$)"
)
_OPENERS = "\"'“‘([{*_<>"
_NEXT_WORD = re.compile(r"[\"'“‘(\[{*_<#>\-\s]*([^\W_]+)")
_ACRONYM = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]", re.IGNORECASE)
_LIST_NUMBER = re.compile(r"(?:^|\n)[ \t>*_#(-]*(?:\d{1,3}|[A-Za-z])$")
_HAS_WORD = re.compile(r"[^\W_]")
_LOOK_BACK = 40
_LOOK_AHEAD = 40


def count_sentences(response: Response) -> int:
    """Return how many sentences there are.

    A piece without an end mark (a heading, an item of a list) belongs to the sentence that
    follows; at the end of the text it is a sentence of its own. Marks alone are no sentence.
    """
    return _chinese(response.text) if response.is_chinese else _english(response.text)


def count_sentences_as_published(text: str) -> int:
    """Return about what the published checker counts, whose trained model would be a download.

    Unlike `count_sentences`, a quoted question ends a sentence even where a verb of saying
    follows, and so does the number of a list item before a capital letter.
    """
    return _english(text, as_published=True)


def _english(text: str, as_published: bool = False) -> int:
    count, start = 0, 0
    for stop in _STOP.finditer(text):
        if not _ends_sentence(text, stop, as_published):
            continue
        if _HAS_WORD.search(text, start, stop.start()):
            count += 1
            start = stop.end()
    return count + bool(_HAS_WORD.search(text, start))


def _ends_sentence(text: str, stop: re.Match[str], as_published: bool) -> bool:
    """Return whether the marks at `stop` end a sentence, rather than an abbreviation or a pause."""
    following = _NEXT_WORD.match(text, stop.end(), stop.end() + _LOOK_AHEAD)
    marks = stop["marks"]
    if following is None:
        return True
    word = following[1]
    if "!" in marks or "?" in marks:
        is_quoted = stop["closers"].startswith(('"', "”", "'", "’"))
        return as_published or not (is_quoted and word[0].islower())
    if marks != ".":
        return not word[0].islower()  # an ellipsis within a sentence
    look_back = text[max(0, stop.start() - _LOOK_BACK) : stop.start()]
    before = (look_back.split() or [""])[-1].rpartition("-")[2].lstrip(_OPENERS).lower()
    if before in _TITLES:
        return False
    is_number = before.isdigit() or len(before) == 1
    if is_number and _LIST_NUMBER.search(text, stop.start() - len(look_back), stop.start()):
        return as_published and word[0].isupper()
    if (len(before) == 1 and before.isalpha()) or _ACRONYM.fullmatch(before):
        return word[0].isupper() and word.lower() in _STARTERS
    if before == "no" and word[0].isdigit():
        return False
    if before in _ABBREVIATIONS:
        return word[0].isupper()
    return True


_CHINESE_STOP = re.compile(
    r"(?:[。！？!?｡…⋯]|\.{3,}|(?<=[^\W\d_a-zA-Z])[.．]|\.(?=[\s”’」』\"]|$))"
    r"[。！？!?｡…⋯.．]*[”’」』》）)\]】\"'*_\s]*"
)


def _chinese(text: str) -> int:
    return sum(1 for piece in _CHINESE_STOP.split(text) if _HAS_WORD.search(piece))
