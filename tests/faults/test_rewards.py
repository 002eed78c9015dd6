"""Rewards that are missing, broken or too large, in whole runs."""

from __future__ import annotations

import math

import pytest
import torch
from oracle import advantages

from rlvr_core.api.errors import PluginError
from rlvr_core.monitors.dead_groups import DeadGroupsConfig
from rlvr_core.train.build import load_model

LENIENT = {"verification": {"workers": 1, "max_error_rate": 1.0}}


def test_a_verifier_that_always_raises_stops_the_run_and_its_completions_are_kept(run, row):
    with pytest.raises(PluginError) as stopped:
        run(train_rows=[row(number, does="raise") for number in range(8)])

    text = str(stopped.value)
    assert stopped.value.code == "RLVR-V101"
    assert "verifier 'odd'" in text
    assert "rlvr-plugin-faults 0.1.0" in text
    ended = run.read().manifest["ended"]
    assert run.read().manifest["status"] == "failed"
    assert ended["cause"].count("ValueError: cannot read it") == 3
    assert ended["cause"].count("row 'step 1/train-") == 3
    assert ended["cause"].count("completion ") == 3


def test_verdicts_that_are_numbers_or_text_stop_the_run_and_name_plugin_and_type(run, row):
    with pytest.raises(PluginError) as stopped:
        run(train_rows=[row(number, does="text") for number in range(8)])

    assert stopped.value.code == "RLVR-V101"
    assert "verifier 'odd'" in str(stopped.value)
    assert "expected a Verdict, got str '1.0'" in str(stopped.value)


def test_a_wrong_number_of_verdicts_names_plugin_step_and_both_counts(run, row):
    rows = [row(number, verifier={"type": "odd-batch", "does": "one_less"}) for number in range(8)]

    with pytest.raises(PluginError) as stopped:
        run(train_rows=rows, verifiers=["odd", "odd-batch"])

    text = str(stopped.value)
    assert "verifier 'odd-batch'" in text
    assert "row 'step 1/train-" in text
    assert " verdicts from rlvr_verify, one a row, got " in text


@pytest.fixture(scope="module")
def some_broken(tmp_path_factory, tiny_model):
    """A run in which the verifier breaks, abstains or says NaN on the first sample of groups."""
    from rlvr_core.train.prepare import prepare
    from rlvr_core.train.run import train

    from .conftest import Finished, data_row, write_faulty_stack

    folder = tmp_path_factory.mktemp("some-broken")
    does = ("raise", "abstain", "score_nan", "judge")
    rows = [data_row(number, does=does[number % 4], samples=[0]) for number in range(8)]
    stack = write_faulty_stack(
        folder / "stack",
        tiny_model,
        rows,
        rollout={"prompts_per_step": 8},
        train={"steps": 1, "learning_rate": 1e-3, "precision": "fp32"},
        **LENIENT,
    )
    return Finished(folder / "run", train(prepare(stack), folder / "run"))


def test_broken_and_abstaining_verdicts_are_masked_and_counted_each_by_its_cause(some_broken):
    [record] = some_broken.metrics

    assert (record["rollouts"], record["masked"], record["errors"]) == (32, 6, 4)
    causes = {name: count for name, count in record["failures"].items() if name != "wrong_answer"}
    assert causes == {"verifier_exception": 2, "contract_violation": 2, "not_applicable": 2}


def test_a_masked_rollout_is_in_no_baseline(some_broken):
    table = some_broken.rollouts()
    masked = [line for line in table if line["reward"] is None]

    assert len(masked) == 6
    assert {(line["sample_index"], line["score"]) for line in masked} == {(0, None)}
    assert all(line["advantages"] == [0.0] for line in masked)
    for group in range(8):
        lines = [line for line in table if line["group"] == group and line["reward"] is not None]
        expected = advantages([line["reward"] for line in lines], epsilon=1e-4)
        assert [line["advantages"] for line in lines] == [
            [pytest.approx(one, abs=1e-9)] for one in expected
        ]
    assert some_broken.metrics[0]["updates"] == 1


def test_the_completion_of_a_broken_verdict_is_kept_with_what_went_wrong(some_broken):
    broken = [line for line in some_broken.rollouts() if line["status"] == "error"]

    assert len(broken) == 4
    assert all(line["segments"][0]["token_ids"] for line in broken)
    said = {line["failure"]: line["diagnostics"] for line in broken}
    assert "ValueError: cannot read it" in said["verifier_exception"]
    assert "expected a finite score, got nan" in said["contract_violation"]


