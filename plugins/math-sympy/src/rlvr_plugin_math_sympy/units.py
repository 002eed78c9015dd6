"""Split a value from its unit, and tell whether two units are the same (policy U2)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rlvr_plugin_math_sympy.modifiers import changes_number, leading_multiplier, names_things
from rlvr_plugin_math_sympy.unit_names import CANONICAL, is_known, known_unit
from rlvr_plugin_math_sympy.unit_products import product_of_units

_PLACE_OF_POWER = {"square": "^2", "sq": "^2", "cubic": "^3", "平方": "^2", "立方": "^3"}

_EXPONENT = r"(?:\s*\^\s*\{?(?P<exp>-?\d)\}?)?"
_TEXT_UNIT = re.compile(
    r"\s*/?\s*\\text\{\s*(?P<unit>[A-Za-z\u4e00-\u9fffµ°./ $%'-]{1,60}?(?:\^\{?-?\d\}?)?)\s*\}"
    + _EXPONENT
    + r"\s*$"
)
_WORD_UNIT = re.compile(r"(?P<unit>[A-Za-z°][A-Za-z°./ -]{0,60}?)" + _EXPONENT + r"\s*$")
_HAN_UNIT = re.compile(r"\s*\(?(?P<unit>[\u4e00-\u9fff]{1,8}(?:/[\u4e00-\u9fff]{1,4})?)\)?\s*$")
_SYMBOL_UNIT = re.compile(r"\s*(?P<unit>°(?:\s*[CF])?|[$€£¥₹¢])\s*$")
_LEADING = re.compile(r"\s*(?P<sign>[-+]?)\s*(?P<unit>[$€£¥₹])\s*(?=[-+\d.\\])")
_LEADING_CODE = re.compile(r"\s*(?P<unit>US\$|USD|EUR|GBP|RMB|CNY|Rs\.?)\s*(?=[-+\d.])")


@dataclass(frozen=True, slots=True)
class Measured:
    """A value's text and the canonical name of its unit ("" when it carries none)."""

    value: str
    unit: str


def split_unit(text: str, *, bare_letters: bool, trusted: bool = False) -> Measured:
    """Split the unit off a tidied answer.

    Args:
        text: A tidied answer that is not a list, a tuple or a relation.
        bare_letters: Whether a spaced letter after a number (``5 m``) may be a unit.
        trusted: Whether any word after a number is a unit, as in a ground truth.
    """
    for leading in (_LEADING, _LEADING_CODE):
        match = leading.match(text)
        if match is not None:
            sign = match.groupdict().get("sign") or ""
            rest = split_unit(sign + text[match.end() :], bare_letters=False, trusted=trusted)
            name = canonical_unit(match["unit"].removeprefix("US").rstrip("."))
            known = {
                "USD": "usd",
                "EUR": "eur",
                "GBP": "gbp",
                "RMB": "cny",
                "CNY": "cny",
                "Rs": "inr",
            }
            name = known.get(match["unit"].rstrip("."), name)
            return Measured(rest.value, name if rest.unit in ("", name) else f"{name} {rest.unit}")
    if text.endswith("°") and re.search(r"\\?(?:sin|cos|tan|cot|sec|csc)", text):
        return Measured(text, "")
    product = _split_product(text, bare_letters=bare_letters, trusted=trusted)
    if product is not None:
        return product
    for pattern in (_SYMBOL_UNIT, _TEXT_UNIT, _HAN_UNIT):
        match = pattern.search(text)
        if match is not None and match.start() > 0:
            return _measured(text, match, match["unit"], known_only=False, trusted=trusted)
    return _split_words(text, bare_letters=bare_letters, trusted=trusted)


def _measured(
    text: str, match: re.Match[str], unit: str, *, known_only: bool, trusted: bool
) -> Measured:
    head = text[: match.start()].rstrip()
    groups = match.groupdict()
    words = unit.split()
    factor, counted = leading_multiplier(words)
    if len(counted) < len(words) and not (counted and changes_number(" ".join(counted))):
        rest = canonical_unit(" ".join(counted)) if counted else ""
        return Measured(f"({head})*{factor}", "" if rest == "of" else rest)
    if unit.casefold() in ("percent", "percents", "percentage", "per cent", "pct"):
        return Measured(head + "%", "")
    if changes_number(unit):
        return Measured(text, "")
    name = canonical_unit(unit)
    if not is_known(name) and (known_only or not (trusted or names_things(unit, head))):
        return Measured(text, "")
    return Measured(head, name + (f"^{groups['exp']}" if groups.get("exp") else ""))


