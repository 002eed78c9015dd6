"""For pytest, when asked for: ``pytest_plugins = ["rlvr_core.testing.pytest_plugin"]``.

Adds the report of every checked plugin, with its counts, to the end of the test session.
"""

from __future__ import annotations

from typing import Any

import pytest

from rlvr_core.testing.suite import CheckTest

_TESTS = pytest.StashKey[list[CheckTest]]()


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Remember the checks among the tests."""
    calls = [getattr(item, "callspec", None) for item in items]
    tests = [call.params.get("check") for call in calls if call is not None]
    config.stash[_TESTS] = [test for test in tests if isinstance(test, CheckTest)]


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    """Print one line a plugin: how many checks apply, were made, passed and failed."""
    made = [test.summary for test in config.stash.get(_TESTS, [])]
    summaries = dict.fromkeys(summary for summary in made if summary is not None)
    if summaries:
        terminalreporter.section("checks of plugins")
        for summary in summaries:
            terminalreporter.write_line(summary)
