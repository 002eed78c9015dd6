"""Submitting, collecting, counting, and stopping a run whose verifier breaks too often."""

from __future__ import annotations

import time
from dataclasses import replace

import psutil
import pytest
from supervision import entry, reference, rows, wait_until

from rlvr_core.api import PluginError, StackError, Status
from rlvr_core.config.models import VerificationSection
from rlvr_core.verification import plan
from rlvr_core.verification.engine import VerifyEngine


def test_verdicts_come_in_the_order_asked_for(make_engine):
    completions = [str(number % 3) for number in range(500)]
    with make_engine("Plain", workers=2) as engine:
        verdicts = engine.judge("plain", rows(completions))
    assert [verdict.diagnostics["seen"] for verdict in verdicts] == [f"r{n}" for n in range(500)]


@pytest.mark.parametrize("workers", [2, 3])
def test_the_number_of_workers_does_not_show(judge, workers):
    completions = ["yes", "no", "raise x", "none", "partly 0.25"] * 8 + ["exit 4"]
    one, more = (
        [
            replace(verdict, latency_s=0.0, diagnostics={**verdict.diagnostics, "output": ""})
            for verdict in judge("Tricky", completions, workers=count)
        ]
        for count in (1, workers)
    )
    assert one == more


def test_submitting_returns_at_once_and_work_goes_on_without_the_caller(make_engine):
    slow, other = rows(["sleep 2.5", "sleep 2.5"])
    with make_engine("Tricky") as engine:
        began_s = time.monotonic()
        engine.submit("tricky", slow)
        engine.submit("tricky", other)
        assert time.monotonic() - began_s < 2.2
        assert wait_until(lambda: engine.health()["tricky"].verdicts == 2)
        began_s = time.monotonic()
        verdicts = engine.judge("tricky", [other, slow])
        assert time.monotonic() - began_s < 2.2
    assert [verdict.status for verdict in verdicts] == [Status.PASSED] * 2


def test_an_id_is_free_again_once_collected(make_engine):
    (row,) = rows(["yes"])
    with make_engine("Plain") as engine:
        engine.submit("plain", row)
        with pytest.raises(ValueError, match="'r0' waits"):
            engine.submit("plain", row)
        assert engine.judge("plain", [row])[0].status is Status.PASSED
        second = engine.judge("plain", [replace(row, completion="no")])
    assert second[0].status is Status.FAILED


def test_an_unknown_verifier_is_named_with_the_closest_one(make_engine):
    with make_engine("Plain") as engine, pytest.raises(StackError) as caught:
        engine.submit("plian", rows(["yes"])[0])
    assert caught.value.code == "RLVR-V103"
    assert "did you mean 'plain'?" in str(caught.value)


def test_too_many_errors_stop_the_run_and_name_the_plugin_and_three_rows(make_engine):
    engine = make_engine("Tricky", max_error_rate=0.05, error_window=32)
    with engine, pytest.raises(PluginError) as caught:
        engine.judge("tricky", rows(["yes"] * 8 + ["raise because"] * 8))
    text = str(caught.value)
    assert caught.value.code == "RLVR-V101"
    assert caught.value.exit_code == 3
    assert "rlvr-plugin-fixtures 0.1.0" in text
    assert "https://example.org/issues" in text
    assert text.count("ValueError: because") == 3
    assert text.count("completion 'raise because'") == 3
    assert "'r15'" in text


def test_the_command_that_is_advised_has_the_settings_of_the_verifier(tmp_path):
    log = str(tmp_path / "a b.log")
    ref = reference("Tricky", name="mine", log=log)
    engine = VerifyEngine(
        [(ref, entry(ref))], VerificationSection(max_error_rate=0.05, error_window=32)
    )
    with engine, pytest.raises(PluginError) as caught:
        engine.judge("mine", rows(["yes"] * 8 + ["raise because"] * 8))
    assert f"`rlvr verify tricky FILE --config 'log={log}'`" in caught.value.fix


def test_few_errors_stop_nothing(make_engine):
    with make_engine("Tricky", max_error_rate=0.05, error_window=32) as engine:
        verdicts = engine.judge("tricky", rows(["raise x"] * 7))
    assert {verdict.status for verdict in verdicts} == {Status.ERROR}


def test_errors_that_left_the_window_are_forgiven(make_engine):
    with make_engine("Tricky", max_error_rate=0.3, error_window=32) as engine:
        for number in range(4):
            engine.judge("tricky", rows(["raise x"] * 5 + ["yes"] * 32, prefix=f"{number}-"))


def test_health_counts_what_happened(make_engine):
    completions = ["yes", "no", "raise x", "exit 2", "sleep"]
    with make_engine("Tricky", timeout_s=0.3) as engine:
        engine.judge("tricky", rows(completions))
        health = engine.health()["tricky"]
    assert health.verdicts == 5
    assert health.by_status == {"passed": 1, "failed": 1, "abstained": 0, "error": 3}
    assert (health.errors, health.timeouts, health.crashes, health.restarts) == (3, 2, 2, 4)
    assert health.latency_p95_s == 0.3
    assert health.to_json()["errors"] == 3


def test_workers_are_replaced_after_so_many_rows(monkeypatch, make_engine):
    monkeypatch.setattr(plan, "RECYCLE_ROWS", 20)
    with make_engine("Tricky") as engine:

        def judging_process() -> int:
            verdicts = engine.judge("tricky", rows(["pid"] * 10))
            return verdicts[-1].diagnostics["pid"]

        first = judging_process()
        assert judging_process() == first
        assert wait_until(lambda: judging_process() != first)
        assert wait_until(lambda: not psutil.pid_exists(first))


def test_a_closed_engine_refuses_rows(make_engine):
    engine = make_engine("Plain")
    with engine:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        engine.judge("plain", rows(["yes"]))
