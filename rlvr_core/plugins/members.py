"""Verifiers that ask others: find the members, complete the settings, and share out a ground truth.

The members are entries in the settings of the one that asks. Each becomes a verifier of its own,
called ``<who asks>/<member>``, a name that no entry of a stack can have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator

from rlvr_core.api.errors import StackError
from rlvr_core.api.plugin import Family, Plugin, Resource, Verifier
from rlvr_core.api.verdicts import Json
from rlvr_core.config.models import PluginEntry
from rlvr_core.config.wording import keys_of, problems_of
from rlvr_core.plugins.failures import combined
from rlvr_core.plugins.hooks import answers
from rlvr_core.plugins.index import PluginIndex
from rlvr_core.plugins.loader import Wanted, load_classes
from rlvr_core.plugins.ref import Member, PluginRef
from rlvr_core.plugins.settings import full_settings, validate_settings, written_entry
from rlvr_core.plugins.stages import VERIFY

_WORDS = ("timeout_s", "on_timeout", "concurrency")
"""Core's words that a member's entry may hold."""


def complete(
    ref: PluginRef, cls: type[Plugin], config: BaseModel, origin: str, index: PluginIndex
) -> PluginRef:
    """Return a reference with every default written out, and with the members that it asks.

    Args:
        ref: The plugin.
        cls: Its class.
        config: Its validated settings.
        origin: Where its entry stands, for messages.
        index: What is installed.

    Raises:
        StackError: A member is no entry (RLVR-S102), is not installed (RLVR-S103), has settings
            that are not allowed (RLVR-S102), or does not judge completions (RLVR-S104).
        PluginError: A member cannot be used.
    """
    settings = full_settings(config)
    key = cls.members_key if issubclass(cls, Verifier) else None
    if key is None:
        return replace(ref, config=settings)
    members = tuple(_members(ref, settings[key], f"{origin}: {key}", index))
    written = [
        written_entry(one.entry, [word for word in _WORDS if getattr(one.entry, word) is not None])
        for one in members
    ]
    return replace(ref, config={**settings, key: written}, members=members)


def ground_truth_model(ref: PluginRef) -> type[BaseModel]:
    """Return the model of what a row must say: the plugin's own, or those of all its members.

    A member is given what stands under its name, and every other key that its own model knows. A
    key that nobody knows is given to all, so that each says that it does not. The class must have
    been imported.
    """
    if not ref.members:
        cls: Any = ref.load_class()
        model: type[BaseModel] = cls.GroundTruth
        return model

    class Parts(BaseModel):
        model_config = ConfigDict(extra="forbid", frozen=True)

        @model_validator(mode="before")
        @classmethod
        def _shared_out(cls, value: Any) -> Any:
            return shares(ref, value) if isinstance(value, Mapping) else value

    fields: dict[str, Any] = {
        f"member_{number}": (ground_truth_model(one.ref), Field(alias=one.entry.name))
        for number, one in enumerate(ref.members)
    }
    return create_model("GroundTruth", __base__=Parts, **fields)


def shares(ref: PluginRef, truth: Mapping[str, Json]) -> dict[str, dict[str, Json]]:
    """Return each member's part of a ground truth, by the member's name."""
    members = {one.entry.name: one.ref for one in ref.members}
    truth = _renamed(ref, truth)
    own = {key: item for key, item in truth.items() if key in members and isinstance(item, Mapping)}
    common = {key: item for key, item in truth.items() if key not in own}
    knowing = {key: {name for name, one in members.items() if _knows(one, key)} for key in common}
    return {
        name: {
            **{key: item for key, item in common.items() if name in (knowing[key] or members)},
            **own.get(name, {}),
        }
        for name in members
    }


def _renamed(ref: PluginRef, truth: Mapping[str, Json]) -> Mapping[str, Json]:
    """Accept ``expected_answer`` for ``answer``, as the reader of rows does for one verifier."""
    is_meant = _knows(ref, "answer") and not _knows(ref, "expected_answer")
    if not is_meant or "answer" in truth:
        return truth
    return {("answer" if key == "expected_answer" else key): item for key, item in truth.items()}


def _knows(ref: PluginRef, key: str) -> bool:
    if ref.members:
        return any(key == one.entry.name or _knows(one.ref, key) for one in ref.members)
    model = ground_truth_model(ref)
    return key in keys_of(model) or model.model_config.get("extra") == "allow"


def _members(
    asking: PluginRef, entries: Sequence[Json], origin: str, index: PluginIndex
) -> Iterator[Member]:
    parsed = _parsed(entries, origin)
    places = [f"{origin}[{number}]" for number in range(len(parsed))]
    wanted = []
    for entry, place in zip(parsed, places, strict=True):
        installed = index.find(Family.VERIFIERS, entry.plugin, place)
        ref = installed.ref(f"{asking.name}/{entry.name}", entry.config)
        wanted.append(Wanted(installed, ref, place))
    classes = load_classes(wanted)
    errors: list[StackError] = []
    configs: list[BaseModel] = []
    for one, entry, cls in zip(wanted, parsed, classes, strict=True):
        config, problems = _validated(one, entry, cls)
        if config is None or problems:
            errors += [StackError(code, f"{one.origin}: {text}") for code, text in problems]
        else:
            configs.append(config)
    if errors:
        raise combined(errors, f"{asking.name!r} cannot ask its members") from None
    for one, entry, cls, config in zip(wanted, parsed, classes, configs, strict=True):
        # Built here once, as every verifier of a stack is, so that what is wrong shows at load.
        one.ref.construct_with(cls, config)
        ref = complete(one.ref, cls, config, one.origin, index)
        yield Member(ref, entry.model_copy(update={"config": dict(ref.config)}))


def _parsed(entries: Sequence[Json], origin: str) -> list[PluginEntry]:
    parsed: list[PluginEntry] = []
    errors: list[StackError] = []
    for number, raw in enumerate(entries):
        place = f"{origin}[{number}]"
        try:
            entry = PluginEntry.model_validate(raw)
        except ValidationError as exc:
            errors += [
                StackError("RLVR-S102", f"{place}: {problem.message}")
                for problem in problems_of(exc, PluginEntry)
            ]
            continue
        if entry.name in {one.name for one in parsed}:
            other = f"'other-name: {{plugin: {entry.plugin}}}'"
            message = f"{place}: the name {entry.name!r} stands twice; give one another: {other}"
            errors.append(StackError("RLVR-S102", message))
        parsed.append(entry)
    if errors:
        raise combined(errors, "members are not well-formed") from None
    return parsed


def _validated(
    wanted: Wanted, entry: PluginEntry, cls: type[Plugin]
) -> tuple[BaseModel | None, list[tuple[str, str]]]:
    """Return a member's settings, and (code, message) of what is wrong."""
    if not (issubclass(cls, Verifier) and answers(cls, VERIFY)):
        return None, [("RLVR-S104", f"{entry.plugin!r} does not judge completions")]
    config, problems = validate_settings(cls, Family.VERIFIERS, entry.config, ())
    found = [
        ("RLVR-S102", f"{'.'.join(map(str, one.loc[1:])) or 'settings'}: {one.message}")
        for one in problems
    ]
    if "weight" in entry.model_fields_set:
        found.append(("RLVR-S102", "weight: only has a meaning for an entry of the stack"))
    if entry.concurrency is not None and cls.resource is not Resource.IO:
        message = f"concurrency: {entry.plugin!r} does not wait for a service"
        found.append(("RLVR-S104", message))
    return config, found
