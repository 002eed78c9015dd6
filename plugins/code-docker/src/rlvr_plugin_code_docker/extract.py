"""Finds the code in an answer. Text only: nothing of an answer is parsed outside of the sandbox."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from rlvr_core.api import after_reasoning

MAX_CODE_CHARACTERS = 100_000
"""How long the code may be; no honest answer comes near."""
_PYTHON = frozenset({"python", "py", "python3", "py3"})
_FENCE = re.compile(r"^[ \t]*(?P<mark>`{3,}|~{3,})[ \t]*(?P<tag>[\w+.#-]*)[^\n]*$", re.M)
_IMPORT = re.compile(r"^[ \t]*(?:import|from)[ \t]+(\w+)", re.M)


@dataclass(frozen=True, slots=True)
class Code:
    """The code of an answer."""

    source: str
    is_fenced: bool


def find_code(completion: str, wanted: Collection[str]) -> Code | None:
    """Return the code of an answer, or None where there is none.

    It is the last fenced block with a Python tag; without one, the last block without a tag;
    without any fence, all of the text. Among blocks of a kind, those that define one of the names
    `wanted` are preferred: an example of use may follow the solution. Only text after the reasoning
    counts.
    """
    text = after_reasoning(completion)
    if text is None or not text.strip():
        return None
    blocks = _blocks(text)
    if blocks is None:
        return Code(text.strip("\r\n"), is_fenced=False)
    for tags in (_PYTHON, frozenset({""})):
        kind = [source for tag, source in blocks if tag in tags]
        defining = [source for source in kind if _defines(source, wanted)]
        if kind:
            return Code((defining or kind)[-1], is_fenced=True)
    return None


def imported_modules(source: str) -> list[str]:
    """Return the top-level modules that lines of the code seem to import, sorted."""
    return sorted(set(_IMPORT.findall(source)))


def _blocks(text: str) -> list[tuple[str, str]] | None:
    """Return (tag, content) of the fenced blocks; None where there is no fence.

    The last block may be left open.
    """
    blocks: list[tuple[str, str]] = []
    opening: re.Match[str] | None = None
    has_fence = False
    for fence in _FENCE.finditer(text):
        has_fence = True
        if opening is None:
            opening = fence
        elif not fence["tag"] and fence["mark"].startswith(opening["mark"]):
            blocks.append((opening["tag"].lower(), text[opening.end() + 1 : fence.start()]))
            opening = None
    if opening is not None:
        blocks.append((opening["tag"].lower(), text[opening.end() + 1 :]))
    return blocks if has_fence else None


def _defines(source: str, wanted: Collection[str]) -> bool:
    if not wanted:
        return False
    names = "|".join(map(re.escape, sorted(wanted)))
    pattern = rf"^(?:(?:async[ \t]+)?def|class)[ \t]+(?:{names})\b|^(?:{names})[ \t]*(?::[^=\n]*)?="
    return re.search(pattern, source, re.M) is not None
