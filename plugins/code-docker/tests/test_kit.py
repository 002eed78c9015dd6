"""The checks that third parties' verifiers are held to, hostile programs among them."""

from __future__ import annotations

from pathlib import Path

import pytest
from rlvr_plugin_code_docker.process import can_bubblewrap

from rlvr_core.testing import check_plugin

PROJECT = Path(__file__).parents[1]
NO_ADDRESS = {"R03": "the repository has no public address yet, and none is made up"}


@pytest.mark.slow
def test_it_passes_the_checks_of_the_kit_at_the_level_listed():
    if why := can_bubblewrap():
        pytest.skip(f"bubblewrap does not work here: {why}")

    report = check_plugin(
        "code-docker",
        project=PROJECT,
        level="listed",
        expected_failures=NO_ADDRESS,
        timeout_s=30.0,
    )

    assert report.is_passed, report.to_text()
    assert next(one for one in report.results if one.number == "C54").outcome == "passed"
