"""Reading a schema: everything that could go wrong with it is found before the first row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jsonschema
from referencing import Registry, Specification
from referencing.exceptions import Unresolvable

from rlvr_core.api import Json
from rlvr_plugin_json_schema.formats import CHECKS, FORMATS
from rlvr_plugin_json_schema.keywords import (
    DEFAULT_DIALECT,
    DIALECTS,
    TooCostlyError,
    errors_of,
)
from rlvr_plugin_json_schema.leaves import Path, required_leaves
from rlvr_plugin_json_schema.patterns import cannot_backtrack, compile_pattern
from rlvr_plugin_json_schema.walk import Place, in_place, places, referenced

_SAY_NOTHING = frozenset({
    "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$comment", "$vocabulary",
    "$defs", "definitions", "title", "description", "default", "examples", "deprecated",
    "readOnly", "writeOnly", "contentEncoding", "contentMediaType", "contentSchema",
})  # fmt: skip
"""Keywords that no value can break."""

_PROBES: tuple[Json, ...] = (None, True, 0, "", [], {})


class SchemaFaultError(ValueError):
    """A schema that cannot judge: what is wrong with it, and where."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema that is ready to judge values.

    Attributes:
        validator: The validator of jsonschema, every keyword bounded.
        leaves: Paths of the parts that every valid value has.
        types: What the schema's own ``type`` allows; empty where it says nothing.
    """

    validator: Any
    leaves: tuple[Path, ...]
    types: frozenset[str]

    def may_be(self, value: Json) -> bool:
        """Return whether the schema's own ``type`` allows a value of this kind."""
        return not self.types or any(self.validator.is_type(value, name) for name in self.types)


def read_schema(schema: Mapping[str, Json]) -> Schema:
    """Check a schema, and return it ready for use. The last 256 are kept.

    Raises:
        SchemaFaultError: It is no valid schema of a dialect that is known, refers to something
            outside itself or to itself without end, holds a pattern that cannot be matched in
            bounded time or a format that is not checked, or says nothing.
    """
    try:
        text = json.dumps(schema, sort_keys=False)
    except RecursionError:
        raise SchemaFaultError("the schema is nested too deeply") from None
    read = _read(text)
    if isinstance(read, str):
        raise SchemaFaultError(read)
    return read


@lru_cache(maxsize=256)
def _read(text: str) -> Schema | str:
    try:
        return _checked(json.loads(text))
    except SchemaFaultError as error:
        return str(error)
    except RecursionError:
        return "the schema is nested too deeply"


def _checked(schema: dict[str, Json]) -> Schema:
    # A validator that meets `$schema` again would go back to jsonschema's own keywords.
    dialect = schema.pop("$schema", DEFAULT_DIALECT)
    known = DIALECTS.get(dialect.rstrip("#")) if isinstance(dialect, str) else None
    if known is None:
        raise SchemaFaultError(f"`$schema` is none of {', '.join(DIALECTS)}")
    validator_class, specification = known
    _check_form(validator_class, schema)
    if not validator_class.VALIDATORS.keys() & (schema.keys() - _SAY_NOTHING):
        raise SchemaFaultError("it says nothing about a value, so it verifies nothing")
    root = Place("", schema, Registry().resolver_with_root(specification.create_resource(schema)))
    _check_places(root, specification)
    validator = validator_class(schema, registry=Registry(), format_checker=FORMATS)
    _check_cost(validator)
    kinds = schema.get("type", [])
    return Schema(
        validator,
        tuple(required_leaves(root, specification)),
        frozenset([kinds] if isinstance(kinds, str) else kinds),
    )


def _check_form(validator_class: Any, schema: Json) -> None:
    try:
        validator_class.check_schema(schema, format_checker=_KNOWN_REGEX)
    except jsonschema.SchemaError as error:
        where = "/".join(str(step) for step in error.absolute_path)
        raise SchemaFaultError(f"at {_shown(where)}: {error.message[:300]}") from None


# Patterns are checked afterwards, with a reason.
_KNOWN_REGEX = jsonschema.FormatChecker(formats=())


def _check_places(root: Place, specification: Specification[Any]) -> None:
    found = []
    try:
        for place in places(root, specification):
            found.append(place)
            for fault in _faults(place):
                raise SchemaFaultError(f"at {_shown(place.where)}: {fault}")
    except Unresolvable as error:
        raise SchemaFaultError(
            f"the reference {error.ref!r} leads nowhere in this schema; nothing is fetched"
        ) from None
    mappings = [place for place in found if isinstance(place.contents, Mapping)]
    if any(
        key in place.contents
        for place in mappings
        for key in ("unevaluatedProperties", "unevaluatedItems")
    ):
        for place in mappings:
            for pattern in place.contents.get("patternProperties", {}):
                if not cannot_backtrack(pattern):
                    raise SchemaFaultError(
                        f"at {_shown(place.where)}: beside `unevaluatedProperties`, patterns of "
                        f"`patternProperties` must repeat nothing, and {pattern!r} does"
                    )
    _check_no_circle(root, specification)


def _faults(place: Place) -> Iterator[str]:
    contents = place.contents
    if not isinstance(contents, Mapping):
        return
    if place.where and "$schema" in contents:
        yield "`$schema` stands at the top only"
    for pattern in [*contents.get("patternProperties", {}), contents.get("pattern")]:
        if pattern is not None:
            try:
                compile_pattern(pattern)
            except ValueError as error:
                yield f"the pattern {pattern!r} cannot be used: {error}"
    name = contents.get("format")
    if name is not None and name not in CHECKS:
        yield f"the format {name!r} is not checked; those that are: {', '.join(CHECKS)}"


def _check_no_circle(root: Place, specification: Specification[Any]) -> None:
    """Refuse a schema that leads back to itself without going deeper into the value."""
    done: set[int] = set()
    for start in places(root, specification):
        # Depth first, with the places on the way kept: leaving one is marked by None.
        stack: list[tuple[Place, bool]] = [(start, False)]
        on_the_way: set[int] = set()
        while stack:
            place, is_left = stack.pop()
            key = id(place.contents)
            if is_left:
                on_the_way.discard(key)
                done.add(key)
            elif key in on_the_way:
                raise SchemaFaultError(f"at {_shown(place.where)}: it refers to itself without end")
            elif key not in done and isinstance(place.contents, Mapping):
                on_the_way.add(key)
                stack.append((place, True))
                nearer = [*in_place(place, specification), *referenced(place)]
                stack.extend((other, False) for other in nearer)


def _check_cost(validator: Any) -> None:
    """Refuse a schema that takes too many steps even on the smallest values."""
    try:
        for value in _PROBES:
            errors_of(validator, value)
    except TooCostlyError as error:
        raise SchemaFaultError(f"it is too costly: {error}") from None


def _shown(where: str) -> str:
    return f"`{where}`" if where else "the top"
