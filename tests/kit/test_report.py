"""What a report counts, what expected failures are worth, and what pytest makes of checks."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from rlvr_core.api import StackError
from rlvr_core.api.plugin import Family
from rlvr_core.cli.main import main
from rlvr_core.testing import (
    CheckReport,
    CheckResult,
    Outcome,
    VerifierSuite,
    check_plugin,
    load_cases,
)
from rlvr_core.testing.checks import CHECKS

from .conftest import HERE, plugin_name

SOME = ["R03", "R05"]


def report_with(*outcomes):
    results = tuple(
        CheckResult(f"R{number:02}", "It holds.", outcome, "found")
        for number, outcome in enumerate(outcomes)
    )
    return CheckReport("a", "a 1.0", "verifiers", "basic", results)


def test_counts_add_up():
    report = report_with(*Outcome, Outcome.PASSED)

    assert report.counts == {
        "applicable": 5,
        "run": 4,
        "passed": 2,
        "expected": 1,
        "failed": 1,
        "skipped": 1,
        "not_applicable": 1,
    }
    assert json.loads(json.dumps(report.to_json()))["counts"] == dict(report.counts)


@pytest.mark.parametrize(
    ("outcomes", "is_passed"),
    [
        ([Outcome.PASSED, Outcome.NOT_APPLICABLE, Outcome.EXPECTED], True),
        ([Outcome.PASSED, Outcome.FAILED], False),
        ([Outcome.PASSED, Outcome.SKIPPED], False),
        ([Outcome.NOT_APPLICABLE], False),
        ([], False),
    ],
)
def test_a_report_passes_when_all_that_applies_was_made_and_nothing_failed(outcomes, is_passed):
    assert report_with(*outcomes).is_passed is is_passed


def test_an_expected_failure_counts_apart_and_one_that_passes_fails(project_of):
    reasons = {"R05": "its setting says enough", "R03": "it will not pass"}

    report = check_plugin(
        plugin_name("R05"), project=project_of("R05"), expected_failures=reasons, only=SOME
    )

    outcomes = {one.number: one.outcome for one in report.results}
    assert outcomes == {"R05": Outcome.EXPECTED, "R03": Outcome.FAILED}
    assert "its setting says enough" in report.with_outcome(Outcome.EXPECTED)[0].detail


def test_an_unknown_check_is_refused(project_of):
    with pytest.raises(StackError, match="no check R99"):
        check_plugin(plugin_name("good"), project=project_of("good"), expected_failures={"R99": ""})


def test_a_plugin_that_needs_settings_is_told_where_they_come_from():
    report = check_plugin("combine", only=["R01"])

    [found] = report.failed
    assert "[tool.rlvr.check]" in found.detail


def test_too_few_golden_cases_are_a_failure_at_the_level_that_asks_for_more(project_of):
    project = project_of("good")
    cases = load_cases(project / "golden.jsonl")

    few = check_plugin(plugin_name("good"), cases=cases[:4], project=project, only=["R20"])
    listed = check_plugin(plugin_name("good"), project=project, level="listed", only=["R20"])

    assert [one.number for one in few.failed] == ["R20"]
    assert "wanted 5, 5, 3" in few.failed[0].detail
    assert "wanted 20, 20, 10" in listed.failed[0].detail


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        ((plugin_name("good"), "--only", "R05"), 0),
        ((plugin_name("R05"), "--only", "R05"), 1),
        ((plugin_name("good"), "--only", "R99"), 2),
        (("kit-god",), 2),
        ((plugin_name("good"), "--golden", "nowhere.jsonl"), 2),
    ],
)
def test_the_command_ends_with_the_documented_exit_code(arguments, exit_code, project_of, capsys):
    project = str(project_of("good"))

    with pytest.raises(SystemExit) as ended:
        main(["plugins", "check", *arguments, "--project", project, "--json"])

    assert ended.value.code == exit_code
    said = json.loads(capsys.readouterr().out)
    assert said["passed"] is (exit_code == 0) if exit_code < 2 else said["exit_code"] == 2


def test_a_setting_of_the_project_that_is_none_is_refused(project_of):
    project = project_of("good")
    (project / "pyproject.toml").write_text("[tool.rlvr.check]\ninvariancies = []\n")

    with pytest.raises(StackError, match="invariancies"):
        check_plugin(plugin_name("good"), project=project)


TESTS = """
from pathlib import Path
from rlvr_core.testing import parametrize_verifier_checks

@parametrize_verifier_checks({name!r}, project=Path({folder!r}), only=["R03", "R05"])
def test_check(check):
    check()
"""


def test_pytest_gets_one_test_a_check_and_the_counts_at_the_end(project_of, tmp_path):
    (tmp_path / "test_it.py").write_text(
        TESTS.format(name=plugin_name("R05"), folder=str(project_of("R05")))
    )
    site = next(path for path in sys.path if "kit-site" in path)
    options = ["-p", "rlvr_core.testing.pytest_plugin", "-v", "-o", "addopts=", "test_it.py"]
    start = (
        f"import sys; sys.path[:0] = {[site, str(HERE)]!r}; import pytest; "
        f"sys.exit(pytest.main({options!r}))"
    )

    done = subprocess.run(
        [sys.executable, "-c", start], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )

    assert done.returncode == 1, done.stdout + done.stderr
    assert "test_it.py::test_check[R03] PASSED" in done.stdout
    assert "Config does not describe marker" in done.stdout
    assert "checks of plugins" in done.stdout
    assert "2 applicable, 2 run, 1 passed" in done.stdout


def test_a_suite_has_a_test_for_every_check():
    class Suite(VerifierSuite):
        plugin = plugin_name("good")

    [mark] = Suite.test_check.pytestmark
    numbers = [check.number for check in CHECKS[Family.VERIFIERS]]
    assert mark.kwargs["ids"] == [test.number for test in mark.args[1]] == numbers


def test_what_failed_is_said_once_more_below_the_table(capsys):
    from rlvr_core.cli.console import make_console

    report_with(Outcome.PASSED, Outcome.FAILED, Outcome.SKIPPED).render(make_console())
    assert capsys.readouterr().out.splitlines()[-2] == "R01 failed: found"


def test_a_capability_that_is_not_claimed_is_not_applicable_whatever_failed_before(tmp_path):
    case = {
        "id": "a",
        "completion": "x",
        "ground_truth": {"answer": "y"},
        "expected": 1,
        "why": "-",
    }
    golden = tmp_path / "golden.jsonl"
    golden.write_text(json.dumps(case) + "\n")
    report = check_plugin("exact-match", cases=golden, only=["R20", "R50", "C54", "C55", "C56"])
    found = {one.number: one.outcome for one in report.results}
    assert found["R20"] is Outcome.FAILED
    assert found["R50"] is Outcome.SKIPPED
    assert {found[number] for number in ("C54", "C55", "C56")} == {Outcome.NOT_APPLICABLE}
