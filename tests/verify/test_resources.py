"""cpu rows share processes, io rows wait together, a model gets real batches."""

from __future__ import annotations

import os
import time

import pytest
from supervision import entry, reference, rows

from rlvr_core.config.models import VerificationSection
from rlvr_core.verification import plan
from rlvr_core.verification.engine import VerifyEngine


def test_io_rows_wait_together_up_to_the_concurrency(judge):
    began_s = time.monotonic()
    verdicts = judge("Patient", ["sleep 0.5"] * 16, entry_options={"concurrency": 8})
    elapsed_s = time.monotonic() - began_s
    together = [verdict.diagnostics["together"] for verdict in verdicts]
    assert max(together) == 8
    assert elapsed_s < 0.5 * 16 / 2
    assert len({verdict.diagnostics["pid"] for verdict in verdicts}) == 1


def test_a_model_gets_the_whole_queue_in_one_call(make_engine):
    with make_engine("Batch", workers=3) as engine:
        for number in range(2):
            verdicts = engine.judge("batch", rows(["yes"] * 100, prefix=f"{number}-"))
            assert {verdict.diagnostics["size"] for verdict in verdicts} == {100}
        assert len({verdict.diagnostics["pid"] for verdict in verdicts}) == 1


def test_cpu_rows_are_spread_over_workers(make_engine):
    with make_engine("Tricky", workers=3) as engine:
        verdicts = engine.judge("tricky", rows(["sleep 0.3"] * 9))
        assert len(verdicts) == 9
        pids = {worker.pid for pool in engine._pump.pools for worker in pool.workers}
        health = engine.health()["tricky"]
    assert len(pids) == 3
    assert health.latency_median_s >= 0.3


def test_cpu_verifiers_share_their_workers_unless_their_environments_differ():
    refs = [reference(cls) for cls in ("Plain", "Tricky", "Secretive", "Patient", "Batch")]
    engine = VerifyEngine([(ref, entry(ref)) for ref in refs], VerificationSection(workers=2))
    pools = [(sorted(each.instances), each.processes, each.lanes) for each in engine.plans]
    assert pools == [
        (["plain", "tricky"], 2, 1),
        (["secretive"], 2, 1),
        (["patient"], 1, 32),
        (["batch"], 1, 1),
    ]


@pytest.mark.parametrize(
    ("cores", "local", "expected"), [(8, 1, 7), (8, 2, 3), (2, 1, 1), (1, 4, 1)]
)
def test_training_processes_share_the_cores(monkeypatch, cores, local, expected):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    assert plan.cpu_processes(VerificationSection(), local) == expected
