"""Going through a schema and what it refers to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from referencing import Specification

from rlvr_core.api import Json

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_LISTS_IN_PLACE = ("allOf", "anyOf", "oneOf")
_SINGLES_IN_PLACE = ("not", "if", "then", "else")
_MAPS_IN_PLACE = ("dependentSchemas", "dependencies")


@dataclass(frozen=True, slots=True)
class Place:
    """A schema within the document.

    Attributes:
        where: The keys that lead to it, for messages.
        contents: The schema: an object, true or false.
        resolver: Resolves what it refers to.
    """

    where: str
    contents: Json
    resolver: Any

    def under(self, step: str, contents: Json, specification: Specification[Any]) -> Place:
        """Return the schema that stands at `step` of this one."""
        resolver = self.resolver.in_subresource(specification.create_resource(contents))
        return Place(f"{self.where}/{step}".lstrip("/"), contents, resolver)


def places(root: Place, specification: Specification[Any]) -> Iterator[Place]:
    """Yield every schema of the document and every one that is referred to, once each.

    Raises:
        referencing.exceptions.Unresolvable: A reference leads nowhere.
    """
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        place = waiting.pop()
        if isinstance(place.contents, Mapping) and id(place.contents) in seen:
            continue
        seen.add(id(place.contents))
        yield place
        if isinstance(place.contents, Mapping):
            waiting.extend(referenced(place))
            waiting.extend(_within(place, specification))


def referenced(place: Place) -> Iterator[Place]:
    """Yield the schemas that a schema refers to."""
    for key in REFERENCES:
        reference = place.contents.get(key)
        if isinstance(reference, str):
            found = place.resolver.lookup(reference)
            yield Place(f"{place.where}/{key}".lstrip("/"), found.contents, found.resolver)


def in_place(place: Place, specification: Specification[Any]) -> Iterator[Place]:
    """Yield the schemas within one that judge the same value."""
    contents = place.contents
    for key in _LISTS_IN_PLACE:
        for number, part in enumerate(contents.get(key, ())):
            yield place.under(f"{key}/{number}", part, specification)
    for key in _SINGLES_IN_PLACE:
        if key in contents:
            yield place.under(key, contents[key], specification)
    for key in _MAPS_IN_PLACE:
        for name, part in contents.get(key, {}).items():
            if isinstance(part, Mapping | bool):
                yield place.under(f"{key}/{name}", part, specification)


def _within(place: Place, specification: Specification[Any]) -> Iterator[Place]:
    for part in specification.create_resource(place.contents).subresources():
        step = _step_to(part.contents, place.contents)
        yield place.under(step, part.contents, specification)


def _step_to(part: Json, contents: Mapping[str, Json]) -> str:
    """Return the keys that lead from a schema to a part of it."""
    for key, value in contents.items():
        if value is part:
            return key
        if isinstance(value, Mapping):
            for name, inner in value.items():
                if inner is part:
                    return f"{key}/{name}"
        elif isinstance(value, list):
            for number, inner in enumerate(value):
                if inner is part:
                    return f"{key}/{number}"
    return "…"
