"""Rewards of our verifiers in other trainers, and reward functions of others as verifiers."""

import contextlib
import sys
from pathlib import Path

import pytest

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)


@pytest.fixture(scope="module")
def opened():
    """Take what has a scorer; its workers end with the module."""
    with contextlib.ExitStack() as stack:

        def open_(adapter):
            stack.callback(adapter.scorer.close)
            return adapter

        yield open_
