"""Call one hook of a plugin, with those arguments that it takes."""

from __future__ import annotations

import inspect
from typing import Any

from rlvr_core.plugins.hooks import implementations


def call(plugin: Any, hook: str, **arguments: object) -> Any:
    """Return what the plugin's implementation of `hook` returns."""
    [found] = [one for one in implementations(type(plugin)) if one.hook == hook]
    method = getattr(plugin, found.attribute)
    taken = inspect.signature(method).parameters
    return method(**{name: value for name, value in arguments.items() if name in taken})
