"""Splitting text at its top level, outside brackets of any kind."""

from __future__ import annotations

import re
from collections.abc import Iterator

_CONNECTOR = re.compile(
    r"\s*(?:[,;]\s*)?(?:\\text\{\s*,?\s*(and|or)\s*\}|(?<![A-Za-z\\])(and|or)(?![A-Za-z])|(或者?|和|以及|及|且|并且))\s*"
    r"|\s*\\(?:lor|vee|land|wedge)(?![A-Za-z])\s*|\s*;\s*",
    re.I,
)
_RELATION = re.compile(r"<=|>=|!=|==|[=<>≈]|\\in(?![A-Za-z])")
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


def top_level(text: str) -> Iterator[int]:
    """Yield the positions of `text` that lie outside all brackets."""
    depth = 0
    for index, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth = max(depth - 1, 0)
        elif depth == 0:
            yield index


def split_top(text: str, separator: str) -> list[str]:
    """Split at `separator` outside brackets; a command must not go on with a letter."""
    if separator not in text:
        return [text]
    pieces, start = [], 0
    for index in top_level(text):
        if index < start or not text.startswith(separator, index):
            continue
        end = index + len(separator)
        if separator[0] == "\\" and text[end : end + 1].isalpha():
            continue
        pieces.append(text[start:index])
        start = end
    return [*pieces, text[start:]]


def split_connectors(text: str) -> tuple[list[str], str]:
    """Split at and, or, ``;``, 或, 和; return the parts and the last word that joined them."""
    found = list(_CONNECTOR.finditer(text))
    if not found:
        return [text], ""
    open_positions = _open_positions(text)
    pieces, start, word = [], 0, ""
    for match in found:
        first = match.end() - len(match[0].lstrip())
        if first not in open_positions:
            continue
        pieces.append(text[start : match.start()])
        start = match.end()
        name = (match[1] or match[2] or match[3] or "").lower()
        word = {
            "或": "or",
            "或者": "or",
            "和": "and",
            "以及": "and",
            "及": "and",
            "且": "and",
            "并且": "and",
        }.get(name, name) or word
        word = "or" if "lor" in match[0] or "vee" in match[0] else word
    pieces.append(text[start:])
    return [piece for piece in pieces if piece.strip(" ,")], word


def _open_positions(text: str) -> set[int]:
    """Return top-level positions, where the braces of a text command do not count."""
    flat = re.sub(r"\\text\{([^{}]*)\}", lambda m: "\\text." + m[1] + ".", text)
    return set(top_level(flat))


def split_items(text: str, *, thousands: bool = True) -> list[str]:
    """Split at commas outside brackets.

    Args:
        text: The list.
        thousands: Keep a comma between digits when exactly three digits follow, where other commas
            are followed by spaces.
    """
    if "," not in text:
        return [text]
    keep: set[int] = set()
    if thousands or ", " in text:
        tight = {m.start() for m in re.finditer(r",(?! )", text)}
        grouped = {m.start() for m in _THOUSANDS.finditer(text)}
        if ", " in text and tight <= grouped:
            keep = grouped
    pieces, start = [], 0
    for index in top_level(text):
        if text[index] == "," and index not in keep:
            pieces.append(text[start:index].strip())
            start = index + 1
    pieces.append(text[start:].strip())
    return [piece for piece in pieces if piece]


def without_thousands(text: str) -> str:
    """Return an expression without the commas in its numbers; those in brackets are left."""
    if "," not in text:
        return text
    outside = set(top_level(text))
    return _GROUPED.sub(
        lambda match: match[0].replace(",", "") if match.start() in outside else match[0], text
    )


def split_relations(text: str) -> tuple[list[str], list[str]]:
    """Split a chain of relations into its sides and its operators."""
    if not _RELATION.search(text):
        return [text], []
    outside = set(top_level(text))
    sides, operators, start = [], [], 0
    for match in _RELATION.finditer(text):
        if match.start() not in outside:
            continue
        if match[0] in "<>=" and text[match.end() : match.end() + 1] in ("<", ">", "="):
            continue
        sides.append(text[start : match.start()].strip())
        operators.append("=" if match[0] == "==" else match[0])
        start = match.end()
    sides.append(text[start:].strip())
    if "," in text and len(split_items(text)) > 1:
        return [text], []
    return sides, operators


def enclosed(text: str, opening: str, closing: str) -> str | None:
    """Return what `opening` and `closing` hold when they are one pair around all of it."""
    if not (text.startswith(opening) and text.endswith(closing)) or len(text) < len(
        opening + closing
    ):
        return None
    inner = text[len(opening) : len(text) - len(closing)]
    depth = 0
    for character in inner:
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            return None
    return inner if depth == 0 else None
