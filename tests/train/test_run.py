"""Whole runs on the tiny model: what is left behind, and what watching changes."""

import json
import shutil

import pyarrow.parquet as parquet
import pytest
import torch

from rlvr_core.api.errors import DataError, RunFolderError, StackError
from rlvr_core.records.layout import CHECKPOINT_STATE, complete_checkpoints
from rlvr_core.train import checkpoint
from rlvr_core.train.exam import examine
from rlvr_core.train.prepare import prepare
from rlvr_core.train.progress import Silent
from rlvr_core.train.run import train

LETTERS = [chr(code) for code in range(ord("A"), ord("Z") + 1)]
LEARNABLE = {
    "rollout": {"max_completion_tokens": 1, "prompts_per_step": 8, "group_size": 8},
    "train": {"steps": 20, "learning_rate": 3e-2, "precision": "fp32"},
}


def lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def weights(run):
    from safetensors.torch import load_file

    return load_file(checkpoint.newest(run) / "model.safetensors")


def assert_same_bits(first, second):
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


def pay_for_letters(stack):
    """Make the ground truth of every row any capital letter: one sampled byte in ten is right."""
    for split in ("train", "dev"):
        path = stack.parent / f"{split}.jsonl"
        rows = lines(path)
        for row in rows:
            row["verifier"]["answer"] = LETTERS
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return stack


def test_reward_rises_when_there_is_something_to_learn(write_stack, tmp_path):
    stack = pay_for_letters(write_stack(**LEARNABLE))

    outcome = train(prepare(stack), tmp_path / "run")

    assert outcome.status == "finished"
    rewards = [record["reward_mean"] for record in lines(tmp_path / "run/metrics.jsonl")]
    assert sum(rewards[:3]) / 3 < 0.3
    assert sum(rewards[-3:]) / 3 > 0.8


def test_run_folder_holds_what_it_promises(write_stack, tmp_path):
    stack = write_stack(evaluate={"splits": ["dev"]}, train={"steps": 3, "checkpoint_every": 1})
    run = tmp_path / "run"

    train(prepare(stack), run)

    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["status"] == "finished"
    assert manifest["ended"]["step"] == 3
    assert {plugin["plugin"] for plugin in manifest["plugins"]} >= {"exact-match", "grpo"}
    assert [record["step"] for record in lines(run / "metrics.jsonl")] == [1, 2, 3]
    evals = lines(run / "evals.jsonl")
    assert [(record["step"], record["split"]) for record in evals] == [(0, "dev"), (3, "dev")]
    table = parquet.read_table(run / "rollouts/000002.parquet").to_pylist()
    assert len(table) == 16
    record = lines(run / "metrics.jsonl")[1]
    assert record["reward_mean"] == pytest.approx(sum(row["reward"] for row in table) / 16)
    assert record["tokens"] == sum(row["length"] for row in table)
    assert [path.name for path in complete_checkpoints(run)] == ["000002", "000003"]


def test_resolved_stack_in_the_run_folder_makes_the_same_run_again(write_stack, tmp_path):
    stack = pay_for_letters(write_stack(**LEARNABLE))
    train(prepare(stack, ["train.steps=3"]), tmp_path / "first")

    train(prepare(tmp_path / "first/stack.yaml"), tmp_path / "second")

    assert lines(tmp_path / "first/metrics.jsonl")[-1]["weights_version"] > 0, "nothing was learnt"
    assert_same_bits(weights(tmp_path / "first"), weights(tmp_path / "second"))


@pytest.mark.slow
def test_evaluating_and_the_number_of_workers_do_not_change_the_weights(write_stack, tmp_path):
    stack = pay_for_letters(write_stack(**LEARNABLE))
    variants = {
        "plain": ["train.steps=4"],
        "watched": ["train.steps=4", "evaluate.splits=[dev]", "evaluate.every=1"],
        "workers": ["train.steps=4", "verification.workers=3"],
        "saved": ["train.steps=4", "train.checkpoint_every=1"],
    }

    for name, overrides in variants.items():
        train(prepare(stack, overrides), tmp_path / name)

    for name in variants:
        assert_same_bits(weights(tmp_path / "plain"), weights(tmp_path / name))


