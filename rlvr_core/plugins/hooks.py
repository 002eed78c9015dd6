"""Read off a class which hooks it implements, and whether each fits its specification.

Nothing is called and no property is evaluated.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rlvr_core.api.errors import did_you_mean
from rlvr_core.api.markers import PROJECT
from rlvr_core.plugins.stages import HOOK_ARGUMENTS

_MARK = f"{PROJECT}_impl"
_PREFIX = f"{PROJECT}_"


@dataclass(frozen=True, slots=True)
class Implementation:
    """One hook implementation of a class."""

    hook: str
    attribute: str
    function: Any
    is_wrapper: bool


def implementations(cls: type) -> list[Implementation]:
    """Return the marked methods of `cls` whose hook exists."""
    found = []
    for name, function, options in _marked(cls):
        hook = options.get("specname") or name
        if hook in HOOK_ARGUMENTS:
            is_wrapper = bool(options.get("wrapper") or options.get("hookwrapper"))
            found.append(Implementation(hook, name, function, is_wrapper))
    return found


def answers(cls: type, hook: str) -> bool:
    """Tell whether `cls` implements `hook` itself, not only around others."""
    return any(found.hook == hook and not found.is_wrapper for found in implementations(cls))


def hook_problems(cls: type) -> list[str]:
    """Return every way in which the hooks of `cls` do not fit the specifications."""
    problems = list(_unmarked(cls))
    seen: dict[str, str] = {}
    for name, function, options in _marked(cls):
        hook = options.get("specname") or name
        if hook not in HOOK_ARGUMENTS:
            problems.append(f"there is no hook {hook!r}{did_you_mean(hook, HOOK_ARGUMENTS)}")
            continue
        if hook in seen:
            problems.append(f"{name} and {seen[hook]} both implement {hook}")
        seen[hook] = name
        problems += _option_problems(name, function, options)
        problems += _argument_problems(name, hook, function)
    if not seen and not problems:
        problems.append("it implements no hook, so that it would never be called")
    return problems


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    for name in dir(cls):
        member = inspect.getattr_static(cls, name)
        if isinstance(member, staticmethod | classmethod):
            member = member.__func__
        yield name, member


def _marked(cls: type) -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    for name, member in _members(cls):
        options = getattr(member, _MARK, None)
        if inspect.isfunction(member) and isinstance(options, Mapping):
            yield name, member, options


def _unmarked(cls: type) -> Iterator[str]:
    for name, member in _members(cls):
        if not name.startswith(_PREFIX) or getattr(member, _MARK, None) is not None:
            continue
        if name not in HOOK_ARGUMENTS:
            yield f"there is no hook {name!r}{did_you_mean(name, HOOK_ARGUMENTS)}"
        elif callable(member):
            yield f"{name} lacks the decorator @rlvr_core.api.hookimpl; it would never be called"
        else:
            yield f"{name} is the name of a hook, but not a method"


def _option_problems(name: str, function: Any, options: Mapping[str, Any]) -> Iterator[str]:
    for option in ("tryfirst", "trylast"):
        if options.get(option):
            yield f"{name} asks for {option}; the stack file alone decides the order"
    if options.get("hookwrapper"):
        yield f"{name} uses hookwrapper=True; use wrapper=True"
    if options.get("wrapper") and not inspect.isgeneratorfunction(function):
        yield f"{name} uses wrapper=True and must hold a 'yield'"


def _argument_problems(name: str, hook: str, function: Any) -> Iterator[str]:
    known = HOOK_ARGUMENTS[hook]
    parameters = list(inspect.signature(function).parameters.values())[1:]
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.name not in known and parameter.default is parameter.empty:
            offers = f"{hook} offers: {', '.join(known)}"
            hint = did_you_mean(parameter.name, known, offers)
            yield f"{name} takes {parameter.name!r}{hint}"