def test_a_verifier_that_breaks_costs_the_rows_of_another_nothing(run, row):
    rows = [
        row(0, does="raise"),
        row(1, verifier={"type": "exact-match", "answer": "a"}),
        row(2, does="raise"),
        row(3, verifier={"type": "exact-match", "answer": "a"}),
    ]

    finished = run(train_rows=rows, verifiers=["odd", "exact-match"], train={"steps": 1}, **LENIENT)

    statuses = {(line["verifier"], line["status"]) for line in finished.rollouts()}
    assert statuses == {("odd", "error"), ("exact-match", "failed")}
    [said] = finished.reasons()[:1]
    assert said.startswith("verifier 'odd': 8 of the last 8 verdicts have status error")


def test_a_run_in_which_every_verdict_abstains_stops_after_a_set_number_of_steps(run, row):
    rows = [row(number, does="abstain") for number in range(8)]

    finished = run(
        train_rows=rows,
        monitors=[{"dead-groups": {"warn_after": 2, "stop_after": 3}}],
        train={"steps": 9},
    )

    assert (finished.outcome.status, len(finished.metrics)) == ("stopped", 3)
    assert "3 steps in a row had no group to learn from: every rollout was masked" in (
        finished.outcome.reason
    )
    assert any(reason.startswith("2 steps in a row") for reason in finished.reasons())
    assert (DeadGroupsConfig().warn_after, DeadGroupsConfig().stop_after) == (5, 50)


def test_a_short_run_that_learnt_nothing_says_so(run, row):
    finished = run(train_rows=[row(number, does="half") for number in range(8)], train={"steps": 2})

    assert finished.outcome.status == "finished"
    [said] = finished.reasons()
    assert said.startswith("2 steps in a row had no group to learn from: in each group all rewards")
    assert said.endswith("the run ends with the weights that it began with")
    assert {line["dead"] for line in finished.rollouts()} == {True}
    assert [record["useful_groups"] for record in finished.metrics] == [0, 0]


def test_very_large_rewards_stop_the_run_before_they_reach_the_weights(run, tiny_model):
    finished = run(verifiers=["odd", {"odd-scale": {"by": 1e38}}], advantage=["dr-grpo"])

    assert finished.outcome.status == "stopped"
    assert "a gradient that is not finite" in finished.outcome.reason
    assert "rewards from 0 to 1e+38" in finished.outcome.reason
    before = load_model(tiny_model).model.state_dict()
    for name, weight in finished.weights().items():
        assert torch.equal(weight, before[name]), name


@pytest.mark.parametrize("value", ["nan", "huge", "text"])
def test_a_shaped_reward_that_is_no_usable_number_names_plugin_and_type(run, value):
    with pytest.raises(PluginError) as refused:
        run(verifiers=["odd", {"odd-shaper": {"value": value}}])

    said = {
        "nan": "got float nan",
        "huge": "got float 1e+300, which float32 cannot hold",
        "text": "got str '1.0'",
    }
    assert refused.value.code == "RLVR-P106"
    assert "plugin 'odd-shaper': rlvr_shape_rewards is at fault" in str(refused.value)
    assert said[value] in str(refused.value)


@pytest.mark.parametrize("value", ["nan", "none"])
def test_a_score_that_a_wrapper_spoilt_is_the_wrappers_fault(run, value):
    with pytest.raises(PluginError) as refused:
        run(verifiers=["odd", {"odd-wrapper": {"value": value}}])

    assert refused.value.code == "RLVR-P106"
    assert "plugin 'odd-wrapper': rlvr_verify is at fault" in str(refused.value)
    assert "expected a finite score at 0, got" in str(refused.value)


def test_numbers_of_a_plugin_are_checked_as_float32_will_hold_them():
    from rlvr_core.plugins.border import LARGEST

    largest = torch.finfo(torch.float32).max
    assert 0.99 * largest < LARGEST <= largest
    assert math.isfinite(torch.tensor(LARGEST, dtype=torch.float32).item())


def test_rows_are_not_changed_by_a_verifier_that_changes_them(run, row):
    from rlvr_core.data.load import content_hash
    from rlvr_core.train.prepare import prepare

    rows = [row(number, does="change_the_row", metadata={"level": 1}) for number in range(8)]

    finished = run(train_rows=rows)

    again = prepare(finished.folder / "stack.yaml")
    assert (
        content_hash(again.splits["train"])
        == (finished.manifest["data"]["train"]["content_sha256"])
    )
    assert {record["errors"] for record in finished.metrics} == {0}