def test_another_seed_makes_another_run(write_stack, tmp_path):
    stack = pay_for_letters(write_stack(**LEARNABLE))

    for seed in (0, 1):
        train(prepare(stack, ["train.steps=2", f"seed={seed}"]), tmp_path / str(seed))

    first, second = weights(tmp_path / "0"), weights(tmp_path / "1")
    assert any(not torch.equal(first[name], second[name]) for name in first)


def test_a_checkpoint_that_was_being_written_is_not_loaded(write_stack, tmp_path):
    run = tmp_path / "run"
    stack = write_stack(train={"steps": 2, "checkpoint_every": 1})
    train(prepare(stack), run)
    torn = run / "checkpoints" / f"{checkpoint.UNFINISHED}000003"
    torn.mkdir()
    (torn / "model.safetensors").write_bytes(b"half of it")

    assert checkpoint.newest(run).name == "000002"


def test_a_run_without_a_complete_checkpoint_cannot_be_examined(write_stack, tmp_path):
    prepared = prepare(write_stack(evaluate={"splits": ["dev"]}))
    train(prepared, tmp_path / "run")
    for path in complete_checkpoints(tmp_path / "run"):
        path.rename(path.with_name(f"{checkpoint.UNFINISHED}{path.name}"))

    with pytest.raises(RunFolderError) as refused:
        examine(prepared, tmp_path / "run", ["dev"], Silent())

    assert refused.value.code == "RLVR-T102"


def test_examining_a_checkpoint_gives_the_numbers_of_the_run(write_stack, tmp_path):
    stack = pay_for_letters(write_stack(**LEARNABLE, evaluate={"splits": ["dev"]}))
    prepared = prepare(stack, ["train.steps=3"])
    train(prepared, tmp_path / "run")

    [record] = examine(prepared, tmp_path / "run", ["dev"], Silent())

    [_, last] = lines(tmp_path / "run/evals.jsonl")
    for measured in (record, last):
        del measured["duration_s"], measured["file"]
    assert record == last
    assert record["weights_version"] > 0, "nothing was learnt"


def test_resuming_without_a_checkpoint_begins_again_and_loses_nothing(write_stack, tmp_path):
    run = tmp_path / "run"
    prepared = prepare(write_stack())
    train(prepared, run)
    before = lines(run / "metrics.jsonl")
    for path in complete_checkpoints(run):
        path.rename(run / "checkpoints" / f"not-{path.name}")

    train(prepared, run, resume=True)

    set_aside = lines(run / "discarded/001/metrics.jsonl")
    assert [record["step"] for record in set_aside] == [record["step"] for record in before]
    assert [record["step"] for record in lines(run / "metrics.jsonl")] == [1, 2]


def test_a_run_folder_is_never_mixed_with_another_run(write_stack, tmp_path):
    run = tmp_path / "run"
    stack = write_stack()
    train(prepare(stack), run)

    with pytest.raises(RunFolderError) as occupied:
        train(prepare(stack), run)
    with pytest.raises(RunFolderError) as other:
        train(prepare(stack, ["seed=1"]), run, resume=True)

    assert occupied.value.code == other.value.code == "RLVR-T101"
    assert "differs from this stack in: seed" in str(other.value)


def test_a_run_continues_from_the_copy_of_its_stack(write_stack, break_off, tmp_path):
    run = tmp_path / "run"
    break_off(prepare(write_stack(train={"checkpoint_every": 1})), run, "step 2: learning")

    outcome = train(prepare(run / "stack.yaml"), run, resume=True)

    assert outcome.status == "finished"
    [entry] = json.loads((run / "manifest.json").read_text())["resumes"]
    assert entry.keys() == {"at", "at_step"}, "nothing had changed"
    assert entry["at_step"] == 1


def test_changed_data_is_noticed_on_resume(write_stack, tmp_path):
    run = tmp_path / "run"
    stack = write_stack()
    train(prepare(stack), run)
    data = stack.parent / "train.jsonl"
    data.write_text(data.read_text().replace("one", "uno"))

    with pytest.raises(RunFolderError, match="data"):
        train(prepare(stack), run, resume=True)


def test_prompts_that_do_not_fit_are_found_before_step_0(write_stack, tmp_path):
    stack = write_stack(rollout={"max_completion_tokens": 500})

    with pytest.raises(DataError) as refused:
        train(prepare(stack), tmp_path / "run")

    assert "train-1" in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_five_prompts_two_a_step_are_all_used(write_stack, tmp_path):
    stack = write_stack(rows=5, rollout={"prompts_per_step": 2}, train={"steps": 5})
    run = tmp_path / "run"

    train(prepare(stack), run)

    seen = [
        row["row_id"]
        for step in range(1, 6)
        for row in parquet.read_table(run / f"rollouts/{step:06d}.parquet").to_pylist()
        if row["sample_index"] == 0
    ]
    assert len(seen) == 10
    assert set(seen[:5]) == set(seen[5:]) == {f"train-{n}" for n in range(5)}


