"""Partial credit: the parts that a value must have, and which of them are right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jsonschema.exceptions import ValidationError
from referencing import Specification

from rlvr_core.api import Json
from rlvr_plugin_json_schema.keywords import canonical
from rlvr_plugin_json_schema.walk import Place, referenced

Path = tuple[str, ...]

MAX_LEAVES = 1000


def required_leaves(root: Place, specification: Specification[Any]) -> list[Path]:
    """Return the paths of the required properties that require no further ones themselves.

    Followed are ``properties``, ``allOf`` and references, and nothing that depends on a choice.
    """
    leaves: dict[Path, None] = {}
    waiting: list[tuple[Path, Place, frozenset[int]]] = [((), root, frozenset())]
    while waiting and len(leaves) < MAX_LEAVES:
        path, place, above = waiting.pop()
        parts = list(_parts(place, specification))
        keys = {id(part.contents) for part in parts}
        if keys & above:
            # A required property of its own kind: no finite value has it.
            continue
        required = {name for part in parts for name in part.contents.get("required", ())}
        for name in sorted(required):
            leaves[(*path, name)] = None
        for part in parts:
            for name, contents in part.contents.get("properties", {}).items():
                if name in required and isinstance(contents, Mapping):
                    inner = part.under(f"properties/{name}", contents, specification)
                    waiting.append(((*path, name), inner, above | keys))
    return ends_of(leaves)[:MAX_LEAVES]


def ends_of(paths: Iterable[Path]) -> list[Path]:
    """Return the paths, once each, that do not lead to another of them."""
    unique = dict.fromkeys(paths)
    inner = {path[:length] for path in unique for length in range(len(path))}
    return [path for path in unique if path not in inner]


def _parts(place: Place, specification: Specification[Any]) -> Iterator[Place]:
    """Yield a schema and those that it includes without a choice."""
    seen: set[int] = set()
    waiting = [place]
    while waiting:
        part = waiting.pop()
        if not isinstance(part.contents, Mapping) or id(part.contents) in seen:
            continue
        seen.add(id(part.contents))
        yield part
        waiting.extend(referenced(part))
        for number, inner in enumerate(part.contents.get("allOf", ())):
            waiting.append(part.under(f"allOf/{number}", inner, specification))


def expected_leaves(expected: Json, path: Path = ()) -> Iterator[tuple[Path, Json]]:
    """Yield path and value of each part of an expected value; an array is one part."""
    if isinstance(expected, Mapping) and expected:
        for key, value in expected.items():
            yield from expected_leaves(value, (*path, key))
    else:
        yield path, expected


def right_leaves(
    value: Json,
    leaves: Iterable[Path],
    expected: Mapping[Path, Json],
    errors: Iterable[ValidationError],
) -> set[Path]:
    """Return the leaves that are there, break no rule, and have the value that is expected."""
    places = [tuple(error.absolute_path) for error in errors]
    broken = {place[:length] for place in places for length in range(len(place) + 1)}
    found = set()
    for path in leaves:
        there, item = _at(value, path)
        if not there or path in broken:
            continue
        if path not in expected or canonical(item) == canonical(expected[path]):
            found.add(path)
    return found


def _at(value: Json, path: Path) -> tuple[bool, Json]:
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return False, None
        value = value[key]
    return True, value
