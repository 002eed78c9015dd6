"""From the JSON in an answer to the entities that it claims."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlvr_core.api import Json, JsonPiece
from rlvr_plugin_f1_extraction.normalise import normal_text


@dataclass(frozen=True, slots=True)
class Rules:
    """What makes two entities the same."""

    ignore_type: bool = False
    case_sensitive: bool = False
    offsets: bool = False


@dataclass(frozen=True, slots=True)
class Entity:
    """One entity in the form in which entities are compared.

    Attributes:
        text: Normalised text; of a malformed entry, the entry as JSON.
        type: Normalised type; empty where types do not count.
        span: Start and end, in characters; None where offsets do not count.
        malformed: True for an entry that names no entity. It equals nothing that is right.
    """

    text: str
    type: str
    span: tuple[int, int] | None
    malformed: bool = False


class NoEntitiesError(ValueError):
    """The JSON is sound, and holds no list of entities."""


def entity_of(entry: Json, rules: Rules) -> Entity:
    """Return the entity that an entry names: an object with a text, and a type if types count.

    Where neither types nor offsets count, the text alone will do.
    """
    if isinstance(entry, str) and rules.ignore_type and not rules.offsets:
        entry = {"text": entry}
    if not isinstance(entry, Mapping):
        return _malformed(entry)
    text = _normal(entry.get("text"), case_sensitive=rules.case_sensitive)
    kind = "" if rules.ignore_type else _normal(entry.get("type"))
    span = _span(entry) if rules.offsets else None
    if rules.offsets and span is None:
        return _malformed(entry)
    if not text or (not kind and not rules.ignore_type):
        return _malformed(entry)
    return Entity(text, kind, span)


def claimed(pieces: Sequence[JsonPiece], text: str) -> list[Json]:
    """Return the entries of the last value in an answer that is complete.

    Args:
        pieces: What `find_json` found.
        text: Where it found it.

    Raises:
        NoEntitiesError: The value is a string, a number, true, false or null.
        LookupError: No value is complete.
    """
    group = _last_group(pieces, text)
    if len(group) > 1:
        return [piece.value for piece in group]
    return _entries(group[0].value)


def _last_group(pieces: Sequence[JsonPiece], text: str) -> list[JsonPiece]:
    """Return the last complete value, or the last run of lines that each hold one entity."""
    complete = [
        group for group in _groups(pieces, text) if all(piece.error is None for piece in group)
    ]
    if not complete:
        raise LookupError("no value is complete")
    claims = [group for group in complete if not _is_citation(group[0].value)]
    return (claims or complete)[-1]


def _groups(pieces: Sequence[JsonPiece], text: str) -> list[list[JsonPiece]]:
    """Put lines that stand together into one group, broken ones too; all else stands alone."""
    groups: list[list[JsonPiece]] = []
    for piece in pieces:
        if groups and _is_line(piece, text) and _is_line(groups[-1][-1], text):
            between = text[groups[-1][-1].end : piece.start]
            if between.isspace():
                groups[-1].append(piece)
                continue
        groups.append([piece])
    return groups


def _is_line(piece: JsonPiece, text: str) -> bool:
    """Return whether a piece may be a line of JSON Lines: one entity, or an object cut short."""
    if piece.error is not None:
        return text[piece.start] == "{"
    return isinstance(piece.value, Mapping) and _is_entity(piece.value)


def _entries(value: Json) -> list[Json]:
    if isinstance(value, Mapping):
        if isinstance(value.get("entities"), list):
            return list(value["entities"])
        return [value] if _is_entity(value) else _from_map(value)
    if isinstance(value, list):
        return value
    raise NoEntitiesError(_kind(value))


def _from_map(value: Mapping[str, Json]) -> list[Json]:
    """Return the entries of an object that holds one text, or a list of texts, for each type."""
    return [
        {"text": text, "type": kind}
        for kind, texts in value.items()
        for text in (texts if isinstance(texts, list) else [texts])
    ]


def _is_entity(value: Mapping[str, Json]) -> bool:
    return "text" in value and not isinstance(value.get("entities"), list)


def _is_citation(value: Json) -> bool:
    """Return whether a value is like ``[1]`` or ``[2, 3]``: a list of numbers and nothing else."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, int | float) and not isinstance(item, bool) for item in value)
    )


def _normal(value: Json, *, case_sensitive: bool = False) -> str:
    return normal_text(value, case_sensitive=case_sensitive) if isinstance(value, str) else ""


def _span(entry: Mapping[str, Json]) -> tuple[int, int] | None:
    start, end = entry.get("start"), entry.get("end")
    if isinstance(start, bool) or isinstance(end, bool):
        return None
    return (start, end) if isinstance(start, int) and isinstance(end, int) else None


def _malformed(entry: Json) -> Entity:
    return Entity(json.dumps(entry, sort_keys=True), "", None, malformed=True)


def _kind(value: Json) -> str:
    names = {str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
