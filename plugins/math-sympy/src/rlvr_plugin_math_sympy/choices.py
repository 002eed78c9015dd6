"""Choice letters of multiple-choice questions: ``B``, ``(B)``, ``B. 12``."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TEXT = re.compile(r"\\text\{([^{}]*)\}")
_CHOICE = re.compile(
    r"(?:(?i:option|choice|answer)\s*)?(?:\(\s*([A-J])\s*\)|([A-J])(?:\s*[.):]|$))\s*(.*)", re.S
)
_MARKED = re.compile(r"(?<![A-Za-z\\])(?:\(\s*([A-J])\s*\)|([A-J])\s*[.):](?![A-Z]))")
_LETTERS = re.compile(r"[A-J](?:[.):,\s(]+[A-J])*[.):]?")


@dataclass(frozen=True, slots=True)
class Choice:
    """A chosen letter, what stands beside it, and whether other options are listed too."""

    letter: str
    content: str
    hedged: bool


def read_choice(text: str) -> Choice | None:
    """Return the choice that a tidied answer makes, or None when it starts with no option."""
    text = _TEXT.sub(r"\1", text).strip()
    match = _CHOICE.fullmatch(text)
    if match is None:
        return None
    letter, content = match[1] or match[2], match[3].strip()
    others = {found[1] or found[2] for found in _MARKED.finditer(content)} - {letter}
    hedged = bool(others) or (content != letter and _LETTERS.fullmatch(content) is not None)
    return Choice(letter, content, hedged)
