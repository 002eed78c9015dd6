"""Marks that change what is read: hidden and struck-out text, repeating decimals, ellipses."""

from __future__ import annotations

import re
from fractions import Fraction

MIN_REPEATS = 3
"""How often a period must be written before an ellipsis to be read as repeating."""
MIN_SIGNIFICANT_DIGITS = 4
MAX_PERIOD = 60
MAX_WRITTEN = 200
"""Digits of a repeating decimal; longer ones stay as they are."""

_BRACE = re.compile(r"\\.|[{}]", re.S)
_UNSEEN = re.compile(
    r"\\(?:(?:[hv]?phantom|[bx]?cancel|sout|xout)(?![A-Za-z])|(?:text)?color\s*\{\s*white\s*\})\s*"
)
_STRUCK = re.compile(r"(?<![^\s{$(])~~(?=[^\s~])[^~\n]*~~(?![^\s}$).,;])")

_HEAD = r"(?<![\d.])(?P<whole>\d*)\.(?P<part>\d*)"
_DOT = r"\\dot\s*(?:\{\s*\d\s*\}|\d)"
_BAR = re.compile(_HEAD + r"\s*\\(?:overline|bar)\s*\{\s*(?P<period>\d+)\s*\}(?![\d.])")
_BRACKET = re.compile(r"(?<![\d.])(?P<whole>\d+)\.(?P<part>)\((?P<period>\d+)\)(?![\d.])")
_ONE_BARE_DIGIT = re.compile(r"\\(overline|bar)\s*(\d)")
_DOTS = re.compile(_HEAD + rf"(?P<period>{_DOT}(?:\d*{_DOT})?)(?![\d.])")
_COMBINING = re.compile("((?:\\d\u0305)+)|(\\d)\u0307")
_ELLIPSIS = re.compile(r"\\(?:[lc]?dots[a-z]?)(?![A-Za-z])|…|⋯|\.{3,}|\. \. \.")
_GOING_ON = re.compile(_HEAD + r"\s*\\ldots(?![A-Za-z])\s*(?![\d.A-Za-z])")


def without_comments(text: str, *, left_open: bool) -> str:
    """Return `text` without HTML comments.

    Args:
        text: A completion.
        left_open: Whether a comment that is never closed hides the rest as well.
    """
    if "<!--" not in text:
        return text
    text = _without(text, "<!--", "-->")
    return text.partition("<!--")[0] if left_open else text


def _without(text: str, opening: str, closing: str) -> str:
    """Return `text` without what stands from each `opening` to the next `closing`, in one pass."""
    kept, position = [], 0
    start = text.find(opening)
    while start >= 0:
        end = text.find(closing, start + len(opening))
        if end < 0:
            break
        kept.append(text[position:start])
        position = end + len(closing)
        start = text.find(opening, position)
    return " ".join([*kept, text[position:]])


def without_unseen(text: str) -> str:
    """Return `text` without what is left invisible or struck out; an open group hides the rest."""
    # <s> strikes text out as well, but decoded completions begin and end with <s> and </s>.
    text = _without(text, "<del>", "</del>")
    if "~~" in text:
        text = _STRUCK.sub(" ", text)
    if not _UNSEEN.search(text):
        return text
    seen, position = [], 0
    for match in _UNSEEN.finditer(text):
        if match.start() < position:
            continue
        seen.append(text[position : match.start()])
        position = _argument_end(text, match.end())
    return " ".join([*seen, text[position:]])


def _argument_end(text: str, start: int) -> int:
    if text[start : start + 1] != "{":
        return start + 1
    depth = 0
    for match in _BRACE.finditer(text, start):
        depth += (match[0] == "{") - (match[0] == "}")
        if depth == 0:
            return match.end()
    return len(text)


def without_marks(text: str) -> str:
    r"""Return `text` with repeating decimals as fractions and every ellipsis as ``\ldots``.

    An ellipsis after a decimal goes when the digits say enough: a period written three times is a
    repeating decimal, and four significant digits are a rounded one. After anything else it stays,
    and what goes on is no number.
    """
    text = _COMBINING.sub(_latex_mark, text)
    if "\\overline" in text or "\\bar" in text:
        text = _BAR.sub(_repeating, _ONE_BARE_DIGIT.sub(r"\\\1{\2}", text))
    if ".(" in text:
        text = _BRACKET.sub(_repeating, text)
    if "\\dot" in text:
        text = _DOTS.sub(_repeating, text)
    if _ELLIPSIS.search(text):
        text = _GOING_ON.sub(_settled, _ELLIPSIS.sub(r"\\ldots ", text))
    return text


def _latex_mark(match: re.Match[str]) -> str:
    if match[1]:
        return "\\overline{" + match[1].replace("\u0305", "") + "}"
    return f"\\dot{{{match[2]}}}"


def _repeating(match: re.Match[str]) -> str:
    period = re.sub(r"\D", "", match["period"])
    before = match.string[: match.start()].rstrip(" ")
    # A fraction after a number would read as a mixed number.
    if before[-1:].isdigit() or len(match["whole"] + match["part"] + period) > MAX_WRITTEN:
        return match[0]
    return _fraction(match["whole"], match["part"], period)


def _fraction(whole: str, part: str, period: str) -> str:
    below = 10 ** len(part) * (10 ** len(period) - 1)
    value = Fraction(int(whole + part + period) - int((whole + part) or "0"), below)
    if value.denominator == 1:
        return str(value.numerator)
    return f"\\frac{{{value.numerator}}}{{{value.denominator}}}"


def _settled(match: re.Match[str]) -> str:
    whole, part = match["whole"], match["part"]
    before = match.string[: match.start()].rstrip(" ")
    longest = 0 if before[-1:].isdigit() else min(len(part) // MIN_REPEATS, MAX_PERIOD)
    for length in range(1, longest + 1):
        period = part[-length:]
        if part.endswith(period * MIN_REPEATS) and len(whole + part) <= MAX_WRITTEN:
            start = part[: len(part) - length * MIN_REPEATS]
            return _fraction(whole, start, period)
    if len((whole + part).lstrip("0")) >= MIN_SIGNIFICANT_DIGITS and part.strip("0"):
        return f"{whole}.{part}"
    return match[0]
