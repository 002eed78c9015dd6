"""The console that the verbs print to."""

from __future__ import annotations

from rich.console import Console

_UNBOUNDED = 10_000
"""Characters a line; wide enough that nothing is wrapped or cut."""


def make_console(*, stderr: bool = False) -> Console:
    """Return a console that fits a terminal, and wraps no line when it writes anywhere else."""
    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=_UNBOUNDED)
