"""The plugins of this repository pass the checks that others are held to."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from rlvr_core.testing import check_plugin

ROOT = Path(__file__).parents[2]
NO_ADDRESS = {"R03": "the repository has no public address yet, and none is made up"}
OTHER_FAMILIES = (
    "uniform", "fixed", "grpo", "dr-grpo", "ppo-clip", "verifier-health", "dead-groups",
    "non-finite", "control-random",
)  # fmt: skip


ELSEWHERE = ("code-docker", "llm-judge")
"""Checked by tests of their own projects, which have a sandbox and an endpoint for them."""


def shipped():
    """Return (plugin, its project) of verifiers; core's own are checked in its project."""
    found = [("exact-match", ROOT)]
    for path in sorted(ROOT.glob("plugins/*/pyproject.toml")):
        groups = tomllib.loads(path.read_text("utf-8"))["project"]["entry-points"]
        found += [(name, path.parent) for name in groups.get("rlvr.verifiers", {})]
    return [pytest.param(*each, id=each[0]) for each in found if each[0] not in ELSEWHERE]


@pytest.mark.parametrize("name", OTHER_FAMILIES)
def test_plugins_of_core_pass(name):
    report = check_plugin(name, project=ROOT)
    assert report.is_passed, report.to_text()


@pytest.mark.parametrize(("name", "project"), shipped())
def test_a_verifier_of_the_repository_gets_its_golden_cases_right(name, project):
    report = check_plugin(name, project=project, only=["R03", "R05", "R20", "R70"])
    assert report.is_passed, report.to_text()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "project"), shipped())
def test_a_verifier_of_the_repository_passes_at_the_level_listed(name, project):
    report = check_plugin(
        name, project=project, level="listed", expected_failures=NO_ADDRESS, timeout_s=30.0
    )
    assert report.is_passed, report.to_text()
