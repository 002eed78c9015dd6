"""Every check finds the mistake that it is for, names the plugin, and finds nothing else."""

import json

import pytest

from rlvr_core.selfcheck.checks import CHECKS
from rlvr_core.selfcheck.run import selfcheck
from rlvr_core.train.prepare import prepare

OF_UPDATES = (
    "partition", "padding", "permutation", "mask", "ratio", "processes", "estimator", "needs",
)  # fmt: skip
OF_RUNS = ("repeat", "resume", "evaluation")
OF_VERIFIERS = ("verdicts", "blank")
EVERY = (*OF_UPDATES, *OF_RUNS, *OF_VERIFIERS)

FOUND_BY = {
    "partition": ("LocalMean", "OffPolicyLocalMean"),
    "padding": ("PeeksAtLayout",),
    "permutation": ("FirstIsBaseline", "PaysTheFirst"),
    "mask": ("CountsMasked", "WeighsByMasked"),
    "ratio": ("DropsFirstToken", "LosesLogps"),
    "processes": ("OwnShareOnly",),
    "estimator": ("LeaveOneOut", "NoBaseline"),
    "needs": ("DeclaresTooMuch",),
    "repeat": ("SharedChance", "LearnsByChance"),
    "resume": ("Forgets", "LoadsHalf"),
    "evaluation": ("Exams",),
    "verdicts": ("Moody", "Brittle"),
    "blank": ("NoCommas",),
}
"""Check -> the fixture plugins whose mistake it finds."""


def failures(results):
    return {name: one for name, one in results.items() if one.found.outcome == "failed"}


def outcomes(results):
    return {name: one.found.outcome.value for name, one in results.items()}


def test_every_check_is_proven_by_a_plugin_with_a_mistake():
    assert [one.name for one in CHECKS] == [*EVERY] == [*FOUND_BY]


@pytest.mark.parametrize("name", ["partition", "mask", "ratio", "estimator", *OF_VERIFIERS])
def test_a_mistake_is_found_by_its_check_alone(check, stack_with, name):
    mistake = FOUND_BY[name][0]
    # Those of the same cost; the slow test below makes all checks, and all mistakes.
    others = next(group for group in (OF_UPDATES, OF_RUNS, OF_VERIFIERS) if name in group)

    failed = failures(check(others, **stack_with(mistake)))

    assert_found(failed, name, mistake)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mistake"), [(name, one) for name, several in FOUND_BY.items() for one in several]
)
def test_a_mistake_is_found_by_its_check_alone_among_all_checks(check, stack_with, name, mistake):
    assert_found(failures(check(EVERY, **stack_with(mistake))), name, mistake)


def assert_found(failed, name, mistake):
    assert list(failed) == [name]
    assert failed[name].suspects == (f"bad-{mistake}",)
    assert failed[name].fix
    assert not failed[name].is_plugin_fault


def test_a_sound_stack_passes_every_check(check):
    stack = {
        "advantage": [
            "grpo", {"ppo-clip": {"kl_coefficient": 0.1}}, "bad-ReadsEntropy", "bad-Remembers",
        ],
        "rollout": {"temperature": 0.6},
        "train": {"steps": 9, "learning_rate": 1e-6, "mini_batches": 2, "passes": 2},
    }  # fmt: skip

    results = check(EVERY, **stack)

    assert set(outcomes(results).values()) == {"ok"}, failures(results)
    assert results["ratio"].found.difference < 1e-4
    assert 0 < results["partition"].found.difference < 1e-5
    assert "at temperature 0.6" in results["ratio"].found.detail


def test_what_compares_nothing_does_not_pass(check):
    results = check([*OF_UPDATES, *OF_RUNS], advantage=["bad-NoSignal"])

    not_compared = {name for name in results if outcomes(results)[name] == "not applicable"}
    assert not_compared == {*OF_UPDATES, *OF_RUNS} - {"ratio"}
    assert results["ratio"].found.outcome == "ok"  # sampled tokens need no advantage
    assert "on policy" not in results["ratio"].found.detail


