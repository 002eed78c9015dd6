from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from rlvr_core.api.plugin import Strict
from rlvr_core.api.rollouts import Row
from rlvr_core.config.models import DataSource
from rlvr_core.data.load import load_splits


class MathTruth(Strict):
    answer: str
    tolerance: float | None = None


class CodeTruth(Strict):
    tests: list[str]
    entry_point: str = "solve"


MODELS = {"math-sympy": MathTruth, "code-docker": CodeTruth}

Lines = Callable[..., Path]


@pytest.fixture
def lines(tmp_path: Path) -> Lines:
    """Write raw lines or rows to a file and return its path."""

    def write(*given: str | bytes | Mapping[str, Any], name: str = "train.jsonl") -> Path:
        path = tmp_path / name
        parts = [
            part
            if isinstance(part, bytes)
            else (part if isinstance(part, str) else json.dumps(part)).encode()
            for part in given
        ]
        path.write_bytes(b"\n".join(parts) + b"\n")
        return path

    return write


def good(**changes: Any) -> dict[str, Any]:
    return {
        "prompt": "What is 3 + 4?",
        "verifier": {"type": "math-sympy", "answer": "7"},
        **changes,
    }


def load(path: Path, split: str = "train", **more: Any) -> list[Row]:
    return load_split(DataSource(path=path.name), path.parent, MODELS, split, **more)


def load_split(
    source: DataSource, base: Path, models: Any, split: str, plugin_names: Any = None
) -> list[Row]:
    return load_splits({split: source}, base, models, plugin_names)[split]
