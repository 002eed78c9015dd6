"""The states of plugins, as they go into a checkpoint and come out of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from rlvr_core.api.errors import exception_text
from rlvr_core.api.verdicts import Json
from rlvr_core.plugins.failures import hook_failure, is_out_of_memory
from rlvr_core.plugins.resolve import LoadedPlugin

T = TypeVar("T")


def saved_states(plugins: Iterable[LoadedPlugin]) -> dict[str, dict[str, Json]]:
    """Return what each plugin's `state` says, by instance name, as JSON would bring it back.

    Raises:
        PluginError: RLVR-P106, a plugin raised, or its state is not JSON.
    """
    return {loaded.name: _guarded(loaded, "state", _as_json) for loaded in plugins}


def give_back(loaded: LoadedPlugin, state: Mapping[str, Json]) -> None:
    """Let a plugin take over the state that it had.

    Raises:
        PluginError: RLVR-P106, it does not.
    """
    _guarded(loaded, "load_state", lambda one: one.plugin.load_state(state))


def _as_json(loaded: LoadedPlugin) -> dict[str, Json]:
    state: dict[str, Json] = json.loads(json.dumps(dict(loaded.plugin.state())))
    return state


def _guarded(loaded: LoadedPlugin, method: str, call: Callable[[LoadedPlugin], T]) -> T:
    try:
        return call(loaded)
    except KeyboardInterrupt:
        raise
    except BaseException as exc:
        if is_out_of_memory(exc):
            raise
        raise hook_failure(loaded, f"{method} is at fault", exception_text(exc)) from exc
