"""A response as the checks read it: what counts of it, and its spelling made plain."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from rlvr_plugin_ifeval.languages import HAN

Language = Literal["en", "zh"]

_THINKING = r"(?:think|thinking|thought|reasoning)"
_THINKING_OPEN = re.compile(rf"<{_THINKING}>", re.IGNORECASE)
_THINKING_CLOSE = re.compile(rf"</{_THINKING}>", re.IGNORECASE)

# Characters that show nothing: controls, soft hyphens, joiners, direction marks, fillers, tags.
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f\u00ad\u034f\u061c\u115f\u1160\u180b-\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_LINE_END = re.compile("\r\n?|\u2028")
_LOOSE_MARKS = re.compile("[\u0300-\u036f]+")
_SPELLINGS = str.maketrans(
    {
        **dict.fromkeys("’‘ʼ＇", "'"),
        **dict.fromkeys("“”„‟〝〞＂", '"'),
        **dict.fromkeys("‐‑‒–—−", "-"),
    }
)

SPACELESS = HAN + r"\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9d\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Scripts that put no blanks between words, as a range for a character class."""


def after_reasoning(completion: str) -> str | None:
    """Return what follows the last closed reasoning block; None when a block is left open."""
    end = 0
    for closing in _THINKING_CLOSE.finditer(completion):
        end = closing.end()
    rest = completion[end:]
    return None if _THINKING_OPEN.search(rest) else rest


# `unicodedata.normalize` takes quadratic time for long runs of combining marks.
_LONG_MARK_RUN = re.compile(r"([^\x00-\x7f\w\s]{64,})")


def normalized(form: Literal["NFC", "NFKC"], text: str) -> str:
    """Return `text` in a Unicode normal form, in linear time: runs of 64 marks or more stay."""
    if text.isascii():
        return text
    parts = _LONG_MARK_RUN.split(text)
    return "".join(
        part if index % 2 else unicodedata.normalize(form, part) for index, part in enumerate(parts)
    )


def seen(text: str) -> str:
    """Return `text` as a reader sees it: composed, without unseen characters, plain line ends."""
    if "\r" in text or "\u2028" in text:
        text = _LINE_END.sub("\n", text)
    return normalized("NFC", _UNSEEN.sub("", text))


def folded(text: str) -> str:
    """Return `text` for comparison: case, width, accents apart, quotes and dashes do not matter."""
    if text.isascii():
        return text.lower()
    plain = normalized("NFKC", text).lower().translate(_SPELLINGS)
    return _LOOSE_MARKS.sub("", normalized("NFC", plain))


@dataclass(frozen=True)
class Response:
    """What a model wrote, as `seen` returns it, and the language whose rules hold."""

    text: str
    language: Language = "en"

    @cached_property
    def folded(self) -> str:
        """The text as `folded` returns it."""
        return folded(self.text)

    @property
    def is_chinese(self) -> bool:
        """Whether the Chinese rules hold."""
        return self.language == "zh"


def phrase_pattern(phrase: str) -> re.Pattern[str]:
    """Return a pattern that finds `phrase` in folded text as whole words.

    Letters of scripts without blanks between words (Chinese, Japanese, Thai, …) may touch others.
    An underscore is part of a word inside it (``my_cat``), not around it (``_cat_``). Any run of
    blanks matches any other.
    """
    words = folded(phrase).split()
    body = r"\s+".join(re.escape(word) for word in words)
    first = words[0][0]
    if _is_spaced_letter(first):
        # Looking back after the first letter lets the search skip ahead to that letter.
        body = rf"{first}(?<!{_spaced}{first})(?<!{_spaced}_{first})" + body[1:]
    if _is_spaced_letter(words[-1][-1]):
        body += rf"(?!_?{_spaced})"
    return re.compile(body)


_spaced = rf"[^\W_{SPACELESS}]"
_SPACED_LETTER = re.compile(_spaced)


def _is_spaced_letter(character: str) -> bool:
    return _SPACED_LETTER.match(character) is not None
