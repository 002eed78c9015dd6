"""Which language a text is in, from the letter statistics that `langdetect` ships.

`langdetect` draws the one- to three-letter pieces of a text at random until one language stands
out, so its answer may change from call to call. `scores` counts every piece once: the same model,
what sampling tends to, the same at each call and faster.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files

from langdetect import PROFILES_DIRECTORY, DetectorFactory, LangDetectException
from langdetect.utils.ngram import NGram

MAX_CHARACTERS = 10_000
"""How much of a text is read: as much as `langdetect` reads."""
MAX_WEIGHED = 800
"""How many letters are weighed, in words spread evenly over what is read: plenty to tell."""
MAX_WORD = 24
"""How much of a word is weighed; languages without blanks have long ones."""
CLEAR_NATS = 30.0
"""A lead of the likeliest language that sampling does not turn."""
_SMOOTHING = 0.5 / 10_000
"""The share that a piece gets in a language that does not know it; langdetect's own."""

_ADDRESS = re.compile(
    r"https?://[-_.?&~;+=/#0-9A-Za-z]{1,2076}"
    r"|(?<![-_.0-9A-Za-z])[-_.0-9A-Za-z]{1,64}@[-_0-9A-Za-z]{1,255}[-_.0-9A-Za-z]{1,255}"
)
_LATIN = re.compile("[A-z]")  # with the six marks between Z and a, as langdetect has it
_NOT_LATIN = re.compile("[\u0300-\u1dff\u1f00-\U0010ffff]")


def scores(text: str) -> dict[str, float]:
    """Return the log-likelihood in nats of `text` in each language, up to a common constant.

    Keys are langdetect's 55 codes. The dictionary is empty when the text has no letters that any
    language knows.
    """
    words = [_word_scores(word) for word in _words(text)]
    words = [found for found in words if found]
    totals = [sum(column) for column in zip(*words, strict=True)]
    return dict(zip(codes(), totals, strict=True)) if words else {}


def published_language(text: str) -> str | None:
    """Return the language that `langdetect` finds with seed 0; None when it finds no letters.

    It is asked only where the likeliest two languages are close: elsewhere it says the likeliest.
    """
    found = scores(text)
    if not found:
        return None
    second, first = sorted((score, code) for code, score in found.items())[-2:]
    if first[0] - second[0] >= CLEAR_NATS:
        return first[1]
    detector = _detectors().create()
    detector.seed = 0
    detector.append(text[: MAX_CHARACTERS * 3])
    try:
        language: str = detector.detect()
    except LangDetectException:
        return None
    return language


@lru_cache(maxsize=1)
def _detectors() -> DetectorFactory:
    factory = DetectorFactory()
    factory.load_profile(PROFILES_DIRECTORY)
    return factory


@lru_cache(maxsize=1)
def codes() -> tuple[str, ...]:
    """Return the codes of all languages, sorted: ISO 639-1, and zh-cn and zh-tw."""
    folder = files("langdetect") / "profiles"
    return tuple(sorted(file.name for file in folder.iterdir() if not file.name.startswith("_")))


def _words(text: str) -> list[str]:
    """Return what stands between blanks, with a blank around it."""
    text = _ADDRESS.sub(" ", text[: MAX_CHARACTERS * 3])
    text = NGram.normalize_vi(text)[:MAX_CHARACTERS]
    if len(_LATIN.findall(text)) * 2 < len(_NOT_LATIN.findall(text)):
        text = _LATIN.sub("", text)
    words = [f" {word[:MAX_WORD]} " for word in text.translate(_LETTERS).split(" ") if word]
    return words[:: 1 + sum(map(len, words)) // MAX_WEIGHED]


@lru_cache(maxsize=10_000)
def _word_scores(word: str) -> Sequence[float]:
    """Return the nats that a word speaks for each language; empty when none knows any piece."""
    pieces = [found for piece in _pieces(word) if (found := _piece_scores(piece))]
    return array("d", map(sum, zip(*pieces, strict=True)))


@lru_cache(maxsize=5_000)
def _piece_scores(piece: str) -> Sequence[float]:
    """Return the nats that a piece speaks for each language; empty when none knows it."""
    known = _known_pieces().get(piece)
    if known is None:
        return ()
    weights = dict(known)
    return array("d", (weights.get(code, 0.0) for code in codes()))


def _pieces(word: str) -> Iterator[str]:
    """Yield the pieces of a word; those that end within a run of capitals do not count."""
    for end in range(1, len(word)):
        if word[end].isupper() and word[end - 1].isupper():
            continue
        if word[end] != " ":
            yield word[end]
        yield word[end - 1 : end + 1]
        if end > 1:
            yield word[end - 2 : end + 1]


class _Letters(dict[int, str]):
    """Letters as the statistics spell them; what is no letter is a blank."""

    def __missing__(self, code_point: int) -> str:
        letter: str = NGram.normalize(chr(code_point))
        self[code_point] = letter
        return letter


_LETTERS = _Letters()


@lru_cache(maxsize=1)
def _known_pieces() -> Mapping[str, tuple[tuple[str, float], ...]]:
    """Return for each piece the languages that know it, and the nats that it speaks for them."""
    found: dict[str, list[tuple[str, float]]] = {}
    folder = files("langdetect") / "profiles"
    for code in codes():
        profile = json.loads((folder / code).read_text(encoding="utf-8"))
        totals = profile["n_words"]
        for piece, times in profile["freq"].items():
            share = times / totals[len(piece) - 1]
            found.setdefault(piece, []).append((code, math.log1p(share / _SMOOTHING)))
    return {piece: tuple(weights) for piece, weights in found.items()}