def test_verifiers_that_abstain_are_not_called_sound(check):
    results = check(OF_VERIFIERS, verifier="bad-Abstains")

    assert set(outcomes(results).values()) == {"not applicable"}


def test_a_wrong_ratio_that_no_plugin_made_is_blamed_on_none(check, monkeypatch):
    import rlvr_core.train.policy as policy

    real = policy.token_logps

    def without_temperature(*arguments, **options):
        return real(*arguments, **{**options, "temperature": 1.0})

    monkeypatch.setattr(policy, "token_logps", without_temperature)

    [result] = check(["ratio"], rollout={"temperature": 0.6}).values()

    assert result.found.outcome == "failed"
    assert result.suspects == ()
    assert "report this to rlvr" in result.why_suspected


@pytest.mark.slow
def test_two_plugins_with_the_same_mistake_are_suspected_together(check):
    stack = {"advantage": ["bad-FirstIsBaseline"], "verifiers": ["exact-match", "bad-PaysTheFirst"]}

    [result] = check(["permutation"], **stack).values()

    assert set(result.suspects) == {"bad-FirstIsBaseline", "bad-PaysTheFirst"}


@pytest.mark.slow
def test_two_plugins_that_spoil_runs_in_two_ways_are_told_apart(check):
    stack = {"advantage": ["dr-grpo", "bad-Forgets"], "monitors": ["bad-Exams"]}

    failed = failures(check(OF_RUNS, **stack))

    assert {name: one.suspects for name, one in failed.items()} == {
        "resume": ("bad-Forgets",),
        "evaluation": ("bad-Exams",),
    }


def test_a_plugin_beside_the_culprit_is_not_suspected(check):
    stack = {"advantage": ["dr-grpo", "bad-ReadsEntropy", "bad-WeighsByMasked"]}

    [result] = check(["mask"], **stack).values()

    assert result.suspects == ("bad-WeighsByMasked",)
    assert result.why_suspected == "the check holds without bad-WeighsByMasked"


def test_a_need_that_another_plugin_declares_is_still_missing(check):
    stack = {"advantage": ["grpo", "bad-ReadsEntropy", "bad-DeclaresTooLittle"]}

    failed = failures(check(OF_UPDATES, **stack))

    assert list(failed) == ["needs"]
    assert failed["needs"].suspects == ("bad-DeclaresTooLittle",)


def test_a_plugin_that_breaks_fails_the_check_and_is_named(check):
    results = check(["partition", "estimator"], advantage=["bad-AloneIsNan"])

    assert outcomes(results) == {"partition": "ok", "estimator": "failed"}
    assert results["estimator"].is_plugin_fault
    assert "'bad-AloneIsNan'" in results["estimator"].found.detail
    assert "expected a finite number" in results["estimator"].found.detail


@pytest.mark.parametrize(
    ("mistake", "raised"), [("Raises", "ZeroDivisionError"), ("BrokenMonitor", "KeyError: 'loss'")]
)
def test_a_plugin_that_breaks_every_run_is_named_by_each_check_of_runs(
    check, stack_with, mistake, raised
):
    results = check(OF_RUNS, **stack_with(mistake))

    assert set(outcomes(results).values()) == {"failed"}
    for result in results.values():
        assert result.is_plugin_fault
        assert f"'bad-{mistake}'" in result.found.detail
        assert raised in result.found.detail


def test_sums_that_the_other_process_does_not_join_end_in_bounded_time(check, monkeypatch):
    import rlvr_core.selfcheck.estimators as estimators

    monkeypatch.setattr(estimators, "WAIT_S", 0.2)

    [result] = check(["processes"], advantage=["bad-UnequalSums"]).values()

    assert result.found.outcome == "failed"
    assert result.suspects == ("bad-UnequalSums",)
    assert "equally often" in result.found.detail


