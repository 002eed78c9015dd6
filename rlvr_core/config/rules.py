"""The rules of a stack that span several keys.

Each takes the sections that are valid by themselves, so that these problems are reported together
with those of single keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from os.path import normpath
from typing import Any

from rlvr_core.api.errors import did_you_mean, listed
from rlvr_core.api.plugin import Family
from rlvr_core.config.models import (
    DataSection,
    EvaluateSection,
    PluginEntry,
    RolloutSection,
    TrainSection,
)
from rlvr_core.config.positions import Problem
from rlvr_core.config.yaml_source import Path

Sections = Mapping[str, Any]
"""Name of a top-level key -> its validated value.

Sections that are not valid are absent; in a plugin list an entry that is not valid is None.
"""

VERIFIER_KEYS = ("timeout_s", "on_timeout", "concurrency", "weight")
"""Core's words in an entry that only a verifier can use."""


def check_rules(sections: Sections) -> list[Problem]:
    """Return every broken rule."""
    return [problem for rule in _RULES for problem in rule(sections)]


def _entries(sections: Sections) -> Iterator[tuple[Path, PluginEntry]]:
    for family in Family:
        for position, entry in enumerate(sections.get(family.value) or ()):
            if entry is not None:
                yield (family.value, position), entry
    if sections.get("control") is not None:
        yield ("control",), sections["control"]


def _instance_names_are_unique(sections: Sections) -> Iterator[Problem]:
    seen: dict[str, Path] = {}
    for loc, entry in _entries(sections):
        first = seen.setdefault(entry.name, loc)
        if first is not loc:
            yield Problem(
                (*loc, "name"),
                f"the name {entry.name!r} is taken by {_shown(first)}; give one of them another "
                f"name: 'other-name: {{plugin: {entry.plugin}}}'",
                is_about_key=True,
            )


def _only_verifiers_use_verifier_keys(sections: Sections) -> Iterator[Problem]:
    for loc, entry in _entries(sections):
        if loc[0] == Family.VERIFIERS.value:
            continue
        for key in VERIFIER_KEYS:
            if key in entry.model_fields_set:
                yield Problem((*loc, key), "only has a meaning for a verifier", is_about_key=True)


def _some_weight_is_not_zero(sections: Sections) -> Iterator[Problem]:
    verifiers: list[PluginEntry | None] = sections.get("verifiers") or []
    if verifiers and all(entry is not None and entry.weight == 0 for entry in verifiers):
        yield Problem(
            ("verifiers", 0, "weight"),
            "every verifier has weight 0, so that every reward is 0 and nothing would be learnt",
        )


def _splits_have_data(sections: Sections) -> Iterator[Problem]:
    data: DataSection | None = sections.get("data")
    evaluate: EvaluateSection | None = sections.get("evaluate")
    if data is None or evaluate is None or "splits" not in evaluate.model_fields_set:
        return
    for position, split in enumerate(evaluate.splits):
        loc = ("evaluate", "splits", position)
        if getattr(data, split) is None:
            yield Problem(loc, f"there is no data.{split} to evaluate on")
        if split in evaluate.splits[:position]:
            yield Problem(loc, f"{split!r} is listed twice")


def _splits_differ(sections: Sections) -> Iterator[Problem]:
    data: DataSection | None = sections.get("data")
    if data is None:
        return
    named = [(split, getattr(data, split)) for split in type(data).model_fields]
    present = [(split, source) for split, source in named if source is not None]
    for (first, one), (second, other) in combinations(present, 2):
        if normpath(one.path) == normpath(other.path):
            yield Problem(
                ("data", second, "path"),
                f"reads the same rows as data.{first}; a split must not share rows with another",
            )


def _also_names_verifiers(sections: Sections) -> Iterator[Problem]:
    evaluate: EvaluateSection | None = sections.get("evaluate")
    verifiers: list[PluginEntry | None] = sections.get("verifiers") or [None]
    names = [entry.name for entry in verifiers if entry is not None]
    if evaluate is None or len(names) < len(verifiers):
        return
    for position, name in enumerate(evaluate.also):
        loc = ("evaluate", "also", position)
        if name not in names:
            hint = did_you_mean(name, names, f"Verifiers: {listed(names)}")
            yield Problem(loc, f"no verifier of the stack is named {name!r}{hint}")
        elif name in evaluate.also[:position]:
            yield Problem(loc, f"{name!r} is listed twice")


def _mini_batches_are_not_empty(sections: Sections) -> Iterator[Problem]:
    train: TrainSection | None = sections.get("train")
    rollout: RolloutSection | None = sections.get("rollout")
    if train is None or rollout is None:
        return
    if train.mini_batches > rollout.prompts_per_step:
        yield Problem(
            ("train", "mini_batches"),
            f"must be at most rollout.prompts_per_step ({rollout.prompts_per_step}), "
            f"got {train.mini_batches}: groups are not split",
        )


def _shown(loc: Path) -> str:
    return f"{loc[0]}[{loc[1]}]" if len(loc) > 1 else str(loc[0])


_RULES: tuple[Callable[[Sections], Iterator[Problem]], ...] = (
    _instance_names_are_unique,
    _only_verifiers_use_verifier_keys,
    _some_weight_is_not_zero,
    _splits_have_data,
    _splits_differ,
    _also_names_verifiers,
    _mini_batches_are_not_empty,
)
