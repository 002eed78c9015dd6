"""The two pluggy markers of the project."""

import pluggy

PROJECT = "rlvr"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Decorator for a plugin's hook methods."""
