"""Whether a text is written in a language: its script first, then its letter statistics."""

from __future__ import annotations

import re

from rlvr_plugin_ifeval.profiles import codes, scores

MIN_SHARE = 0.7
"""How much of a text must be in the language's own script: names and code words may be foreign."""
MIN_KANA_SHARE = 0.05
"""How much of a text must be kana for Japanese; at most half as much is left over for Chinese."""
SLACK_NATS = 8.0
"""How far the wanted language may lie behind the likeliest one: a few words cannot tell more."""

_HAN = "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
HAN = _HAN + "\U00020000-\U0003ffff"
"""Chinese characters, as a range for a character class."""

_LATIN = r"A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff\uff21-\uff3a\uff41-\uff5a"

# One match is a word; where no blanks part words it is a letter, `_LETTERS_A_WORD` of them a word.
_UNITS = {
    "han": rf"[{HAN}]",
    "kana": r"[\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fd-\u30ff\uff66-\uff9d]",
    "hangul": r"[\u1100-\u11ff\uac00-\ud7af]",
    "thai": r"[\u0e01-\u0e5b]",
    "latin": rf"[{_LATIN}][\w'’\u0300-\u036f-]*",
    "cyrillic": r"[\u0400-\u052f]+",
    "greek": r"[\u0370-\u03ff\u1f00-\u1fff]+",
    "hebrew": r"[\u0590-\u05ff]+",
    "arabic": r"[\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefc]+",
    "devanagari": r"[\u0900-\u097f]+",
    "bengali": r"[\u0980-\u09ff]+",
    "gurmukhi": r"[\u0a00-\u0a7f]+",
    "gujarati": r"[\u0a80-\u0aff]+",
    "tamil": r"[\u0b80-\u0bff]+",
    "telugu": r"[\u0c00-\u0c7f]+",
    "kannada": r"[\u0c80-\u0cff]+",
    "malayalam": r"[\u0d00-\u0d7f]+",
}
_LETTERS_A_WORD = {"han": 2, "kana": 2, "hangul": 2, "thai": 4}
_UNIT = {script: re.compile(pattern) for script, pattern in _UNITS.items()}
_SCRIPT = {
    "ar": "arabic", "fa": "arabic", "ur": "arabic", "hi": "devanagari", "mr": "devanagari",
    "ne": "devanagari", "bg": "cyrillic", "mk": "cyrillic", "ru": "cyrillic", "uk": "cyrillic",
    "bn": "bengali", "el": "greek", "gu": "gujarati", "he": "hebrew", "kn": "kannada",
    "ko": "hangul", "ml": "malayalam", "pa": "gurmukhi", "ta": "tamil", "te": "telugu",
    "th": "thai",
}  # fmt: skip
_CHINESE = ("zh", "zh-cn", "zh-tw")


def known_codes() -> frozenset[str]:
    """Return the codes of all languages that can be told: langdetect's, and zh for any Chinese."""
    return frozenset({*codes(), "zh"})


def is_written_in(text: str, code: str) -> bool:
    """Return whether nearly all of `text` is in the language `code`, one of `known_codes`.

    A text without letters is in no language.
    """
    units = {
        script: len(unit.findall(text)) / _LETTERS_A_WORD.get(script, 1)
        for script, unit in _UNIT.items()
    }
    total = sum(units.values())
    if not total:
        return False
    kana_share = units["kana"] / total
    if code == "ja":
        return kana_share >= MIN_KANA_SHARE and kana_share + units["han"] / total >= MIN_SHARE
    script = "han" if code in _CHINESE else _SCRIPT.get(code, "latin")
    if units[script] / total < MIN_SHARE:
        return False
    if script == "han" and kana_share > MIN_KANA_SHARE / 2:
        return False
    rivals = [other for other in codes() if _script_of(other) == script]
    return code == "zh" or len(rivals) == 1 or _is_near_best(text, code, rivals)


def _script_of(code: str) -> str | None:
    if code == "ja":
        return None
    return "han" if code in _CHINESE else _SCRIPT.get(code, "latin")


def _is_near_best(text: str, code: str, rivals: list[str]) -> bool:
    capitals = sum(1 for letter in text if letter.isupper())
    if capitals * 2 > sum(1 for letter in text if letter.isalpha()):
        text = text.lower()  # the statistics know few words in capitals
    found = scores(text)
    return bool(found) and found[code] >= max(found[rival] for rival in rivals) - SLACK_NATS
