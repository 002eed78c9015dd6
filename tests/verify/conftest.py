"""Engines over fixture verifiers, which must leave no process behind."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    # Workers look for modules where this process does.
    sys.path.insert(0, HERE)

from supervision import entry, left_of, reference, rows  # noqa: E402

from rlvr_core.api import Verdict  # noqa: E402
from rlvr_core.config.models import VerificationSection  # noqa: E402
from rlvr_core.verification.engine import VerifyEngine  # noqa: E402


def new_engine(
    classes: Sequence[str], entry_options: dict[str, Any], config: dict[str, Any], **settings: Any
) -> VerifyEngine:
    """Return an engine over fixture verifiers."""
    refs = [reference(cls, **config) for cls in classes]
    entries = [(ref, entry(ref, **entry_options)) for ref in refs]
    defaults = {"timeout_s": 5.0, "workers": 1, "max_error_rate": 1.0}
    return VerifyEngine(entries, VerificationSection(**{**defaults, **settings}))


@pytest.fixture
def make_engine() -> Iterator[Callable[..., VerifyEngine]]:
    """Make engines; they are closed at the end, and leave nothing."""
    engines: list[VerifyEngine] = []

    def make(*classes: str, **options: Any) -> VerifyEngine:
        entry_options, config = options.pop("entry_options", {}), options.pop("config", {})
        engines.append(new_engine(classes, entry_options, config, **options))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()
    assert not [process for engine in engines for process in left_of(engine)]


@pytest.fixture(scope="module")
def judge() -> Iterator[Callable[..., list[Verdict]]]:
    """Judge completions with one fixture verifier; equal options share an engine."""
    engines: dict[str, VerifyEngine] = {}

    def run(cls: str, completions: Sequence[str], **options: Any) -> list[Verdict]:
        key = repr((cls, sorted(options.items())))
        if key not in engines:
            entry_options, config = options.pop("entry_options", {}), options.pop("config", {})
            engines[key] = new_engine([cls], entry_options, config, **options)
        return engines[key].judge(cls.lower(), rows(completions))

    yield run
    for engine in engines.values():
        engine.close()
    assert not [process for engine in engines.values() for process in left_of(engine)]
