"""A deadline starts with its row, is held by killing, and costs no other row its verdict."""

from __future__ import annotations

import time
from collections import Counter

from supervision import rows

from rlvr_core.api import FailureCategory, Status


def starts(log) -> Counter[str]:
    """Return how often each row was begun."""
    return Counter(line.split()[0] for line in log.read_text().splitlines())


def test_a_hung_row_is_stopped_and_rows_before_it_are_not_judged_again(judge, tmp_path):
    log = tmp_path / "log"
    completions = ["yes"] * 40 + ["hold"] + ["yes"] * 40
    began_s = time.monotonic()
    verdicts = judge("Tricky", completions, timeout_s=1, config={"log": str(log)})
    assert time.monotonic() - began_s < 10
    hung = verdicts.pop(40)
    assert {verdict.status for verdict in verdicts} == {Status.PASSED}
    assert (hung.status, hung.failure) == (Status.ERROR, FailureCategory.VERIFIER_TIMEOUT)
    begun = starts(log)
    assert begun.pop("r40") == 2, "once in company, once alone"
    assert set(begun.values()) == {1}, "no other row was begun twice"


def test_a_hung_row_says_where_it_hangs(judge):
    (hung,) = judge("Tricky", ["hold"], timeout_s=0.3)
    assert "not finished within 0.3 s" in hung.diagnostics["message"]
    assert "holding on" in hung.diagnostics["output"]
    assert "do_hold" in hung.diagnostics["output"]


def test_the_second_try_is_alone_in_a_fresh_worker(judge, tmp_path):
    log = tmp_path / "log"
    judge("Tricky", ["yes"] * 4 + ["sleep"] + ["yes"] * 9, timeout_s=0.3, config={"log": str(log)})
    lines = [line.split() for line in log.read_text().splitlines()]
    first, second = (pid for row, pid in lines if row == "r4")
    assert first != second
    assert [row for row, pid in lines if pid == second] == ["r4"]


def test_a_row_that_hangs_once_gets_its_verdict(judge, tmp_path):
    verdicts = judge("Tricky", ["yes", f"hang_once {tmp_path}/mark", "yes"], timeout_s=0.5)
    assert [verdict.status for verdict in verdicts] == [Status.PASSED] * 3


def test_on_timeout_fail_gives_the_lowest_score(judge):
    (hung,) = judge("Tricky", ["sleep"], timeout_s=0.3, on_timeout="fail")
    assert (hung.status, hung.score) == (Status.FAILED, -1.0)
    assert hung.failure is FailureCategory.RESOURCE_LIMIT


def test_the_entry_of_a_verifier_overrides_the_stack(judge):
    began_s = time.monotonic()
    (hung,) = judge(
        "Tricky", ["sleep"], timeout_s=60, entry_options={"timeout_s": 0.3, "on_timeout": "fail"}
    )
    assert time.monotonic() - began_s < 10
    assert hung.failure is FailureCategory.RESOURCE_LIMIT


def test_time_in_the_queue_does_not_count(make_engine):
    with make_engine("Tricky", timeout_s=0.8) as engine:
        verdicts = engine.judge("tricky", rows(["sleep 0.25"] * 8))
        assert engine.health()["tricky"].timeouts == 0
    assert [verdict.status for verdict in verdicts] == [Status.PASSED] * 8


def test_a_batch_that_hangs_without_announcing_is_searched_for_the_row(judge):
    verdicts = judge("Batch", ["yes", "hang", "yes"], timeout_s=0.4)
    assert [verdict.status for verdict in verdicts] == [Status.PASSED, Status.ERROR, Status.PASSED]
    assert verdicts[1].failure is FailureCategory.VERIFIER_TIMEOUT


def test_a_batch_that_announces_is_blamed_at_once(make_engine):
    with make_engine("Batch", timeout_s=0.4, config={"announces": True}) as engine:
        verdicts = engine.judge("batch", rows(["yes", "hang", "yes"]))
        assert engine.health()["batch"].timeouts == 2
    assert [verdict.status for verdict in verdicts] == [Status.PASSED, Status.ERROR, Status.PASSED]
    assert verdicts[0].diagnostics["size"] == 2, "the others went on together"


def test_a_hung_io_row_costs_the_rows_beside_it_nothing(judge, tmp_path):
    log = tmp_path / "log"
    hung, *others = judge(
        "Patient",
        ["sleep 300"] + ["sleep 0.4"] * 12,
        timeout_s=0.6,
        entry_options={"concurrency": 4},
        config={"log": str(log)},
    )
    begun = starts(log)
    assert begun.pop("r0") == 2
    assert set(begun.values()) == {1}
    assert hung.failure is FailureCategory.VERIFIER_TIMEOUT
    assert {verdict.status for verdict in others} == {Status.PASSED}
