"""Exact numbers: decimal literals, tolerance policies T1 to T3, percent, Chinese numerals."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction

MAX_DIGITS = 2000
MAX_DECIMAL_EXPONENT = 5000
MIN_SIGNIFICANT_DIGITS = 4

_LITERAL = re.compile(
    r"(?P<sign>[+-]?)\s*"
    r"(?P<whole>\d{1,3}(?:,\d{3})+|\d{1,3}(?: \d{3})+|\d*)"
    r"(?:\.(?P<part>\d*))?"
    r"(?:[eE](?P<exp>[+-]?\d{1,6}))?"
    r"\s*(?P<percent>%?)"
)
_EUROPEAN = re.compile(r"([+-]?)(\d{1,3}(?:\.\d{3})+),(\d+)")
_POWER_OF_TEN = re.compile(
    r"\s*(?:\\times|\\cdot|\*)\s*10\s*\^\s*(?:\{\s*([+-]?\d+)\s*\}|([+-]?\d+))"
)


@dataclass(frozen=True, slots=True)
class Number:
    """A number as written: its value, and how precisely it was written.

    Attributes:
        value: Exact value; of ``50%`` it is 50.
        decimals: Digits after the decimal point; None for integers and other exact forms.
        significant: Significant digits of a decimal literal.
        percent: Whether a percent sign was given.
    """

    value: Fraction
    decimals: int | None = None
    significant: int = 0
    percent: bool = False


def literal(text: str) -> Number | None:
    """Return the number that `text` spells as one decimal literal, or None."""
    if len(text) > MAX_DIGITS:
        return None
    percent = text.endswith("%")
    power = _POWER_OF_TEN.search(text)
    if power is not None and power.end() == len(text.rstrip("% ")):
        mantissa = literal(text[: power.start()].strip())
        exponent = int(_short(power.group(1) or power.group(2)))
        if mantissa is None or mantissa.percent:
            return None
        return _scaled(replace(mantissa, percent=percent), exponent)
    return _plain_literal(text)


def _short(digits: str) -> str:
    return digits[:7]


def _plain_literal(text: str) -> Number | None:
    european = _EUROPEAN.fullmatch(text)
    if european is not None:
        text = f"{european[1]}{european[2].replace('.', '')}.{european[3]}"
    match = _LITERAL.fullmatch(text)
    if match is None:
        return None
    whole = match["whole"].replace(",", "").replace(" ", "")
    part = match["part"] or ""
    if not whole and not part:
        return None
    value = Fraction(int(whole + part), 10 ** len(part))
    number = Number(
        -value if match["sign"] == "-" else value,
        decimals=len(part) if part else None,
        significant=len((whole + part).lstrip("0")),
        percent=bool(match["percent"]),
    )
    return _scaled(number, int(match["exp"])) if match["exp"] else number


def _scaled(number: Number, exponent: int) -> Number | None:
    """Return `number` times ten to the `exponent`, or None when that is too large to write out."""
    if abs(exponent) > MAX_DECIMAL_EXPONENT:
        return None
    value = number.value * Fraction(10) ** exponent
    decimals = max((number.decimals or 0) - exponent, 0)
    return replace(number, value=value, decimals=decimals or None)


def rounded(value: Fraction, decimals: int) -> Fraction:
    """Return `value` rounded half away from zero to `decimals` digits after the point."""
    scale = 10**decimals
    magnitude = (abs(value) * scale * 2 + 1) // 2
    return Fraction(magnitude if value >= 0 else -magnitude, scale)


def same_number(answer: Number, gold: Number, tolerance: float | None = None) -> bool:
    """Return whether `answer` is right against `gold` under policies U1 and T1 to T3."""
    if answer.percent == gold.percent:
        return _close(answer, gold, tolerance)
    if answer.percent:
        as_share = _share(answer)
        return _close(as_share, gold, tolerance) or _close(answer, gold, tolerance)
    return _close(answer, _share(gold), tolerance) or _close(answer, gold, tolerance)


def _share(number: Number) -> Number:
    decimals = None if number.decimals is None else number.decimals + 2
    return Number(number.value / 100, decimals, number.significant)


def _close(answer: Number, gold: Number, tolerance: float | None) -> bool:
    if answer.value == gold.value:
        return True
    if gold.decimals is None and gold.value.denominator == 1:
        return False
    if tolerance is not None and abs(answer.value - gold.value) <= Fraction(tolerance):
        return True
    if gold.decimals is None:
        return (
            answer.decimals is not None
            and answer.significant >= MIN_SIGNIFICANT_DIGITS
            and rounded(gold.value, answer.decimals) == answer.value
        )
    finer = answer.decimals is None or answer.decimals > gold.decimals
    return finer and rounded(answer.value, gold.decimals) == gold.value


_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_SMALL = {"十": 10, "百": 100, "千": 1000}
_LARGE = {"万": 10**4, "亿": 10**8}
_NUMERAL = "[零〇一二两三四五六七八九十百千万亿\\d.]"
_DECIMALS = "(?:点[零〇一二三四五六七八九]+)?"
_MIXED = re.compile(f"(负?)(?:({_NUMERAL}+)又)?({_NUMERAL}+)分之({_NUMERAL}+{_DECIMALS})")
# 4千克 is four kilograms; only after Chinese digits may 千 be a thousand there.
_WHOLE = re.compile(f"(负?)((?:(?!(?<=[0-9])千[克米瓦]){_NUMERAL})+)")
_POINT = re.compile("(负?)([零〇一二两三四五六七八九十百千万亿]+)点([零〇一二三四五六七八九]+)")


def chinese_to_text(text: str) -> str:
    """Return `text` with its leading Chinese numeral written in digits: 百分之五十 becomes 50%."""
    point = _POINT.match(text)
    if point is not None:
        whole = _chinese_value(point[2])
        digits = "".join(str(_DIGITS[c]) for c in point[3])
        return text if whole is None else f"{_minus(point[1])}{whole}.{digits}{text[point.end() :]}"
    mixed = _MIXED.match(text)
    if mixed is not None:
        return _fraction_text(mixed) + text[mixed.end() :]
    match = _WHOLE.match(text)
    if match is None:
        return text
    if not any(c in _SMALL or c in _LARGE or c in _DIGITS for c in match[2]):
        return f"{_minus(match[1])}{text[len(match[1]) :]}"
    value = _chinese_value(match[2])
    return text if value is None else f"{_minus(match[1])}{value}{text[match.end() :]}"


def _minus(sign: str) -> str:
    return "-" if sign else ""


def _fraction_text(match: re.Match[str]) -> str:
    below, above = _chinese_value(match[3]), _chinese_value(match[4])
    whole = _chinese_value(match[2]) if match[2] else None
    if below is None or above is None or below == "0":
        return match[0]
    sign = _minus(match[1])
    if match[3] == "百" and whole is None:
        return f"{sign}{above}%"
    return f"{sign}{whole or ''}\\frac{{{above}}}{{{below}}}"


def _chinese_value(text: str) -> str | None:
    """Return the decimal text of one numeral such as 二十五, 十二点五, 1.2万 or 3亿, or None."""
    whole, point, decimals = text.partition("点")
    if point:
        found = _chinese_value(whole)
        return found and f"{found}.{''.join(str(_DIGITS[c]) for c in decimals)}"
    total, section, current = Fraction(0), Fraction(0), Fraction(0)
    seen = ""
    for token in re.findall(r"\d+(?:\.\d+)?|.", text[:60]):
        if token[0].isdigit() and token.isascii():
            current, seen = Fraction(token), token
        elif token in _DIGITS:
            current, seen = Fraction(_DIGITS[token]), token
        elif token in _SMALL:
            section += (current if seen else Fraction(1)) * _SMALL[token]
            current, seen = Fraction(0), ""
        elif token in _LARGE:
            total = (total + section + current) * _LARGE[token]
            section, current, seen = Fraction(0), Fraction(0), ""
        else:
            return None
    value = total + section + current
    if value.denominator == 1:
        return str(value.numerator)
    return f"{float(value):.12g}" if value < 10**9 else None
