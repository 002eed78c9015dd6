"""The pluggy side: register plugins so that call order is file order, and route one call to one.

pluggy calls the last registered plugin first, drops ``None`` from its results and does not say
whose result is whose. So plugins are registered in reverse, and every call goes to exactly one
plugin, with the wrappers of all others around it.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

import pluggy

from rlvr_core.api import hookspecs
from rlvr_core.api.errors import PluginError
from rlvr_core.api.markers import PROJECT
from rlvr_core.plugins.resolve import LoadedPlugin
from rlvr_core.plugins.stages import VERIFY


class RoutedManager(pluggy.PluginManager):
    """A plugin manager whose hooks are called for one plugin at a time."""

    def __init__(self) -> None:
        super().__init__(PROJECT)
        self.proxies: set[int] = set()
        """Ids of core's own objects that stand for verifiers in worker processes."""
        self.add_hookspecs(hookspecs)

    def parse_hookspec_opts(self, module_or_class: Any, name: str) -> Any:
        """Give every hook one result: each call has one implementation, wrappers see its value."""
        options = super().parse_hookspec_opts(module_or_class, name)
        if options is not None:
            options = {**options, "firstresult": True}
        return options

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> Any:
        """Leave out what runs in worker processes: a verifier's own `rlvr_verify`."""
        options = super().parse_hookimpl_opts(plugin, name)
        if options is None or options.get("wrapper") or id(plugin) in self.proxies:
            return options
        return None if (options.get("specname") or name) == VERIFY else options

    def register_loaded(self, loaded: LoadedPlugin) -> None:
        """Register a constructed plugin under its instance name.

        Raises:
            PluginError: It is a class, or does not fit the hook specifications.
        """
        if isinstance(loaded.plugin, type):
            raise PluginError(
                "RLVR-P104",
                f"plugin {loaded.name!r} is a class, not an instance",
                origin=loaded.ref.blame,
                fix="construct it first: the parentheses are missing",
            )
        try:
            self.register(loaded.plugin, loaded.name)
        except (pluggy.PluginValidationError, ValueError) as exc:
            raise PluginError(
                "RLVR-P104",
                f"plugin {loaded.name!r} does not fit the hook specifications",
                origin=loaded.ref.blame,
                cause=str(exc),
                report=loaded.ref.report_url,
            ) from exc

    def caller(self, hook: str, plugin: object) -> pluggy.HookCaller:
        """Return a caller of `hook` that reaches `plugin` and, around it, every wrapper."""
        others = [
            found.plugin
            for found in getattr(self.hook, hook).get_hookimpls()
            if not found.wrapper and found.plugin is not plugin
        ]
        return self.subset_hook_caller(hook, others)

    def answering(self, hook: str) -> list[object]:
        """Return the plugins that implement `hook` themselves, in call order."""
        found = getattr(self.hook, hook).get_hookimpls()
        return [one.plugin for one in reversed(found) if not one.wrapper]

    def wrapping(self, hook: str) -> list[object]:
        """Return the plugins that wrap `hook`, the outermost first."""
        found = getattr(self.hook, hook).get_hookimpls()
        return [one.plugin for one in reversed(found) if one.wrapper]

    def culprit(self, hook: str, exc: BaseException) -> object | None:
        """Return the plugin whose implementation of `hook` raised `exc`, the innermost one."""
        by_code = {
            found.function.__code__: found.plugin
            for found in getattr(self.hook, hook).get_hookimpls()
            if hasattr(found.function, "__code__")
        }
        raised_in = None
        for code in _codes(exc.__traceback__):
            raised_in = by_code.get(code, raised_in)
        return raised_in


def _codes(traceback: TracebackType | None) -> list[object]:
    codes: list[object] = []
    while traceback is not None:
        codes.append(traceback.tb_frame.f_code)
        traceback = traceback.tb_next
    return codes
