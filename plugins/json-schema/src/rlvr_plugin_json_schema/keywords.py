"""The dialects of JSON Schema, with every keyword bounded in the time that it takes.

jsonschema does the validation. Replaced are the keywords that match patterns (with Python's engine,
which backtracks), the one that compares all pairs of items, and the one that divides floats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from fractions import Fraction
from typing import Any

import jsonschema
import referencing.jsonschema
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from referencing import Specification

from rlvr_core.api import Json
from rlvr_plugin_json_schema.patterns import matches

Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]

MAX_STEPS = 50_000
"""How many keywords are evaluated for one value before it counts as too costly."""


class TooCostlyError(Exception):
    """A value needs more work than any honest one."""


class Budget:
    """Counts the keywords that are evaluated."""

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self.steps = steps

    def spend(self) -> None:
        """Count one keyword.

        Raises:
            TooCostlyError: None is left.
        """
        self.steps -= 1
        if self.steps < 0:
            raise TooCostlyError(f"more than {MAX_STEPS:,} keywords had to be evaluated")


_budget: ContextVar[Budget] = ContextVar("budget")


def errors_of(validator: Any, value: Json) -> list[ValidationError]:
    """Return all that is wrong with a value.

    Raises:
        TooCostlyError: It takes too many steps, or more levels than Python has.
    """
    token = _budget.set(Budget())
    try:
        return list(validator.iter_errors(value))
    except RecursionError:
        raise TooCostlyError("it goes too many levels deep") from None
    finally:
        _budget.reset(token)


def _counted(keyword: Keyword) -> Keyword:
    def evaluate(
        validator: Any, wanted: Any, value: Any, schema: Any
    ) -> Iterator[ValidationError] | None:
        _budget.get().spend()
        return keyword(validator, wanted, value, schema)

    return evaluate


def _pattern(validator: Any, pattern: str, value: Json, schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(value, "string") and not matches(pattern, value):
        yield ValidationError("the text does not match the pattern")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], value: Json, schema: Any
) -> Iterator[ValidationError]:
    if not validator.is_type(value, "object"):
        return
    for pattern, subschema in patterns.items():
        for key, item in value.items():
            _budget.get().spend()
            if matches(pattern, key):
                yield from validator.descend(item, subschema, path=key, schema_path=pattern)


def _additional_properties(
    validator: Any, wanted: Any, value: Json, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if not validator.is_type(value, "object"):
        return
    patterns = schema.get("patternProperties", {})
    for key, item in value.items():
        if key in schema.get("properties", {}) or any(matches(one, key) for one in patterns):
            continue
        if wanted is False:
            yield ValidationError("the object has a property that the schema does not name")
        else:
            yield from validator.descend(item, wanted, path=key)


def _unique_items(
    validator: Any, wanted: bool, value: Json, schema: Any
) -> Iterator[ValidationError]:
    if wanted and validator.is_type(value, "array"):
        keys = [canonical(item) for item in value]
        if len(set(keys)) != len(keys):
            yield ValidationError("the array repeats an item")


def _multiple_of(
    validator: Any, divisor: float, value: Json, schema: Any
) -> Iterator[ValidationError]:
    # As decimals, 19.99 is a multiple of 0.01; as binary floats it is not.
    if validator.is_type(value, "number") and Fraction(repr(value)) % Fraction(repr(divisor)):
        yield ValidationError("the number is no multiple")


def canonical(value: Json) -> Any:
    """Return a hashable form that is equal for equal JSON values: 1 is 1.0 and is not true."""
    if isinstance(value, Mapping):
        return frozenset((key, canonical(item)) for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(canonical(item) for item in value)
    return (type(value).__name__ if isinstance(value, bool | str) else "", value)


_REPLACED: dict[str, Keyword] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
    "multipleOf": _multiple_of,
}


def _bounded(base: Any) -> Any:
    keywords = {**base.VALIDATORS, **_REPLACED}
    counted = {name: _counted(keyword) for name, keyword in keywords.items()}
    return extend(base, counted)  # type: ignore[no-untyped-call]


DIALECTS: dict[str, tuple[Any, Specification[Any]]] = {
    f"https://json-schema.org/draft/{name}/schema": (_bounded(base), specification)
    for name, base, specification in (
        ("2020-12", jsonschema.Draft202012Validator, referencing.jsonschema.DRAFT202012),
        ("2019-09", jsonschema.Draft201909Validator, referencing.jsonschema.DRAFT201909),
    )
} | {
    f"http://json-schema.org/{name}/schema": (_bounded(base), specification)
    for name, base, specification in (
        ("draft-07", jsonschema.Draft7Validator, referencing.jsonschema.DRAFT7),
        ("draft-06", jsonschema.Draft6Validator, referencing.jsonschema.DRAFT6),
        ("draft-04", jsonschema.Draft4Validator, referencing.jsonschema.DRAFT4),
    )
}
"""Value of ``$schema``, without the ``#`` at its end, to the validator class and how the dialect
writes references."""

DEFAULT_DIALECT = next(iter(DIALECTS))
