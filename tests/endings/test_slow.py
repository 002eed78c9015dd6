"""What is slow is spoken of, or ends by its own deadline; a run is not silent for ever."""

import pytest
import stacks
from scenes import EXACT_MATCH, trouble

SLOW_AFTER = {"rlvr_core.train.watch:_SLOW_S": 0.5}


def slow_events(run):
    return [each for each in stacks.read_lines(run / "events.jsonl") if each["kind"] == "slow"]


def test_a_monitor_that_hangs_is_named_while_the_run_waits_for_it(start, write_stack, tmp_path):
    stack = write_stack(monitors=[trouble("step_end", "nap", 0)])

    run = start("train", stack, "--out", tmp_path / "run", constants=SLOW_AFTER)

    assert run.wait() == 0, run.said
    said = [event for event in slow_events(tmp_path / "run") if event["step"] == 2]
    place = "step 2: writing its records, in rlvr_step_end of 'tiny-trouble', for "
    assert 1 < len(said) < 5, "again when it is twice as long, and not at every look"
    for event in said:
        assert event["monitor"] == "tiny-trouble"
        assert event["reason"].startswith(place)
        assert event["reason"] in run.said


@pytest.mark.slow
def test_a_process_that_the_others_wait_for_is_named(start_ranks, write_stack, tmp_path):
    stack = write_stack(monitors=[trouble("adjust", "nap", 1)])

    ranks = start_ranks("train", stack, "--out", tmp_path / "run", constants=SLOW_AFTER)

    assert [each.wait(60) for each in ranks] == [0, 0], ranks[0].said + ranks[1].said
    place = (
        "step 2: learning, waiting for rank 1 in step 2: learning, "
        "in rlvr_adjust_advantages of 'tiny-trouble', for "
    )
    assert any(each["reason"].startswith(place) for each in slow_events(tmp_path / "run"))


@pytest.mark.slow
def test_a_slow_verifier_at_an_evaluation_costs_the_deadline_and_is_counted(
    start, write_stack, tmp_path
):
    def truth(number):
        return {"type": "tiny-slow", "sleep_s": 60.0 if number == 5 else 0.0}

    stack = write_stack(
        lambda number: EXACT_MATCH,
        dev_truth=truth,
        verifiers=["exact-match", {"tiny-slow": {"timeout_s": 0.5}}],
        verification={"max_error_rate": 0.5},
        train={"steps": 1},
    )

    run = start("train", stack, "--out", tmp_path / "run")

    assert run.wait() == 0, run.said
    first, second = stacks.read_lines(tmp_path / "run" / "evals.jsonl")
    for record in (first, second):
        assert record["graders"]["tiny-slow"]["verdicts"] == 12
        assert record["graders"]["tiny-slow"]["masked"] == 1
        assert record["graders"]["tiny-slow"]["failures"]["verifier_timeout"] == 1
        assert record["duration_s"] < 20
