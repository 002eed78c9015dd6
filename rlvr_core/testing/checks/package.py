"""Checks of the package: metadata, import and settings. They hold for plugins of every family."""

from __future__ import annotations

import re
from importlib.metadata import distribution
from typing import Any

from pydantic import BaseModel, ValidationError

from rlvr_core.api.errors import listed
from rlvr_core.plugins.index import CORE, metadata_of
from rlvr_core.testing.apart.parent import Finding
from rlvr_core.testing.check import LOADS, Check, apart, failed, passed
from rlvr_core.testing.subject import Subject

_LICENCE_CLASSIFIER = "License ::"


def metadata(subject: Subject) -> Finding:
    """Look at what the distribution says of itself."""
    found = metadata_of(distribution(subject.plugin.distribution))
    classifiers = found.get_all("Classifier") or []
    missing = []
    is_licensed = found.get("License-Expression") or found.get("License")
    if not (is_licensed or any(one.startswith(_LICENCE_CLASSIFIER) for one in classifiers)):
        missing.append("a licence")
    if not found.get("Requires-Python"):
        missing.append("requires-python")
    floors = [
        specifier
        for one in subject.requirements
        if _normal(one.name) == CORE
        for specifier in one.specifier
        if specifier.operator in (">=", "~=", "==")
    ]
    if not floors and subject.plugin.distribution != CORE:
        missing.append(f"a lowest version of {CORE}")
    if subject.level == "listed" and subject.plugin.report_url is None:
        missing.append("a project URL called Issues")
    if missing:
        return failed(f"its distribution does not name {', '.join(missing)}")
    return passed("; ".join(filter(None, [str(is_licensed or ""), found["Requires-Python"]])))


def settings(subject: Subject) -> Finding:
    """Look at the plugin's `Config`."""
    model: Any = subject.cls.Config
    if model.model_config.get("extra") != "forbid":
        return failed("Config takes keys that it does not know: derive it from Strict")
    unexplained = [name for name, field in model.model_fields.items() if not field.description]
    if unexplained:
        return failed(f"Config does not describe {listed(unexplained)}")
    try:
        config: BaseModel = model.model_validate(dict(subject.ref.config))
        model.model_validate(config.model_dump())
    except ValidationError as exc:
        return failed(f"its defaults are not what Config allows: {exc.errors()[0]['msg']}")
    try:
        model.model_json_schema()
    except Exception as exc:  # noqa: BLE001 - pydantic raises many kinds here
        return failed(f"Config has no JSON Schema: {exc}")
    return passed(f"{len(model.model_fields)} settings, each described")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


CHECKS = (
    apart("R01", "The entry point leads to a plugin class that can be built.", ()),
    apart("R02", "It was written for a version of the plugin API that this core speaks.", ("R01",)),
    Check(
        "R03",
        "The distribution names a licence, requires-python and the oldest rlvr-core that it works "
        "with (listed: a URL for issues, too).",
        metadata,
        LOADS,
    ),
    apart(
        "R04",
        "Importing it takes under 2 s, prints nothing, uses no network and changes no global "
        "state; a verifier imports torch only if it requires it.",
    ),
    Check(
        "R05",
        "Config refuses unknown keys, describes every setting, allows its own defaults, and has a "
        "JSON Schema.",
        settings,
        LOADS,
    ),
    apart("R06", "What state() returns is JSON, and load_state() takes it back."),
)