def test_one_prompt_many_times_has_randomness_for_each(write_stack, tmp_path):
    stack = write_stack(rows=1, train={"steps": 1})
    run = tmp_path / "run"

    train(prepare(stack), run)

    table = parquet.read_table(run / "rollouts/000001.parquet").to_pylist()
    assert [row["sample_index"] for row in table] == list(range(16))
    assert len({row["completion"] for row in table}) > 12


def test_a_stopped_run_continues_where_it_stopped_and_measures_what_was_due(write_stack, tmp_path):
    run = tmp_path / "run"
    stops = [{"dead-groups": {"warn_after": 1, "stop_after": 1}}]
    stack = write_stack(
        monitors=stops, evaluate={"splits": ["dev"], "every": 1}, train={"steps": 3}
    )

    first = train(prepare(stack), run)
    evaluated = [record["step"] for record in lines(run / "evals.jsonl")]
    second = train(prepare(stack), run, resume=True)

    assert (first.status, second.status) == ("stopped", "finished")
    assert evaluated == [0]
    assert [record["step"] for record in lines(run / "metrics.jsonl")] == [1, 2, 3]
    assert [record["step"] for record in lines(run / "evals.jsonl")] == [0, 1, 2, 3]
    assert not (run / "discarded").exists()


def test_dropout_is_off(write_stack, tiny_model, tmp_path):
    stack = pay_for_letters(write_stack(**LEARNABLE))
    model = tmp_path / "with-dropout"
    shutil.copytree(tiny_model, model)
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "attention_dropout": 0.5}))

    for name in ("first", "second"):
        train(prepare(stack, ["train.steps=3", f"model={model}"]), tmp_path / name)
    train(prepare(stack, ["train.steps=3"]), tmp_path / "without")

    for name in ("first", "second"):
        assert_same_bits(weights(tmp_path / "without"), weights(tmp_path / name))


def test_prompts_that_are_measured_and_trained_on_are_warned_of(write_stack, tmp_path):
    stack = write_stack(evaluate={"splits": ["dev"]}, train={"steps": 1})
    lines_of_train = (stack.parent / "train.jsonl").read_text().splitlines(keepends=True)
    (stack.parent / "dev.jsonl").write_text("".join(lines_of_train[:3]))

    train(prepare(stack), tmp_path / "run")

    reasons = [event["reason"] for event in lines(tmp_path / "run/events.jsonl")]
    assert "3 of 3 dev prompts are trained on too" in reasons


def test_a_reporter_that_breaks_does_not_end_the_run(write_stack, tmp_path):
    class Broken(Silent):
        def step(self, record):
            raise BrokenPipeError

    outcome = train(prepare(write_stack()), tmp_path / "run", reporter=Broken())

    assert outcome.status == "finished"


def test_checkpoints_are_ordered_by_their_step(tmp_path):
    for name in ("999999", "1000000", "000003"):
        folder = tmp_path / "checkpoints" / name
        folder.mkdir(parents=True)
        (folder / CHECKPOINT_STATE).write_text("{}")

    assert [path.name for path in complete_checkpoints(tmp_path)] == ["000003", "999999", "1000000"]


def test_what_differs_on_resume_is_named_key_by_key(write_stack, tmp_path):
    run = tmp_path / "run"
    stack = write_stack()
    train(prepare(stack), run)

    with pytest.raises(RunFolderError) as refused:
        train(prepare(stack, ["train.steps=9", "rollout.group_size=8"]), run, resume=True)

    assert "in: rollout.group_size, train.steps" in str(refused.value)


def test_a_checkpoint_that_is_not_there_is_named_with_those_that_are(write_stack, tmp_path):
    prepared = prepare(write_stack(evaluate={"splits": ["dev"]}))
    train(prepared, tmp_path / "run")

    with pytest.raises(StackError) as refused:
        examine(prepared, tmp_path / "run/checkpoints/000099", ["dev"], Silent())

    assert "beside it stand: 000002" in str(refused.value)
