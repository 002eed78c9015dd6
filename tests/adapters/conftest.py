"""Rewards of our verifiers in other trainers, and reward functions of others as verifiers."""

import contextlib
import sys
from pathlib import Path

import pytest

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)


def pytest_ignore_collect(collection_path, config):
    """Leave out what needs another library, unless ``-m adapters`` asks for it."""
    needs_library = collection_path.name.startswith("test_with_")
    return True if needs_library and config.option.markexpr != "adapters" else None


@pytest.fixture(scope="module")
def opened():
    """Take what has a scorer; its workers end with the module."""
    with contextlib.ExitStack() as stack:

        def open_(adapter):
            stack.callback(adapter.scorer.close)
            return adapter

        yield open_
