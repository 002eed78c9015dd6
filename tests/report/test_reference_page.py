"""The reference page of the run folder names every key and column, and its code runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rlvr_core.train.manifest import hardware_facts
from rlvr_core.train.rollout_tables import EVALUATION_SCHEMA, ROLLOUT_SCHEMA

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "run-folder.md"


@pytest.fixture(scope="module")
def named() -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", PAGE.read_text("utf-8")))


def keys_of(file: Path) -> set[str]:
    found: set[str] = set()
    for line in file.read_text("utf-8").splitlines():
        found |= json.loads(line).keys()
    return found


def test_every_column_is_described(named):
    assert set(ROLLOUT_SCHEMA.names) <= named
    assert set(EVALUATION_SCHEMA.names) <= named


def test_every_key_of_the_logs_and_the_manifest_is_described(arms, named):
    for name in ("metrics.jsonl", "evals.jsonl", "events.jsonl"):
        assert keys_of(arms[0] / name) <= named, name
    (record, *_) = (arms[0] / "evals.jsonl").read_text("utf-8").splitlines()
    for grader in json.loads(record)["graders"].values():
        assert grader.keys() <= named
    assert json.loads((arms[0] / "manifest.json").read_text("utf-8")).keys() <= named
    assert hardware_facts().keys() <= named


def test_the_example_runs(arms):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    scope = {"run": str(arms[0])}
    exec(code, scope)
    assert len(scope["rewards"]) == 4
    assert scope["best"]["reward"] == 1.0
