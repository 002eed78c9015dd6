"""What is written down about calls of plugins."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Call:
    """A hook of a plugin that is running."""

    plugin: str
    """Instance name."""
    hook: str
    since_s: float
    """By `time.monotonic`."""


@dataclass(frozen=True, slots=True)
class PluginFault:
    """An observer failed; the run went on without it."""

    plugin: str
    """Instance name."""
    hook: str
    blame: str
    """Distribution and version."""
    message: str
    traceback: str
