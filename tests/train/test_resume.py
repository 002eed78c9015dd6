"""A run that is killed at any moment and continued makes the run that an unbroken one would be."""

import os
import random
from concurrent.futures import ThreadPoolExecutor

import psutil
import pyarrow.parquet as parquet
import pytest
import torch
from forked_runs import KILLED, Forker
from safetensors.torch import load_file
from stacks import read_lines

from rlvr_core.train import checkpoint
from rlvr_core.train.check_resume import TIMES

STEPS = 12
ONE_UPDATE, TWO_UPDATES = "train.mini_batches=1", "train.mini_batches=2"
SAVED_EVERY, EVALUATED_EVERY = 3, 4
PHASES = {
    "sampling": (1, ["step {}: sampling"], (0.0, 0.3)),
    "verifying": (1, ["step {}: sampling"], (0.4, 1.0)),
    "learning": (1, ["step {}: learning"], (0.0, 1.0)),
    "writing": (1, ["step {}: writing its records"], (0.0, 1.0)),
    "saving": (SAVED_EVERY, ["step {}: writing a checkpoint"], (0.0, 1.0)),
    "evaluating": (EVALUATED_EVERY, ["step {}: writing its records", "evaluating dev"], (0.0, 1.0)),
}
"""Name -> every how many steps it comes, beginnings of the phases' texts, and which part of it."""


@pytest.fixture(scope="module")
def random_moments():
    """A generator whose seed is printed; RLVR_TEST_SEED gives it back."""
    seed = int(os.environ.get("RLVR_TEST_SEED") or random.SystemRandom().randrange(10**6))
    print(f"RLVR_TEST_SEED={seed}")  # noqa: T201 - pytest shows it when a test fails
    return random.Random(seed)


@pytest.fixture
def learnable(write_stack):
    """A stack of 12 steps in which each step learns something."""
    return write_stack(
        verifiers=[{"resume-steady": {"delay_s": 0.002}}],  # so that verifying takes its time
        judged_by={"type": "resume-steady"},
        rollout={"max_completion_tokens": 4, "prompts_per_step": 4, "group_size": 6},
        train={
            "steps": STEPS,
            "learning_rate": 1e-2,
            "precision": "fp32",
            "checkpoint_every": SAVED_EVERY,
            "keep_checkpoints": 2,
        },
        evaluate={"splits": ["dev"], "every": EVALUATED_EVERY},
    )


def left_out(record, *keys):
    return {key: value for key, value in record.items() if key not in keys}


def assert_same_run(unbroken, broken):
    """Weights in every bit, and every record but the times."""
    first, second = (
        load_file(checkpoint.newest(run) / "model.safetensors") for run in (unbroken, broken)
    )
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    metrics = [read_lines(run / "metrics.jsonl") for run in (unbroken, broken)]
    assert [record["step"] for record in metrics[0]] == list(range(1, STEPS + 1))
    assert metrics[0][-1]["weights_version"] >= STEPS, "nothing was learnt in some steps"
    first, second = ([left_out(record, *TIMES) for record in of_run] for of_run in metrics)
    assert first == second
    first, second = (
        [left_out(record, "duration_s") for record in read_lines(run / "evals.jsonl")]
        for run in (unbroken, broken)
    )
    assert first == second
    for folder, noise in (("rollouts", "latency_s"), ("evaluations", "verdicts")):
        names = sorted(path.name for path in (unbroken / folder).iterdir())
        assert names == sorted(path.name for path in (broken / folder).iterdir())
        for name in names:
            tables = [parquet.read_table(run / folder / name) for run in (unbroken, broken)]
            first, second = (table.drop_columns([noise]).to_pylist() for table in tables)
            assert first == second, name


def assert_no_worker_is_left(ended):
    for pid, started in ended.workers:
        try:
            worker = psutil.Process(pid)
            if worker.create_time() == started:
                worker.wait(15)
        except psutil.NoSuchProcess:
            continue


def kill_and_continue(forker, stack, run, updates, moments, unbroken):
    """Make a run that is killed at each of some moments, and continued after each."""
    for number, (name, step, share) in enumerate(moments):
        every, texts, (low, high) = PHASES[name]
        phases = [text.format(every * -(-step // every)) for text in texts]
        after_s = (low + share * (high - low)) * unbroken.seconds_of(phases)
        print(f"kill {number}, {name}: {phases[-1]} + {after_s:.4f} s")  # noqa: T201
        ended = forker.train(
            stack, run, updates, resume=number > 0, die_in=phases, die_after_s=after_s
        )
        assert ended.status == KILLED, ended
        assert_no_worker_is_left(ended)
    ended = forker.train(stack, run, updates, resume=True)
    assert ended.status == 0, ended


@pytest.mark.parametrize(
    ("updates", "phases"),
    [(ONE_UPDATE, [("verifying", 5), ("saving", 9)]), (TWO_UPDATES, [("learning", 8)])],
    ids=["one update", "two updates"],
)
def test_a_run_killed_at_a_random_moment_continues_to_the_same_bits(
    forker, learnable, tmp_path, random_moments, updates, phases
):
    unbroken = forker.train(learnable, tmp_path / "unbroken", updates)
    assert unbroken.status == 0, unbroken
    moments = [(name, step, random_moments.random()) for name, step in phases]

    kill_and_continue(forker, learnable, tmp_path / "broken", updates, moments, unbroken)

    assert_same_run(tmp_path / "unbroken", tmp_path / "broken")


@pytest.mark.slow
def test_runs_killed_twenty_times_two_at_a_time_continue_to_the_same_bits(
    fixture_path, learnable, tmp_path, random_moments
):
    def moments_of_a_run(number):
        """Two moments in order; each phase gets its turn."""
        names = list(PHASES)
        first, second = names[number % len(names)], names[(number + 3) % len(names)]
        return [
            (first, random_moments.randrange(2, 7), random_moments.random()),
            (second, random_moments.randrange(7, 9), random_moments.random()),
        ]

    def all_runs(updates):
        forker = Forker(fixture_path)
        unbroken = forker.train(learnable, tmp_path / f"unbroken {updates}", updates)
        assert unbroken.status == 0, unbroken
        for number, of_run in enumerate(moments[updates]):
            run = tmp_path / f"{number} {updates}"
            kill_and_continue(forker, learnable, run, updates, of_run, unbroken)
            assert_same_run(tmp_path / f"unbroken {updates}", run)
        forker.close()

    lanes = (ONE_UPDATE, TWO_UPDATES)
    moments = {updates: [moments_of_a_run(number) for number in range(5)] for updates in lanes}
    with ThreadPoolExecutor(2) as two_at_a_time:
        list(two_at_a_time.map(all_runs, lanes))