_TAIL_START = re.compile(r"(?<=[\d)}])(?P<space>\s*)(?=\\(?:text\{|mu|Omega)|[A-Za-zµμΩ])")
_TWO_LETTERS = re.compile(r"(?<!\\)\b[A-Za-zμΩ]{2}")


def _split_product(text: str, *, bare_letters: bool, trusted: bool) -> Measured | None:
    """Split off a product of known units: ``5 N·m``, ``5 J/(kg K)``, ``5 kg m^{-3}``, ``5 cm2``."""
    for match in _TAIL_START.finditer(text, max(0, len(text) - 80)):
        tail = text[match.end() :]
        # Without \text, and without a space before it, a letter may as well be a variable.
        is_unit = bare_letters or (trusted and _TWO_LETTERS.search(tail))
        if "\\text" not in tail and not (is_unit and match["space"]):
            continue
        name = product_of_units(tail)
        if name is not None:
            return Measured(text[: match.start()], name)
    return None


_NUMERIC_HEAD = re.compile(r"[\d.,%})! ]$")


def _split_words(text: str, *, bare_letters: bool, trusted: bool) -> Measured:
    """Split trailing words off a number: ``42 apples``, ``42 cm^2``, ``10 m/s``, ``42cm``."""
    start = _words_start(text)
    if start <= 0 or not _NUMERIC_HEAD.search(text[:start]):
        return Measured(text, "")
    match = _WORD_UNIT.fullmatch(text, start)
    if match is None:
        return Measured(text, "")
    unit = match["unit"].strip()
    letters = re.sub(r"[^A-Za-z°]", "", unit)
    if not letters or (
        re.fullmatch(r"[A-Za-z](?:[ /]?[A-Za-z])?", unit) and not _symbol_pair(unit)
    ):
        spaced = text[:start].endswith(" ")
        if not (bare_letters and spaced and unit in CANONICAL):
            return Measured(text, "")
    short = len(letters) <= 3 and " " not in unit
    return _measured(text, match, unit, known_only=short, trusted=trusted)


def _symbol_pair(unit: str) -> bool:
    """Return whether two letters are a known unit symbol, such as cm or m/s, not two variables."""
    if "/" in unit:
        return all(part.strip() in CANONICAL for part in unit.split("/"))
    return len(unit) == 2 and unit in CANONICAL and unit not in ("in", "ft", "mi")


def _words_start(text: str) -> int:
    """Return where the trailing run of words (with ``/`` and an exponent) begins, or -1."""
    match = re.search(r"[A-Za-z°][A-Za-z°./ -]*(?:\^\s*\{?-?\d\}?)?\s*$", text[-80:])
    if match is None:
        return -1
    start = len(text) - len(text[-80:]) + match.start()
    return -1 if start > 0 and text[start - 1] in "\\_^{" else start


def canonical_unit(unit: str) -> str:
    """Return one name for a unit however it is spelled: ``square metres`` is ``m^2``."""
    unit = unit.strip().strip(".")
    unit = re.sub(r"\s*(?:/|每)\s*|(?:^|\s+)per\s+", "/", unit)
    product = product_of_units(unit)
    if product is not None:
        return product
    return "/".join(_canonical_factor(part) for part in unit.split("/"))


def _canonical_factor(unit: str) -> str:
    power = ""
    match = re.search(r"\s*\^\s*\{?(-?\d)\}?$", unit)
    if match is not None:
        unit, power = unit[: match.start()], f"^{match[1]}"
    for prefix, exponent in _PLACE_OF_POWER.items():
        if unit.casefold().startswith(prefix) and len(unit) > len(prefix):
            unit, power = unit[len(prefix) :].lstrip(" ."), exponent
    for suffix, exponent in ((" squared", "^2"), (" cubed", "^3")):
        if unit.endswith(suffix):
            unit, power = unit.removesuffix(suffix), exponent
    unit = unit.strip()
    known = known_unit(unit)
    if known is not None:
        return known + power
    last = unit.casefold().split()[-1] if unit.split() else ""
    return (last.removesuffix("s") if len(last) > 3 else last) + power
