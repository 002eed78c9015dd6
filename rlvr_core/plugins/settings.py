"""Check a plugin's settings against its own `Config`, in the words of the stack file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from rlvr_core.api.plugin import RESERVED_CONFIG_KEYS, Family, Plugin
from rlvr_core.api.verdicts import Json
from rlvr_core.config.models import PluginEntry
from rlvr_core.config.positions import Problem
from rlvr_core.config.wording import keys_of, problems_of, unknown_key
from rlvr_core.config.yaml_source import Path


def validate_settings(
    cls: type[Plugin], family: Family, settings: Mapping[str, Json], loc: Path
) -> tuple[BaseModel | None, list[Problem]]:
    """Return the validated settings, or None and what is wrong with them.

    Args:
        cls: The plugin class.
        family: Decides which of core's own words are listed as allowed beside the plugin's.
        settings: As given in the stack, core's words taken out.
        loc: Path of the entry in the stack.
    """
    config, prefix = cls.Config, (*loc, "config")
    words = sorted(RESERVED_CONFIG_KEYS) if family is Family.VERIFIERS else ["plugin"]
    if RESERVED_CONFIG_KEYS & settings.keys():
        # Outside of a stack, core's words are not taken out: there, none of them is allowed.
        words = []
    problems: list[Problem] = []
    try:
        validated = config.model_validate(dict(settings))
        # A plugin's own `Config` may be less strict than core's base for it.
        problems += _not_finite(settings, prefix)
    except ValidationError as exc:
        problems = problems_of(exc, config, prefix, words)
    problems += [
        Problem((*prefix, key), unknown_key(key, [*keys_of(config), *words]), is_about_key=True)
        for key in _silently_ignored(config, settings)
    ]
    return (None, problems) if problems else (validated, [])


def full_settings(config: BaseModel) -> dict[str, Json]:
    """Return validated settings as JSON, every default written out, the same in each process."""
    written: dict[str, Json] = _ordered(config, config.model_dump(mode="json", by_alias=True))
    return written


def written_entry(entry: PluginEntry, words: Sequence[str] = ()) -> Json:
    """Return an entry as a stack file has it, with its settings and these of core's words."""
    settings: dict[str, Json] = {}
    if entry.plugin != entry.name:
        settings["plugin"] = entry.plugin
    settings |= {word: getattr(entry, word) for word in words}
    settings |= entry.config
    return {entry.name: settings} if settings else entry.name


def _ordered(value: Any, written: Json) -> Json:
    """Return what `value` was written as, with the members of sets in an order of their own.

    A set is written in the order of its hash table, which differs between processes.
    """
    if isinstance(value, BaseModel) and isinstance(written, dict):
        fields = type(value).model_fields.items()
        names = {field.serialization_alias or field.alias or name: name for name, field in fields}
        return {
            key: _ordered(getattr(value, names[key]), item) if key in names else item
            for key, item in written.items()
        }
    if isinstance(value, set | frozenset) and isinstance(written, list):
        return sorted(written, key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, Mapping) and isinstance(written, dict) and len(value) == len(written):
        pairs = zip(value.values(), written.items(), strict=True)
        return {key: _ordered(inner, item) for inner, (key, item) in pairs}
    if isinstance(value, list | tuple) and isinstance(written, list) and len(value) == len(written):
        return [_ordered(inner, item) for inner, item in zip(value, written, strict=True)]
    return written


def _not_finite(value: Json, loc: Path) -> Iterator[Problem]:
    """Yield every NaN and infinity: JSON has none, so a run folder could not keep them."""
    if isinstance(value, float) and not math.isfinite(value):
        yield Problem(loc, f"must be a finite number, got {value}")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _not_finite(item, (*loc, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _not_finite(item, (*loc, index))


def _silently_ignored(config: type[BaseModel], settings: Mapping[str, Json]) -> list[str]:
    """Return the keys that pydantic would drop: a misspelt setting must never go unnoticed."""
    if config.model_config.get("extra", "ignore") != "ignore":
        return []
    known = {*config.model_fields, *keys_of(config)}
    return [key for key in settings if key not in known]
