"""Import the plugins that a stack names, and no others, through stevedore.

stevedore is fed the entry points that the index found: its own cache goes stale after a reinstall
and forgets which distribution an entry point came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any

from stevedore.extension import error_on_conflict
from stevedore.named import NamedExtensionManager

from rlvr_core.api.errors import PluginError
from rlvr_core.api.plugin import Family, Plugin
from rlvr_core.plugins.checks import check_class
from rlvr_core.plugins.failures import combined, import_failure
from rlvr_core.plugins.index import InstalledPlugin
from rlvr_core.plugins.ref import PluginRef


@dataclass(frozen=True, slots=True)
class Wanted:
    """One plugin to import, and who asked for it."""

    installed: InstalledPlugin
    ref: PluginRef
    origin: str


class IndexedExtensionManager(NamedExtensionManager[Any]):
    """stevedore's loader over entry points that were resolved before."""

    def __init__(self, family: Family, entry_points: Sequence[EntryPoint]) -> None:
        self._entry_points = list(entry_points)
        self.failures: list[tuple[EntryPoint, BaseException]] = []
        super().__init__(
            family.entry_point_group,
            [entry_point.name for entry_point in entry_points],
            on_load_failure_callback=self._keep_failure,
            # A plugin that fails to import would be reported as missing as well.
            on_missing_entrypoints_callback=None,
            conflict_resolver=error_on_conflict,
        )

    def list_entry_points(self) -> list[EntryPoint]:
        """Return the resolved entry points; no scan, no cache."""
        return self._entry_points

    def _load_one_plugin(self, ep: EntryPoint, *args: Any) -> Any:
        try:
            return super()._load_one_plugin(ep, *args)
        except (SystemExit, AssertionError) as exc:
            # stevedore lets these two through, which would end the program.
            raise _StoppedImportError from exc

    def _keep_failure(self, manager: object, entry_point: EntryPoint, exc: BaseException) -> None:
        self.failures.append((entry_point, exc))


class _StoppedImportError(Exception):
    """An import ended in an exception that stevedore does not catch; it is the cause of this."""


def load_classes(wanted: Sequence[Wanted]) -> list[type[Plugin]]:
    """Import and check the class of each wanted plugin, in order.

    Raises:
        PluginError: One error for all plugins that cannot be used: RLVR-P102 (import), RLVR-P103
            (API version) or RLVR-P104 (does not fit the hooks).
    """
    loaded: dict[EntryPoint, Any] = {}
    failed: dict[EntryPoint, BaseException] = {}
    for family in Family:
        entry_points = dict.fromkeys(
            one.installed.entry_point for one in wanted if one.installed.family is family
        )
        if not entry_points:
            continue
        manager = IndexedExtensionManager(family, list(entry_points))
        loaded |= {extension.entry_point: extension.plugin for extension in manager}
        failed |= dict(manager.failures)
    classes, errors = [], []
    for one in wanted:
        try:
            classes.append(_usable_class(one, loaded, failed))
        except PluginError as error:
            errors.append(error)
    if errors:
        raise combined(errors, "plugins cannot be used") from errors[0].__cause__
    return classes


def _usable_class(
    wanted: Wanted, loaded: dict[EntryPoint, Any], failed: dict[EntryPoint, BaseException]
) -> type[Plugin]:
    entry_point = wanted.installed.entry_point
    if entry_point in failed:
        exc = failed[entry_point]
        if isinstance(exc, _StoppedImportError) and exc.__cause__ is not None:
            exc = exc.__cause__
        raise import_failure(wanted.ref, exc, wanted.origin) from exc
    return check_class(wanted.ref, loaded[entry_point], wanted.origin)
