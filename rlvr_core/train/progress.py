"""What a run tells whoever watches it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from rlvr_core.api.verdicts import Json


class Reporter(Protocol):
    """Receives news of a run on its main process. Must not change anything."""

    def phase(self, text: str) -> None:
        """Say what the run is doing now, in a few words."""
        ...

    def step(self, record: Mapping[str, Json]) -> None:
        """Take the line of ``metrics.jsonl`` of a finished step."""
        ...

    def evaluation(self, record: Mapping[str, Json]) -> None:
        """Take a line of ``evals.jsonl``."""
        ...

    def event(self, record: Mapping[str, Json]) -> None:
        """Take a line of ``events.jsonl``: warnings, actions, faults of monitors."""
        ...


class Silent:
    """A reporter that keeps everything to itself."""

    def phase(self, text: str) -> None:
        """Ignore."""

    def step(self, record: Mapping[str, Json]) -> None:
        """Ignore."""

    def evaluation(self, record: Mapping[str, Json]) -> None:
        """Ignore."""

    def event(self, record: Mapping[str, Json]) -> None:
        """Ignore."""


class Unbreakable:
    """Passes news on until the other side breaks (a closed pipe, a full disk), then keeps quiet.

    Whoever watches a run must not be able to end it.
    """

    def __init__(self, reporter: Reporter) -> None:
        self._reporter: Reporter = reporter

    def phase(self, text: str) -> None:
        """Pass on."""
        self._try(lambda reporter: reporter.phase(text))

    def step(self, record: Mapping[str, Json]) -> None:
        """Pass on."""
        self._try(lambda reporter: reporter.step(record))

    def evaluation(self, record: Mapping[str, Json]) -> None:
        """Pass on."""
        self._try(lambda reporter: reporter.evaluation(record))

    def event(self, record: Mapping[str, Json]) -> None:
        """Pass on."""
        self._try(lambda reporter: reporter.event(record))

    def _try(self, tell: Callable[[Reporter], None]) -> None:
        try:
            tell(self._reporter)
        except OSError:
            self._reporter = Silent()
