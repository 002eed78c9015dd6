from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

STACK = """\
model: smollm2
data:
  train: {path: train.jsonl}
  dev: {path: dev.jsonl}
verifiers:
  - exact-match
  - other: {plugin: exact-match, weight: 0.5,
      fold_case: true}
samplers:
advantage:
  - grpo
train:
  steps: 10
  learning_rate: 1e-6
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Return a function that writes ``stack.yaml`` in the current folder."""
    monkeypatch.chdir(tmp_path)

    def write_stack(text: str) -> Path:
        Path("stack.yaml").write_text(text)
        return Path("stack.yaml")

    return write_stack
