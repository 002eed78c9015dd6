"""In core's worker processes."""

from __future__ import annotations

import pytest

import rlvr_core
from rlvr_core.api import PluginError, Status


def test_rows_are_judged_at_the_same_time_and_the_key_is_there(serve, settings, monkeypatch):
    one = serve()
    monkeypatch.setenv("RLVR_JUDGE_API_KEY", "s3cret")
    config = settings(one)
    config["judges"][0]["api_key_env"] = "RLVR_JUDGE_API_KEY"
    rows = [
        {
            "prompt": "6 * 7?",
            "completion": f"Row {n}: it is {42 + n % 2}.",
            "ground_truth": {"reference": "42"},
        }
        for n in range(40)
    ]
    verdicts = rlvr_core.verify("llm-judge", rows, config=config)
    assert [verdict.status for verdict in verdicts] == [Status.PASSED, Status.FAILED] * 20
    assert {asked.headers.get("Authorization") for asked in one.asked} == {"Bearer s3cret"}
    # 40 rows, and a canary for every sixteen of them.
    assert len(one.asked) == 43


def test_an_endpoint_that_is_not_there_masks_the_rows(serve, settings):
    config = settings(serve(), deadline_s=1)
    config["judges"][0]["base_url"] = "http://nowhere.example/v1"
    row = {"completion": "It is 42.", "ground_truth": {"reference": "42"}}
    [verdict] = rlvr_core.verify("llm-judge", [row], config=config)
    assert (verdict.status, verdict.score) == (Status.ERROR, None)
    assert verdict.failure.value == "backend_unavailable"


def test_an_unproven_judge_cannot_hide_behind_a_verifier_that_asks_others(serve, settings):
    config = {"of": [{"llm-judge": settings(serve())}, "exact-match"], "rule": "any"}
    truth = {"llm-judge": {"reference": "42"}, "exact-match": {"answer": "42"}}
    rows = [{"completion": "It is 42.", "ground_truth": truth}]
    with pytest.raises(PluginError) as caught:
        rlvr_core.verify("combine", rows, config=config)
    assert "may not judge for another verifier: it has no calibration" in str(caught.value)
