"""Which spellings of a text are one text, and which words it has."""

from __future__ import annotations

import re
import unicodedata

# Zero-width and other characters that show nothing: format characters, and variation selectors.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f"
    "\ufe00-\ufe0f\ufeff]"
)
_UNSPACED = (
    "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
_BLANK_BETWEEN_HAN = re.compile(f"(?<=[{_UNSPACED}]) (?=[{_UNSPACED}])")
# A Chinese or Japanese text has no blanks, so each of its characters is a word.
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")


def normal_text(text: str, *, case_sensitive: bool = False) -> str:
    """Return the form in which texts are compared.

    NFKC (full-width letters, ligatures, composed accents), no case unless it is asked for, no
    characters that cannot be seen, any run of blanks as one, none at the ends, and none between
    Chinese or Japanese characters. Accents, punctuation and quotation marks stay.
    """
    text = _UNSEEN.sub("", unicodedata.normalize("NFKC", _UNSEEN.sub("", text)))
    if not case_sensitive:
        # Case folding can leave a form that is not composed.
        text = unicodedata.normalize("NFKC", text.casefold())
    return _BLANK_BETWEEN_HAN.sub("", " ".join(text.split()))


def words(normal: str) -> frozenset[str]:
    """Return the words of a normalised text: letters and digits, or single Chinese characters."""
    return frozenset(_WORD.findall(normal))
