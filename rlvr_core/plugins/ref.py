"""A reference to one plugin of a stack: small, picklable, and enough to build it anywhere.

Worker processes build their plugins from it without scanning what is installed.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from rlvr_core.api.errors import (
    EnvironmentFault,
    PluginError,
    RlvrError,
    StackError,
    exception_text,
)
from rlvr_core.api.plugin import Family, Plugin
from rlvr_core.api.verdicts import Json
from rlvr_core.config.models import PluginEntry
from rlvr_core.plugins.failures import import_failure

_ENTRY_POINT_VALUE = re.compile(r"\s*(?P<module>[\w.]+)\s*:\s*(?P<attribute>[\w.]+)\s*(\[.*\])?\s*")


@dataclass(frozen=True, slots=True)
class PluginRef:
    """Which class of which distribution, under which name, with which settings."""

    family: Family
    plugin: str
    """Registered name."""
    name: str
    """Instance name in the stack."""
    value: str
    """``module:attribute`` of the entry point."""
    distribution: str
    version: str
    config: Mapping[str, Json]
    """The plugin's own settings as given, defaults not filled in."""
    report_url: str | None = None
    """Where faults of the plugin are reported."""
    members: tuple[Member, ...] = ()
    """The verifiers that it asks, in the order of its settings."""

    @property
    def blame(self) -> str:
        """Distribution and version, as in ``rlvr-plugin-foo 0.1.0``."""
        return f"{self.distribution} {self.version}"

    def needed_by(self, origin: str | None) -> str:
        """Return `blame`, and who asked for the plugin where that is known."""
        return self.blame if origin is None else f"{self.blame}, needed by {origin}"

    def load_class(self) -> type[Plugin]:
        """Import and return the plugin class.

        Raises:
            PluginError: The import failed, or what the entry point names is not a plugin class.
            PluginDependencyError: Something that the plugin needs is not installed.
        """
        try:
            found = self._import()
        except RlvrError:
            raise
        except (Exception, SystemExit) as exc:
            raise import_failure(self, exc) from exc
        return self.as_class(found)

    def as_class(self, found: object, origin: str | None = None) -> type[Plugin]:
        """Return what importing the entry point gave, when it is a plugin class.

        Args:
            found: What it gave.
            origin: Who asked for it, for the message.

        Raises:
            PluginError: RLVR-P104, it is none.
        """
        if not (isinstance(found, type) and issubclass(found, Plugin)):
            raise PluginError(
                "RLVR-P104",
                f"plugin {self.plugin!r} is not a plugin class: {self.value} is {found!r}",
                origin=self.needed_by(origin),
                fix="its entry point must name a class that inherits rlvr_core.api.Plugin",
                report=self.report_url,
            )
        return found

    def build(self) -> Plugin:
        """Import the class, check the settings against its `Config` and construct it.

        Raises:
            PluginError: As `load_class`, or the constructor raised (RLVR-P105).
            StackError: The settings do not fit the plugin's `Config`.
        """
        cls = self.load_class()
        return self.construct_with(cls, self._validated(cls))

    def construct_with(self, cls: type[Plugin], config: BaseModel) -> Plugin:
        """Construct `cls` with settings that were validated before.

        Raises:
            EnvironmentFault: The constructor says that the machine lacks something.
            PluginError: It raised something else (RLVR-P105).
        """
        try:
            plugin = cls(config, name=self.name)
        except EnvironmentFault:
            raise
        except (Exception, SystemExit) as exc:
            raise PluginError(
                "RLVR-P105",
                f"plugin {self.plugin!r} failed while it was being constructed",
                origin=self.blame,
                cause=exception_text(exc),
                fix="check its settings and what its documentation says it needs; or report it",
                report=self.report_url,
            ) from exc
        # A class with a constructor of its own may have left these to us.
        plugin.config = config
        plugin.name = self.name
        return plugin

    def _import(self) -> object:
        match = _ENTRY_POINT_VALUE.fullmatch(self.value)
        if match is None:
            raise PluginError(
                "RLVR-P104",
                f"plugin {self.plugin!r} registers {self.value!r}, which is not 'module:Class'",
                origin=self.blame,
                fix="its entry point must name a class; report it to its author",
                report=self.report_url,
            )
        found: object = importlib.import_module(match["module"])
        for attribute in match["attribute"].split("."):
            found = getattr(found, attribute)
        return found

    def _validated(self, cls: type[Plugin]) -> BaseModel:
        try:
            return cls.Config.model_validate(dict(self.config))
        except ValidationError as exc:
            # Only here: it brings what reads YAML, which listing plugins does not need.
            from rlvr_core.config.wording import problems_of, said_of

            problems = "; ".join(said_of(problems_of(exc, cls.Config), "settings"))
            raise StackError(
                "RLVR-S102",
                f"the settings of plugin {self.plugin!r} are not allowed",
                origin=f"{self.name} ({self.blame})",
                cause=problems,
                fix=f"rlvr plugins show {self.plugin} --load lists its settings",
            ) from exc


@dataclass(frozen=True, slots=True)
class Member:
    """A verifier that another one asks, with the entry that names it."""

    ref: PluginRef
    entry: PluginEntry
    """Its name is the member's among the others; that of `ref` is unique in the stack."""
