"""``rlvr selfcheck``: exit codes, the table with its advice, and JSON."""

import json

import pytest

from rlvr_core.cli.main import main
from rlvr_core.selfcheck import checks


@pytest.fixture
def selfcheck(write_stack, capfd, monkeypatch):
    """Return a function that runs the command, with some checks only, on a stack."""
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")  # the command sets it for its process

    def run(names, *arguments, **sections):
        monkeypatch.setattr(checks, "CHECKS", [one for one in checks.CHECKS if one.name in names])
        with pytest.raises(SystemExit) as caught:
            main(["selfcheck", str(write_stack(**sections)), *arguments])
        captured = capfd.readouterr()
        return int(caught.value.code or 0), captured.out, captured.err

    return run


def test_a_stack_on_which_all_checks_hold_ends_with_0(selfcheck):
    code, output, errors = selfcheck(["estimator", "verdicts"])

    assert code == 0, errors
    assert output.count(" ok ") == 2
    assert "failed" not in output


def test_a_failed_check_ends_with_1_and_says_whom_to_suspect_and_what_to_do(selfcheck):
    code, output, _ = selfcheck(["mask", "estimator"], advantage=["bad-CountsMasked"])

    assert code == 1
    assert "mask failed. Masked rollouts do not matter" in output
    assert "suspect  bad-CountsMasked: the check holds without bad-CountsMasked" in output
    assert "fix      use group.valid" in output
    assert "estimator failed" not in output


def test_overrides_change_the_stack_that_is_checked(selfcheck):
    code, _, _ = selfcheck(["mask"], "advantage=[grpo]", advantage=["bad-CountsMasked"])

    assert code == 0


def test_a_plugin_that_raises_ends_with_3_and_json_tells_all(selfcheck):
    code, output, errors = selfcheck(
        ["partition", "estimator"], "--json", advantage=["bad-AloneIsNan"]
    )

    found = {one["name"]: one for one in json.loads(output)["checks"]}
    assert code == 3, errors
    assert found["partition"]["outcome"] == "ok"
    assert found["partition"]["difference"] <= found["partition"]["tolerance"]
    assert found["estimator"]["outcome"] == "failed"
    assert "rlvr-plugin-mistakes 0.1.0" in found["estimator"]["why_suspected"]
    assert found["estimator"]["fix"]
    assert [name for name, one in found.items() if one["is_plugin_fault"]] == ["estimator"]


def test_a_stack_that_is_wrong_ends_with_2(selfcheck):
    code, _, errors = selfcheck(["estimator"], advantage=["bad-Absent"])

    assert code == 2
    assert "RLVR-S103" in errors


def test_prompts_that_a_plugin_refuses_end_with_2_by_its_real_verdict(selfcheck):
    refused, _, errors = selfcheck(["repeat"], monitors=[{"bad-Auditor": {"wanted": "b"}}])
    accepted, _, _ = selfcheck(["repeat"], monitors=[{"bad-Auditor": {"wanted": "a"}}])

    assert (refused, accepted) == (2, 0)
    assert "RLVR-S107" in errors
