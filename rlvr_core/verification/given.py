"""Rows as people write them: ``{id?, prompt?, completion, ground_truth, config?, expected?}``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from rlvr_core.api.errors import DataError
from rlvr_core.api.rollouts import Message, Prompt
from rlvr_core.api.verdicts import Json
from rlvr_core.verification.rows import RawRow

_SHOWN_PROBLEMS = 10
_MAX_DEPTH = 100
"""Rows cross to the workers in a form that deep nesting would break."""


@dataclass(frozen=True, slots=True)
class GivenRow:
    """One usable row and where it came from."""

    label: str
    """How messages call it: ``row 3`` or ``line 3``."""
    raw: RawRow
    config: Mapping[str, Json]
    """Settings of the plugin for this row only."""


def parse_rows(rows: Sequence[tuple[str, Any]], problems: list[str]) -> list[GivenRow]:
    """Return the usable rows; what is wrong with the others goes to `problems`.

    Args:
        rows: Labels and rows, in order.
        problems: One sentence for each fault is appended.
    """
    parsed = []
    used: set[str] = set()
    for index, (label, row) in enumerate(rows):
        faults = list(_faults(row))
        problems += [f"{label}: {fault}" for fault in faults]
        if not faults:
            raw = _raw(index, row, used)
            used.add(raw.id)
            parsed.append(GivenRow(label, raw, row.get("config") or {}))
    return parsed


def refuse(problems: Sequence[str], count: int, origin: str | None) -> None:
    """Raise if there are problems.

    Raises:
        DataError: All problems in one message (RLVR-D102).
    """
    if not problems:
        return
    shown = list(problems[:_SHOWN_PROBLEMS])
    if len(problems) > len(shown):
        shown.append(f"… and {len(problems) - len(shown)} more")
    raise DataError(
        "RLVR-D102",
        f"{len(problems)} problem{'s' if len(problems) > 1 else ''} in {count} "
        f"row{'s' if count != 1 else ''}",
        origin=origin,
        cause="\n".join(shown),
        fix='a row is {"completion": "…", "ground_truth": {…}}, with "id", "prompt", "config" and '
        '"expected" if you like',
    )


def _faults(row: Any) -> Iterable[str]:
    if not isinstance(row, Mapping):
        yield f"expected an object, got {_kind(row)}"
        return
    for key, kind, name in (
        ("completion", str, "a string"),
        ("ground_truth", Mapping, "an object"),
    ):
        if key not in row:
            yield f"{key} is missing"
        elif not isinstance(row[key], kind):
            yield f"{key}: expected {name}, got {_kind(row[key])}"
    for key, kinds, name in (
        ("id", (str, int), "a string or a whole number"),
        ("config", (Mapping,), "an object"),
        ("metadata", (Mapping,), "an object"),
        ("expected", (int, float), "a number, or null for abstained"),
    ):
        value = row.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, kinds)):
            yield f"{key}: expected {name}, got {_kind(value)}"
    if "expected" not in row:
        meant = get_close_matches("expected", [str(key) for key in row], n=1, cutoff=0.85)
        yield from (f"{key}: unknown key; did you mean 'expected'?" for key in meant)
    if not _is_finite(row.get("expected")):
        yield "expected: must be a finite number"
    if _depth_exceeds(row, _MAX_DEPTH):
        yield f"is nested deeper than {_MAX_DEPTH}"
    if not _is_prompt(row.get("prompt", "")):
        yield "prompt: expected a string, or a list of messages with role and content"


def _is_finite(value: Any) -> bool:
    """Return False for a number that is infinite, NaN or beyond what a float can hold."""
    try:
        return not isinstance(value, int | float) or math.isfinite(value)
    except OverflowError:
        return False


def _depth_exceeds(value: Any, limit: int) -> bool:
    """Return whether containers are nested deeper than `limit` levels."""
    if not isinstance(value, Mapping | list | tuple):
        return False
    items = value.values() if isinstance(value, Mapping) else value
    return limit < 1 or any(_depth_exceeds(item, limit - 1) for item in items)


def _is_prompt(prompt: Any) -> bool:
    if prompt is None or isinstance(prompt, str):
        return True
    return isinstance(prompt, Sequence) and all(
        isinstance(message, Mapping)
        and isinstance(message.get("role"), str)
        and isinstance(message.get("content"), str)
        for message in prompt
    )


def _raw(index: int, row: Mapping[str, Any], used: set[str]) -> RawRow:
    given = row.get("id")
    identifier = str(index if given is None else given)
    while identifier in used:
        # Ids that people give may repeat; those of the engine may not.
        identifier += f"#{index}"
    return RawRow(
        id=identifier,
        prompt=_prompt(row.get("prompt")),
        completion=row["completion"],
        ground_truth=row["ground_truth"],
        metadata=row.get("metadata") or {},
    )


def _prompt(prompt: Any) -> Prompt:
    if prompt is None or isinstance(prompt, str):
        return prompt or ""
    return tuple(Message(message["role"], message["content"]) for message in prompt)


def _kind(value: Any) -> str:
    names = {bool: "true or false", type(None): "null", str: "a string", list: "a list"}
    if type(value) in names:
        return names[type(value)]
    return "a number" if isinstance(value, int | float) else f"a {type(value).__name__}"