@pytest.mark.slow
def test_runs_that_are_not_repeatable_are_not_compared(check):
    results = check(OF_RUNS, samplers=["bad-SharedChance"])

    assert outcomes(results)["resume"] == outcomes(results)["evaluation"] == "not applicable"
    assert "see 'repeat'" in results["resume"].found.detail
    assert "the rows that were chosen, in step 1" in results["repeat"].found.detail


@pytest.mark.slow
def test_what_differs_first_between_runs_is_said(check):
    results = check(["resume"], advantage=["grpo", "bad-Forgets"])

    assert "what differs first is the advantages, in step 3" in results["resume"].found.detail


def test_a_state_that_is_not_taken_back_is_shown(check):
    [result] = check(["resume"], advantage=["grpo", "bad-LoadsHalf"]).values()

    said = "bad-LoadsHalf: load_state({'steps': 3}), and then state() returns {'steps': 0}"
    assert result.found.detail == said


def test_a_monitor_may_act_on_evaluations_and_ends_no_check(check):
    results = check(OF_RUNS, monitors=["bad-StopsAndSlows"])

    assert outcomes(results) == {"repeat": "ok", "resume": "ok", "evaluation": "not applicable"}
    assert "bad-StopsAndSlows acts on them" in results["evaluation"].found.detail


def test_process_generators_are_left_as_they_were(check):
    import random

    import numpy as np
    import torch

    def states():
        return repr((random.getstate(), np.random.get_state(), torch.get_rng_state()))

    before = states()
    check(["repeat"])

    assert states() == before


def test_a_verifier_that_breaks_is_quoted(check):
    [result] = check(["verdicts"], verifier="bad-Brittle").values()

    assert "embedded null byte" in result.found.detail
    assert "completion '\\x00'" in result.found.detail


def test_one_short_row_is_enough(check):
    results = check(OF_UPDATES, rows=1)

    assert set(outcomes(results).values()) == {"ok"}, failures(results)


def test_long_prompts_are_cut_for_the_tiny_model_and_not_for_verifiers():
    from rlvr_core.api import Message, Row
    from rlvr_core.selfcheck.tiny_stack import PROMPT_CHARACTERS, cut_prompt

    turns = tuple(Message("user", letter * 400) for letter in "abc")

    assert cut_prompt("x" + "y" * PROMPT_CHARACTERS) == "y" * PROMPT_CHARACTERS
    assert [turn.content for turn in cut_prompt(turns)] == ["b" * 200, "c" * 400]
    assert cut_prompt(Row(id="1", prompt="short", verifier="", ground_truth={}).prompt) == "short"


def test_long_prompts_of_evaluations_are_cut_too(check, write_stack):
    from rlvr_core.selfcheck.tiny_stack import POSITIONS

    path = write_stack(data={"train": {"path": "train.jsonl"}, "dev": {"path": "dev.jsonl"}})
    rows = [json.loads(line) for line in (path.parent / "train.jsonl").read_text().splitlines()]
    for row in rows:
        row["prompt"] += " and so on" * POSITIONS
    (path.parent / "dev.jsonl").write_text("\n".join(map(json.dumps, rows)))
    evaluation = [one for one in CHECKS if one.name == "evaluation"]

    [result] = selfcheck(prepare(path), evaluation)

    assert result.found.outcome == "ok"
    assert "with 4 evaluations" in result.found.detail


def test_rows_of_every_verifier_are_chosen():
    from rlvr_core.api import Row
    from rlvr_core.selfcheck.tiny_stack import chosen_rows

    rows = [
        Row(id=str(number), prompt="", verifier="a" if number < 20 else "b", ground_truth={})
        for number in range(22)
    ]

    assert [row.id for row in chosen_rows(rows, 6)] == ["0", "20", "1", "21", "2", "3"]
