"""What core asks of a plugin class before it is used."""

from __future__ import annotations

import math
import re
from typing import Any

from pydantic import BaseModel

from rlvr_core.api.errors import PluginError, closest, did_you_mean, listed
from rlvr_core.api.plugin import (
    API_VERSION,
    RESERVED_CONFIG_KEYS,
    ROUTING_KEY,
    Plugin,
    RowVerifier,
    Verifier,
)
from rlvr_core.config.wording import keys_of
from rlvr_core.plugins.hooks import answers, hook_problems
from rlvr_core.plugins.ref import PluginRef
from rlvr_core.plugins.stages import VERIFY

_VERSION = re.compile(r"(\d+)\.(\d+)")


def check_class(ref: PluginRef, found: object, origin: str | None = None) -> type[Plugin]:
    """Return `found` when it is a plugin class that this core can use.

    Args:
        ref: The plugin.
        found: What importing it gave.
        origin: Who asked for it, for the message.

    Raises:
        PluginError: Another API version (RLVR-P103), or a class that does not fit (RLVR-P104).
    """
    cls, where = ref.as_class(found, origin), ref.needed_by(origin)
    _check_version(ref, cls, where)
    problems = [*_base_problems(cls), *_config_problems(cls), *hook_problems(cls)]
    if answers(cls, VERIFY):
        problems += _verifier_problems(cls)
    if problems:
        raise PluginError(
            "RLVR-P104",
            f"plugin {ref.plugin!r} does not fit the plugin API: " + "; ".join(problems),
            origin=where,
            fix=f"upgrade {ref.distribution}, or report it to its author",
            report=ref.report_url,
        )
    return cls


def _check_version(ref: PluginRef, cls: type[Plugin], where: str) -> None:
    declared = _declared_version(cls)
    match = _VERSION.fullmatch(declared) if isinstance(declared, str) else None
    if match is None:
        raise PluginError(
            "RLVR-P103",
            f"plugin {ref.plugin!r} does not say which version of the plugin API it speaks: "
            f"api_version is {declared!r}",
            origin=where,
            fix=f"its class must set api_version itself, for example to {API_VERSION!r}",
            report=ref.report_url,
        )
    theirs = (int(match[1]), int(match[2]))
    core = tuple(int(part) for part in API_VERSION.split("."))
    if theirs[0] == core[0] and theirs[1] <= core[1]:
        return
    is_newer = theirs > core
    raise PluginError(
        "RLVR-P103",
        f"plugin {ref.plugin!r} speaks plugin API {declared}, this core {API_VERSION}",
        origin=where,
        cause=f"the plugin was written for {'a newer' if is_newer else 'an older'} core",
        fix=f"pip install --upgrade {'rlvr-core' if is_newer else ref.distribution}",
        report=ref.report_url,
    )


def _declared_version(cls: type[Plugin]) -> Any:
    """Return the version that the plugin's own code sets; one inherited from core says nothing."""
    is_core = cls.__module__.partition(".")[0] == "rlvr_core"
    for base in cls.__mro__:
        is_own = is_core or base.__module__.partition(".")[0] != "rlvr_core"
        if is_own and "api_version" in vars(base):
            return vars(base)["api_version"]
    return None


def _base_problems(cls: type[Plugin]) -> list[str]:
    if cls.__eq__ is not object.__eq__ or cls.__hash__ is not object.__hash__:
        return ["it compares by value; two instances of one plugin must stay two plugins"]
    return []


def _config_problems(cls: type[Plugin]) -> list[str]:
    config: Any = cls.Config
    if not (isinstance(config, type) and issubclass(config, BaseModel)):
        return ["its Config is not a pydantic model"]
    names = {*config.model_fields, *(field.alias for field in config.model_fields.values())}
    taken = RESERVED_CONFIG_KEYS & {name for name in names if name}
    return [f"its Config declares words that belong to core: {listed(taken)}"] if taken else []


def _misspelt_verify_row(cls: type[Plugin]) -> str:
    own = {name for name in dir(cls) if callable(getattr(cls, name))} - set(dir(RowVerifier))
    close = closest("verify_row", sorted(own))
    if close is None:
        return ""
    return f" but has {close!r}, which is never called{did_you_mean(close, ['verify_row'])}"


def _verifier_problems(cls: type[Plugin]) -> list[str]:
    if not issubclass(cls, Verifier):
        return ["it implements rlvr_verify and must inherit rlvr_core.api.Verifier"]
    problems = []
    if issubclass(cls, RowVerifier) and getattr(cls.verify_row, "__isabstractmethod__", False):
        problems.append(f"it does not implement verify_row{_misspelt_verify_row(cls)}")
    truth: Any = getattr(cls, "GroundTruth", None)
    if not (isinstance(truth, type) and issubclass(truth, BaseModel)):
        problems.append("it does not set GroundTruth to a pydantic model")
    elif ROUTING_KEY in keys_of(truth):
        problems.append(
            f"its GroundTruth declares {ROUTING_KEY!r}, which in a row names the verifier itself"
        )
    low, high = cls.score_range
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        problems.append(f"its score_range {cls.score_range} is not a finite range")
    elif cls.pass_mark is not None and not low <= cls.pass_mark <= high:
        problems.append(f"its pass_mark {cls.pass_mark} is outside its score_range")
    return problems
