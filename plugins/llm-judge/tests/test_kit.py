"""The checks of third parties' verifiers, with a judge that knows the golden cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlvr_core.testing import check_plugin

GOLDEN = Path(__file__).parents[1] / "golden.jsonl"
NO_ADDRESS = {"R03": "the repository has no public address yet, and none is made up"}


@pytest.mark.slow
def test_it_passes_the_checks_of_the_kit_at_the_level_listed(serve, settings):
    rows = [json.loads(line) for line in GOLDEN.read_text("utf-8").splitlines()]
    right = {(row["prompt"], row["completion"]) for row in rows if row["expected"] == 1}

    def knowing(asked):
        blocks = asked.blocks
        return asked.verdict(correct=(blocks["task"], blocks["answer"]) in right)

    report = check_plugin(
        "llm-judge",
        cases=GOLDEN,
        config=settings(serve(knowing)),
        project=GOLDEN.parent,
        level="listed",
        expected_failures=NO_ADDRESS,
        timeout_s=30.0,
    )

    assert report.is_passed, report.to_text()
