r"""Regular expressions of JSON Schema (ECMA-262), matched by RE2 in time linear in the text.

RE2 has no backtracking, so no pattern and no text can make a match slow. What it cannot express
(lookaround, back-references, more than 1,000 repeats) is refused when the schema is read.

Source: the correspondence of ECMA-262's CharacterClassEscape and Assertion with RE2's syntax page.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import re2

# White space and line terminators of ECMA-262, as ranges.
_SPACES = ((0x9, 0xD), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A),
           (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000),
           (0xFEFF, 0xFEFF))  # fmt: skip
_LAST_CODE_POINT = 0x10FFFF
_ANY_BUT_LINE_ENDS = r"[^\n\r\x{2028}\x{2029}]"

# RE2 knows general categories by their short names, and scripts by their long ones.
_CATEGORIES = {
    "Letter": "L", "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll", "Titlecase_Letter": "Lt",
    "Modifier_Letter": "Lm", "Other_Letter": "Lo", "Mark": "M", "Nonspacing_Mark": "Mn",
    "Spacing_Mark": "Mc", "Enclosing_Mark": "Me", "Number": "N", "Decimal_Number": "Nd",
    "digit": "Nd", "Letter_Number": "Nl", "Other_Number": "No", "Punctuation": "P", "punct": "P",
    "Connector_Punctuation": "Pc", "Dash_Punctuation": "Pd", "Open_Punctuation": "Ps",
    "Close_Punctuation": "Pe", "Initial_Punctuation": "Pi", "Final_Punctuation": "Pf",
    "Other_Punctuation": "Po", "Symbol": "S", "Math_Symbol": "Sm", "Currency_Symbol": "Sc",
    "Modifier_Symbol": "Sk", "Other_Symbol": "So", "Separator": "Z", "Space_Separator": "Zs",
    "Line_Separator": "Zl", "Paragraph_Separator": "Zp", "Other": "C", "Control": "Cc",
    "cntrl": "Cc", "Format": "Cf", "Private_Use": "Co",
}  # fmt: skip
_PROPERTY = re.compile(
    r"\\(?P<sign>[pP])\{(?:(?P<key>General_Category|gc|Script|sc)=)?(?P<name>\w+)\}"
)
_CODE_POINT = re.compile(
    r"\\u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|\\u(?P<four>[0-9a-fA-F]{4})|\\u\{(?P<braced>0*[0-9a-fA-F]{1,6})\}"
    r"|\\x(?P<two>[0-9a-fA-F]{2})|\\c(?P<control>[A-Za-z])"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_SAME_ESCAPES = frozenset("dDwWbBtnvfr")
_REPEATS = re.compile(r"[*+?{]")


def compile_pattern(pattern: str) -> Any:
    """Return the RE2 expression for a pattern of a schema.

    Raises:
        ValueError: It is no regular expression, or one that needs backtracking.
    """
    expression = _compiled(pattern)
    if isinstance(expression, str):
        raise ValueError(expression)
    return expression


def matches(pattern: str, text: str) -> bool:
    """Return whether a pattern matches somewhere in a text. Half a surrogate pair is U+FFFD."""
    return compile_pattern(pattern).search(well_formed(text)) is not None


def well_formed(text: str) -> str:
    """Return a text without half surrogate pairs, which RE2 cannot take."""
    return _SURROGATE.sub("\ufffd", text)


def cannot_backtrack(pattern: str) -> bool:
    """Return whether Python's own engine is as safe: the pattern repeats nothing."""
    if _REPEATS.search(pattern):
        return False
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    """Return the expression, or as text why there is none."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(_translated(pattern), options)
    except ValueError as error:
        return str(error)
    except re2.error as error:
        return _reason(error)


def _reason(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    if "invalid perl operator: (?" in text:
        return "it looks ahead or behind, which cannot be matched in bounded time"
    return text


def _translated(pattern: str) -> str:
    out: list[str] = []
    position, in_class = 0, False
    pattern = well_formed(pattern)
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            text, position = _escape(pattern, position, in_class)
            out.append(text)
            continue
        position += 1
        if in_class:
            in_class = character != "]"
            out.append(r"\[" if character == "[" else character)
        elif character == "[":
            text, position = _class_start(pattern, position)
            in_class = text in ("[", "[^")
            out.append(text)
        else:
            out.append({".": _ANY_BUT_LINE_ENDS, "$": r"\z"}.get(character, character))
    return "".join(out)


def _class_start(pattern: str, position: int) -> tuple[str, int]:
    """Translate what follows ``[``; ``[]`` matches nothing and ``[^]`` anything."""
    if pattern.startswith("^]", position):
        return r"(?s:.)", position + 2
    if pattern.startswith("]", position):
        return r"[^\x{0}-\x{10FFFF}]", position + 1
    if pattern.startswith("^", position):
        return "[^", position + 1
    return "[", position


def _escape(pattern: str, position: int, in_class: bool) -> tuple[str, int]:
    r"""Translate the escape at `position`; return it and where the next character stands."""
    found = _PROPERTY.match(pattern, position)
    if found is not None:
        name = found["name"]
        short = name if found["key"] in ("Script", "sc") else _CATEGORIES.get(name, name)
        return rf"\{found['sign']}{{{short}}}", found.end()
    found = _CODE_POINT.match(pattern, position)
    if found is not None:
        return rf"\x{{{_code_point(found):X}}}", found.end()
    escaped = pattern[position + 1 : position + 2]
    end = position + 2
    if escaped in ("s", "S"):
        ranges = _ranges(complement=escaped == "S")
        return (ranges if in_class else f"[{ranges}]"), end
    if escaped == "b" and in_class:
        return r"\x{8}", end
    if escaped == "0" and not pattern[end : end + 1].isdigit():
        return r"\x{0}", end
    if escaped == "":
        raise ValueError("it ends with a backslash")
    if escaped.isdigit() or escaped == "k":
        raise ValueError("it refers back to a group, which cannot be matched in bounded time")
    if escaped in _SAME_ESCAPES or not escaped.isalnum():
        return (re2.escape(escaped) if ord(escaped) > 127 else rf"\{escaped}"), end
    raise ValueError(rf"\{escaped} means nothing in a regular expression of JSON Schema")


def _code_point(found: re.Match[str]) -> int:
    if found["high"]:
        high, low = int(found["high"], 16), int(found["low"], 16)
        return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)
    if found["control"]:
        return ord(found["control"]) % 32
    number = int(found["four"] or found["braced"] or found["two"], 16)
    if number > _LAST_CODE_POINT:
        raise ValueError("it names a character above U+10FFFF")
    return 0xFFFD if 0xD800 <= number <= 0xDFFF else number


@lru_cache(maxsize=2)
def _ranges(*, complement: bool) -> str:
    ranges: list[tuple[int, int]] = list(_SPACES)
    if complement:
        starts = [0, *(high + 1 for _, high in _SPACES)]
        ends = [*(low - 1 for low, _ in _SPACES), _LAST_CODE_POINT]
        ranges = [(low, high) for low, high in zip(starts, ends, strict=True) if low <= high]
    return "".join(rf"\x{{{low:X}}}-\x{{{high:X}}}" for low, high in ranges)
