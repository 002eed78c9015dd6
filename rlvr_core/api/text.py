"""Reading completions: the text after the reasoning, and the JSON in it.

Pure functions of the text. All of them take any string (control characters, lone surrogates, a
million brackets) and need time that grows with its length only.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from rlvr_core.api.verdicts import Json

DuplicateKeys = Literal["last", "refuse"]

MAX_JSON_DEPTH = 64
"""How deeply arrays and objects may be nested in a value that is read."""

_REASONING = r"(?:think|thinking|thought|reasoning|reason|analysis|reflection|scratchpad)"
_REASONING_OPEN = re.compile(rf"<{_REASONING}>|\[THINK\]|<\|begin_of_thought\|>|◁think▷", re.I)
_REASONING_CLOSE = re.compile(rf"</{_REASONING}>|\[/THINK\]|<\|end_of_thought\|>|◁/think▷", re.I)

# A line that starts with a fence cannot lie inside JSON: no string of it holds a line break.
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})(?P<language>[\w+-]*)", re.M)
# Where somebody means JSON: what follows the bracket tells it from brackets in prose.
_OPENING = re.compile(
    r"\{(?=\s*+(?:[\"'“”‘’}]|[\w-]{1,64}+\s*+[:：]))"
    r"|\[(?=\s*+(?:[\[{\]\"'“”‘’]|-?\d|-?Infinity|(?:true|false|null|NaN)\b))"
)
_MARK = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)|[\[\]{}]', re.S)
_STRAY_CLOSING = re.compile(r"\s*+[\]}]")


def after_reasoning(completion: str) -> str | None:
    """Return what follows the last closed reasoning block, or None when a block is left open.

    Blocks are the tag pairs that reasoning models write: ``<think>…</think>``,
    ``[THINK]…[/THINK]`` and their like, in any case. Text without one is returned whole.
    """
    if not ("<" in completion or "[" in completion or "◁" in completion):
        return completion
    end = 0
    for match in _REASONING_CLOSE.finditer(completion):
        end = match.end()
    rest = completion[end:]
    return None if _REASONING_OPEN.search(rest) else rest


def read_json(text: str, *, duplicate_keys: DuplicateKeys = "refuse") -> Json:
    """Read one JSON value, as RFC 8259 writes it and Python's reader does not insist on.

    Args:
        text: The value, and nothing but blanks around it.
        duplicate_keys: What an object that repeats a key is: an error, or as its last value says.

    Raises:
        ValueError: Not JSON, a number that is not finite (NaN, Infinity, 1e999) or has more digits
            than Python converts, a repeated key, or more than `MAX_JSON_DEPTH` levels.
    """
    if text.count("[") + text.count("{") > MAX_JSON_DEPTH and _depth(text) > MAX_JSON_DEPTH:
        raise ValueError(f"nested more than {MAX_JSON_DEPTH} levels deep")
    decoder = _STRICT if duplicate_keys == "refuse" else _LENIENT
    return decoder.decode(text)


@dataclass(frozen=True, slots=True)
class JsonPiece:
    """One place in a text where JSON stands, or broken JSON.

    Attributes:
        start: Index of its first character.
        end: Index after its last character.
        value: The value; None when it is broken, and for ``null``.
        error: Why it cannot be read; None when it can.
    """

    start: int
    end: int
    value: Json
    error: str | None = None


def find_json(text: str, *, duplicate_keys: DuplicateKeys = "refuse") -> list[JsonPiece]:
    """Return the JSON values in a text, outermost only, in order, and where JSON is broken.

    Objects and arrays are found in prose and in fenced blocks; strings, numbers, ``true``,
    ``false`` and ``null`` count where they are the whole text or all that a fenced block holds.
    Nothing is taken out of a broken value: an array that never ends makes no claim with its first
    items. A fence line ends a value that is still open.

    Args:
        text: Any text.
        duplicate_keys: As for `read_json`.
    """
    fences = list(_FENCE.finditer(text))
    bounds = [0, *(edge for fence in fences for edge in fence.span()), len(text)]
    pieces: list[JsonPiece] = []
    for number, (start, end) in enumerate(zip(bounds[::2], bounds[1::2], strict=True)):
        if number % 2 == 1 or not fences:
            scalar = _scalar(text, start, end, duplicate_keys)
            if scalar is not None:
                pieces.append(scalar)
                continue
        pieces.extend(_containers(text, start, end, duplicate_keys))
    return pieces


def _scalar(text: str, start: int, end: int, duplicate_keys: DuplicateKeys) -> JsonPiece | None:
    """Return the value that is no container and fills text[start:end]; None if there is none."""
    inner = text[start:end].strip(" \t\r\n`")
    if not inner or inner[0] not in '"-0123456789tfn':
        return None
    try:
        return JsonPiece(start, end, read_json(inner, duplicate_keys=duplicate_keys))
    except ValueError:
        return None


def _containers(
    text: str, start: int, end: int, duplicate_keys: DuplicateKeys
) -> Iterator[JsonPiece]:
    position = start
    while (opening := _OPENING.search(text, position, end)) is not None:
        close = _closing(text, opening.start(), end)
        if close is None:
            yield JsonPiece(opening.start(), end, None, "it is never closed")
            return
        stray = _STRAY_CLOSING.match(text, close, end)
        if stray is not None:
            position = stray.end()
            yield JsonPiece(opening.start(), position, None, "it closes more than it opened")
            continue
        position = close
        try:
            value = read_json(text[opening.start() : close], duplicate_keys=duplicate_keys)
        except ValueError as error:
            yield JsonPiece(opening.start(), close, None, str(error))
        else:
            yield JsonPiece(opening.start(), close, value)


def _depth(text: str) -> int:
    """Return how deeply the brackets of a text are nested; those in strings do not count."""
    depth = deepest = 0
    for match in _MARK.finditer(text):
        if match[0] in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif match[0] in "]}":
            depth -= 1
    return deepest


def _closing(text: str, start: int, end: int) -> int | None:
    """Return the index after the bracket that closes the one at `start`; strings are skipped."""
    depth = 0
    for match in _MARK.finditer(text, start, end):
        if match[0] in "[{":
            depth += 1
        elif match[0] in "]}":
            depth -= 1
            if depth == 0:
                return match.end()
    return None


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is no JSON value")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _without_repeats(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object repeats a key")
    return found


_LENIENT = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)
_STRICT = json.JSONDecoder(
    parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_without_repeats
)
