"""Every check finds the verifier that was made bad for it, and finds nothing else in it."""

from __future__ import annotations

import pytest

from rlvr_core.api.plugin import Family
from rlvr_core.testing import check_plugin
from rlvr_core.testing.checks import CHECKS

from .conftest import TARGETS, plugin_name

ALL = [check.number for check in CHECKS[Family.VERIFIERS]]
BAD = sorted(set(TARGETS) - {"good"})
QUICK = ("R04", "R11", "R20", "R33", "R41", "R51", "R60", "R70")
"""At least one of each group; the slow test has all."""


@pytest.fixture
def report_of(project_of, tmp_path, monkeypatch):
    """Return a function that checks one of the fixtures."""

    def check(number, **options):
        seats = tmp_path / "seats"
        seats.mkdir()
        monkeypatch.setenv("RLVR_KIT_SEATS", str(seats))
        return check_plugin(
            plugin_name(number), project=project_of(number), timeout_s=2.0, **options
        )

    return check


def test_there_is_a_bad_verifier_for_every_check():
    assert sorted(ALL) == BAD


def test_a_good_verifier_passes_every_check_that_applies(report_of):
    report = report_of("good")

    assert [one.number for one in report.failed] == [], report.to_text()
    assert report.is_passed
    assert report.counts["run"] == report.counts["applicable"] >= len(ALL) - 6


@pytest.mark.parametrize("number", QUICK)
def test_a_check_finds_what_it_is_for(number, report_of):
    report = report_of(number, only=[number])

    assert [one.number for one in report.failed] == [number], report.to_text()
    assert not report.is_passed


@pytest.mark.slow
@pytest.mark.parametrize("number", BAD)
def test_a_bad_verifier_trips_its_check_and_no_other(number, report_of):
    report = report_of(number)

    assert [one.number for one in report.failed] == [number], report.to_text()
    assert len(report.results) == len(ALL)
