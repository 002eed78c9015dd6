"""`verl_compute_score` as verl's reward managers call it: by keyword, one by one, in threads."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from rlvr_core.adapters import verl_compute_score
from rlvr_core.api import DataError, PluginError

BREAKS = "def f(completion, answer):\n    return 1 / int(completion == answer)\n"


@pytest.fixture(scope="module")
def compute_score(opened):
    return opened(verl_compute_score("exact-match", workers=1))


def ask(function, text, truth, **more):
    return function(
        data_source="made", solution_str=text, ground_truth=truth, extra_info={"index": 0}, **more
    )


def test_a_score_comes_with_what_verl_logs(compute_score):
    assert ask(compute_score, "2", "2") == {"score": 1.0, "acc": 1.0, "judged": 1.0}
    assert ask(compute_score, "3", "2") == {"score": 0.0, "acc": 0.0, "judged": 1.0}


def test_the_ground_truth_may_be_a_value_an_array_or_a_mapping(compute_score):
    class Array:
        """Like one of numpy, which is what verl's parquet files become."""

        def tolist(self):
            return ["two", "2"]

    for truth in (["two", "2"], Array(), {"answer": "2", "other": None}):
        assert ask(compute_score, "2", truth)["score"] == 1.0


def test_a_verifier_of_several_keys_takes_a_json_object(opened):
    pytest.importorskip("rlvr_plugin_json_schema")
    compute_score = opened(verl_compute_score("json-schema", workers=1))
    truth = {"schema": {"type": "object", "required": ["a"]}}
    assert ask(compute_score, '{"a": 1}', truth)["score"] == 1.0


def test_many_threads_share_the_workers(compute_score):
    # verl merges its reward_kwargs by a partial, and calls in an executor.
    function = partial(lambda raw, **all_: raw(**all_), compute_score)
    with ThreadPoolExecutor(16) as pool:
        texts = ["2", "3"] * 40
        results = list(pool.map(lambda text: ask(function, text, "2")["score"], texts))
    assert results == [1.0, 0.0] * 40


def test_a_completion_without_a_verdict_raises(opened, tmp_path):
    path = tmp_path / "rewards.py"
    path.write_text(BREAKS, "utf-8")
    function = opened(verl_compute_score("python", config={"function": f"{path}:f"}, workers=1))
    with pytest.raises(PluginError) as caught:
        ask(function, "3", {"answer": "2"})
    assert caught.value.code == "RLVR-V104"
    assert "ZeroDivisionError" in str(caught.value)
    assert "unjudged_score" in str(caught.value)


def test_a_completion_without_a_verdict_is_worth_what_the_user_said(opened, tmp_path):
    path = tmp_path / "rewards.py"
    path.write_text(BREAKS, "utf-8")
    options = {"config": {"function": f"{path}:f"}, "workers": 1, "unjudged_score": 0.25}
    function = opened(verl_compute_score("python", **options))
    assert ask(function, "3", {"answer": "2"}) == {"score": 0.25, "acc": 0.0, "judged": 0.0}


def test_a_row_of_another_verifier_raises(compute_score):
    with pytest.raises(DataError) as caught:
        ask(compute_score, "2", {"type": "ifeval", "answer": "2"})
    assert caught.value.code == "RLVR-V104"


def test_a_label_that_cannot_be_the_ground_truth_is_refused(opened, tmp_path):
    path = tmp_path / "rewards.py"
    path.write_text(BREAKS, "utf-8")
    function = opened(verl_compute_score("python", config={"function": f"{path}:f"}, workers=1))
    with pytest.raises(DataError, match="the label is no ground truth of 'python': str '2'"):
        ask(function, "2", "2")
    assert ask(function, "2", json.dumps({"answer": "2"}))["score"] == 1.0
