"""A row that ends its worker is found, tried once more, and blamed."""

from __future__ import annotations

from collections import Counter

import pytest

from rlvr_core.api import FailureCategory, PluginError, Status


@pytest.mark.parametrize(
    ("completion", "words", "printed"),
    [
        ("exit 3", "exited with code 3", "goodbye"),
        ("exit 0", "exited with code 0", "goodbye"),
        ("segfault", "ended by SIGSEGV", "Segmentation fault"),
    ],
)
def test_a_crash_is_blamed_on_its_row(judge, tmp_path, completion, words, printed):
    log = tmp_path / "log"
    completions = ["yes"] * 5 + [completion] + ["yes"] * 5
    verdicts = judge("Tricky", completions, config={"log": str(log)})
    broken = verdicts.pop(5)
    assert {verdict.status for verdict in verdicts} == {Status.PASSED}
    assert (broken.status, broken.failure) == (Status.ERROR, FailureCategory.VERIFIER_CRASH)
    assert words in broken.diagnostics["message"]
    assert printed in broken.diagnostics["output"]
    begun = Counter(line.split()[0] for line in log.read_text().splitlines())
    assert begun.pop("r5") == 2
    assert set(begun.values()) == {1}


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(b"\2\0\0\0Dx", Status.ERROR, id="half an answer"),
        pytest.param(b"\2\0\0\0F{", Status.ERROR, id="half an error"),
        pytest.param(b"\xff\xff\xff\xff", Status.ERROR, id="four gigabytes announced"),
        # When the row is tried again, no chunk has that number any more.
        pytest.param(b"\x09\0\0\0D\1" + bytes(7), Status.PASSED, id="an answer without verdicts"),
    ],
)
def test_a_row_that_speaks_in_its_workers_place_ends_the_worker_and_nothing_else(
    judge, sent, status
):
    verdicts = judge("Tricky", [f"babble {sent.hex()}", *["yes"] * 5])
    assert [verdict.status for verdict in verdicts] == [status, *[Status.PASSED] * 5]


def test_a_crash_in_an_unannounced_batch_is_found(judge):
    verdicts = judge("CpuBatch", ["yes", "yes", "exit", "yes"])
    statuses = [verdict.status for verdict in verdicts]
    assert statuses == [Status.PASSED, Status.PASSED, Status.ERROR, Status.PASSED]
    assert verdicts[2].failure is FailureCategory.VERIFIER_CRASH


def test_rows_beside_a_crash_in_an_io_worker_get_their_verdicts(judge):
    completions = ["yes", "exit", "yes", "yes"]
    verdicts = judge("Patient", completions, entry_options={"concurrency": 4})
    statuses = [verdict.status for verdict in verdicts]
    assert statuses == [Status.PASSED, Status.ERROR, Status.PASSED, Status.PASSED]


def test_a_worker_that_cannot_be_built_is_the_plugins_fault(make_engine):
    with pytest.raises(PluginError) as caught, make_engine("Unbuildable"):
        pass
    assert caught.value.code == "RLVR-P105"
    assert "the weights are not there" in str(caught.value)
    assert "rlvr-plugin-fixtures 0.1.0" in str(caught.value)


def test_a_worker_that_dies_while_starting_is_reported_with_what_it_said(make_engine):
    with pytest.raises(PluginError) as caught, make_engine("Stillborn"):
        pass
    assert caught.value.code == "RLVR-V102"
    assert "exited with code 9" in str(caught.value)
    assert "no licence found" in str(caught.value)
