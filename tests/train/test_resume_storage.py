"""After a kill, a full disk or damage: what is half written is never taken for whole."""

import json
import shutil
import subprocess
from collections import Counter
from itertools import chain

import pyarrow.parquet as parquet
import pytest
import stacks
import torch
from forked_runs import KILLED
from phases import Phases
from safetensors.torch import load_file
from stacks import read_lines

from rlvr_core.api.errors import EnvironmentFault, RunFolderError
from rlvr_core.records.layout import complete_checkpoints
from rlvr_core.train import checkpoint
from rlvr_core.train.exam import examine
from rlvr_core.train.prepare import prepare
from rlvr_core.train.progress import Silent
from rlvr_core.train.run import train


@pytest.fixture(scope="module")
def stack(tmp_path_factory, tiny_model):
    """A stack that saves after each of its 4 steps and learns in each of them."""
    judged_by = {"type": "resume-steady"}
    rows = [{"id": f"{n}", "prompt": f"prompt {n}", "verifier": judged_by} for n in range(8)]
    return stacks.write_stack(
        tmp_path_factory.mktemp("saving") / "stack",
        tiny_model,
        dict.fromkeys(stacks.SPLITS, rows),
        ["resume-steady"],
        train={"steps": 4, "checkpoint_every": 1, "learning_rate": 1e-2},
    )


@pytest.fixture(scope="module")
def unbroken(forker, stack):
    """A run of the stack that nothing happened to."""
    run = stack.parent.parent / "unbroken"
    assert forker.train(stack, run).status == 0
    return run


def names(run):
    return [path.name for path in complete_checkpoints(run)]


def assert_same_bits(*checkpoints):
    first, second = (load_file(path / "model.safetensors") for path in checkpoints)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


def assert_same_weights(*runs):
    assert_same_bits(*map(checkpoint.newest, runs))


def assert_whole(run):
    for path in complete_checkpoints(run):
        checkpoint.require_undamaged(path)


def kill_while_writing(forker, stack, unbroken, run, operation):
    """Kill a run of 3 steps before an operation on files of its last; False: there is none."""
    settings = ["train.keep_checkpoints=1", "train.steps=3"]
    ended = forker.train(
        stack, run, *settings, die_in=["step 3: learning"], die_before_operation=operation
    )
    if ended.status == 0:
        return False
    assert ended.status == KILLED
    assert names(run) in (["000002"], ["000002", "000003"], ["000003"])
    assert_whole(run)
    ended = forker.train(stack, run, *settings, resume=True)
    assert ended.status == 0, ended
    assert names(run)[-1] == "000003"
    assert_same_bits(unbroken / "checkpoints/000003", checkpoint.newest(run))
    assert [record["step"] for record in read_lines(run / "metrics.jsonl")] == [1, 2, 3]
    return True


@pytest.mark.slow
def test_a_kill_while_saving_leaves_the_old_checkpoint_or_the_new_one(
    forker, stack, unbroken, tmp_path
):
    ended = forker.train(
        stack,
        tmp_path / "run",
        "train.keep_checkpoints=1",
        "train.steps=3",
        die_in=["step 3: learning"],
        die_before_operation=10**6,
    )
    operations = ended.said["operations"]
    # The new one into its place, then the old one out of the way.
    renames = [n for n, said in enumerate(operations) if "os.rename" in said and "/checkp" in said]
    assert len(renames) == 2

    for operation in renames:
        assert kill_while_writing(forker, stack, unbroken, tmp_path / str(operation), operation)


@pytest.mark.slow
def test_a_kill_before_any_operation_on_files_of_a_step_loses_nothing(
    forker, stack, unbroken, tmp_path
):
    operation = 0
    while kill_while_writing(forker, stack, unbroken, tmp_path / str(operation), operation):
        operation += 1

    assert operation > 20


@pytest.mark.slow
def test_a_kill_before_any_operation_on_files_of_a_resume_loses_nothing(
    forker, stack, unbroken, tmp_path
):
    every = "train.checkpoint_every=2"
    broken = tmp_path / "broken"
    ended = forker.train(stack, broken, every, die_in=["step 4: learning"], die_after_s=0.0)
    assert ended.status == KILLED
    seen = []

    for operation in range(18):
        run = shutil.copytree(broken, tmp_path / str(operation))
        ended = forker.train(
            stack,
            run,
            every,
            resume=True,
            die_in=["starting the verifiers"],
            die_before_operation=operation,
        )
        assert ended.status == KILLED
        seen.append(sorted(path.name for path in run.glob("discarded/*/*")))
        ended = forker.train(stack, run, every, resume=True)
        assert ended.status == 0, ended
        assert_same_weights(unbroken, run)
        assert [record["step"] for record in read_lines(run / "metrics.jsonl")] == [1, 2, 3, 4]
        kept = [read_lines(path) for path in run.glob("discarded/*/metrics.jsonl")]
        assert all(records[0]["step"] == 3 for records in kept)
        assert kept
        assert list(run.glob("discarded/*/rollouts/000003.parquet"))

    assert seen[0] == []
    assert "rollouts" in seen[-1], "the last of these kills came when all had been set aside"


@pytest.mark.parametrize(
    ("limit_bytes", "file"),
    [(120_000, "000001"), (3_000, "000001.parquet")],
    ids=["checkpoint", "table"],
)
def test_a_file_that_does_not_fit_is_named_and_the_run_continues(
    forker, stack, unbroken, tmp_path, limit_bytes, file
):
    run = tmp_path / "run"

    ended = forker.train(stack, run, file_limit_bytes=limit_bytes)

    assert ended.status == 4
    assert ended.said["error"]["code"] == "RLVR-T106"
    assert ended.said["error"]["message"] == f"{file} could not be written"
    assert names(run) == []
    assert forker.train(stack, run, resume=True).status == 0
    assert_same_weights(unbroken, run)


def test_a_full_disk_loses_nothing_older(forker, stack, unbroken, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small disk")
    try:
        run = disk / "run"

        ended = forker.train(stack, run)

        assert ended.status == 4
        assert ended.said["error"]["code"] == "RLVR-T106"
        assert "No space left" in ended.said["error"]["cause"]
        before = names(run)
        assert before
        assert_whole(run)
        for log in ("metrics.jsonl", "events.jsonl"):
            read_lines(run / log)
        again = forker.train(stack, run, resume=True)
        assert again.said["error"]["code"] == "RLVR-T106"
        assert set(before) <= set(names(run))
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        assert forker.train(stack, run, resume=True).status == 0
        assert_same_weights(unbroken, run)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_torn_lines_and_garbage_tables_are_set_aside(stack, unbroken, break_off, tmp_path):
    run, every = tmp_path / "run", ["train.checkpoint_every=2"]
    break_off(prepare(stack, every), run, "step 4: sampling")
    for log in ("metrics.jsonl", "evals.jsonl", "events.jsonl"):
        with (run / log).open("ab") as file:
            file.write(b'{"step": 3, "loss": 0.1')
    (run / "rollouts/000004.parquet").write_bytes(b"PAR1 torn")
    (run / "rollouts/.000004.parquet.tmp").write_bytes(b"PAR1")

    train(prepare(stack, every), run, resume=True)

    assert [record["step"] for record in read_lines(run / "metrics.jsonl")] == [1, 2, 3, 4]
    read_lines(run / "events.jsonl")
    assert (run / "discarded/001/rollouts/000004.parquet").read_bytes() == b"PAR1 torn"
    for log in ("metrics.jsonl", "evals.jsonl", "events.jsonl"):
        assert b'"loss": 0.1\n' in (run / "discarded/001" / log).read_bytes()
    assert parquet.read_table(run / "rollouts/000004.parquet").num_rows == 16
    assert_same_weights(unbroken, run)


DAMAGE = {
    "cut model": ("model.safetensors", lambda data: data[: len(data) // 2]),
    "other bit in the model": ("model.safetensors", lambda data: data[:-9] + b"\x00" + data[-8:]),
    "cut optimiser": ("optimizer.pt", lambda data: data[:1000]),
    "other bit in the optimiser": ("optimizer.pt", lambda data: data[:5000] + b"!" + data[5001:]),
    "empty tokenizer": ("tokenizer.json", lambda data: b""),
    "no config": ("config.json", None),
    "torn state": ("state.json", lambda data: data[:40]),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_checkpoint_is_named_and_never_passed_over(stack, unbroken, tmp_path, what):
    run = tmp_path / "run"
    shutil.copytree(unbroken, run)
    name, damage = DAMAGE[what]
    file = run / "checkpoints/000004" / name
    file.unlink() if damage is None else file.write_bytes(damage(file.read_bytes()))

    for use in (
        lambda: train(prepare(stack), run, resume=True),
        lambda: examine(prepare(stack, splits=["dev"]), run, ["dev"], Silent()),
    ):
        with pytest.raises(RunFolderError) as refused:
            use()
        assert refused.value.code == "RLVR-T108"
        assert name in refused.value.cause
        assert "continues from checkpoint 000003" in refused.value.fix

    shutil.rmtree(run / "checkpoints/000004")
    train(prepare(stack), run, resume=True)
    assert_same_weights(unbroken, run)


def test_a_copy_beside_a_checkpoint_is_no_checkpoint(stack, unbroken, tmp_path):
    run = shutil.copytree(unbroken, tmp_path / "run")
    shutil.copytree(run / "checkpoints/000004", run / "checkpoints/000004.bak")
    before = names(run)

    train(prepare(stack, ["train.steps=5"]), run, resume=True, allow_changes=True)

    assert before == ["000003", "000004"]
    assert names(run) == ["000004", "000005"]
    assert (run / "checkpoints/000004.bak").is_dir()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("step", 3),
        ("step", "4"),
        ("prompts_drawn", 3),
        ("learning_rate", 0.5),
        ("plugins", [1]),
        ("weights_fingerprint", 1),
        ("crc32", {}),
        ("crc32", None),
    ],
)
def test_counters_that_are_not_those_written_are_refused(unbroken, tmp_path, key, value):
    saved = shutil.copytree(unbroken / "checkpoints/000004", tmp_path / "000004")
    checkpoint.load_progress(saved)
    state = json.loads((saved / "state.json").read_text())
    (saved / "state.json").write_text(json.dumps({**state, key: value}))

    with pytest.raises(RunFolderError, match=r"state\.json") as refused:
        checkpoint.load_progress(saved)

    assert refused.value.code == "RLVR-T108"


def test_a_checkpoint_under_the_number_of_another_step_is_refused(unbroken, tmp_path):
    elsewhere = shutil.copytree(unbroken / "checkpoints/000004", tmp_path / "best")
    renamed = shutil.copytree(unbroken / "checkpoints/000004", tmp_path / "000009")

    assert checkpoint.load_progress(elsewhere).step == 4
    with pytest.raises(RunFolderError, match=r"state\.json is that of step 4"):
        checkpoint.load_progress(renamed)


def test_of_two_processes_that_continue_a_run_one_is_refused_before_it_plans(
    forker, stack, unbroken, break_off, tmp_path
):
    run, others = tmp_path / "run", []
    break_off(prepare(stack), run, "step 3: sampling")

    def continue_it_elsewhere_too(text):
        if text == "loading the model":
            others.append(forker.train(stack, run, resume=True))

    train(prepare(stack), run, resume=True, place=Phases(continue_it_elsewhere_too))

    [other] = others
    assert other.said["error"]["code"] == "RLVR-T105"
    assert len(json.loads((run / "manifest.json").read_text())["resumes"]) == 1
    assert_same_weights(unbroken, run)


def test_a_lock_that_cannot_be_made_is_said(unbroken, stack, tmp_path):
    run = shutil.copytree(unbroken, tmp_path / "run")
    (run / "run.lock").unlink()
    (run / "run.lock").mkdir()

    with pytest.raises(EnvironmentFault) as ended:
        train(prepare(stack), run, resume=True)

    assert ended.value.code == "RLVR-T106"
    assert ended.value.message == "run.lock could not be written"


def test_links_and_files_among_checkpoints_are_removed_and_what_stays_is_an_event(
    stack, unbroken, tmp_path, monkeypatch
):
    run = shutil.copytree(unbroken, tmp_path / "run")
    folder = run / "checkpoints"
    (folder / "000003").rename(tmp_path / "elsewhere")
    (folder / "000003").symlink_to(tmp_path / "elsewhere")
    (folder / ".unfinished-file").write_text("left over")
    (folder / ".unfinished-000009").mkdir()
    really_remove = shutil.rmtree

    def remove(path, **options):
        if path.name == ".unfinished-000009":
            raise PermissionError(1, "Operation not permitted")
        really_remove(path, **options)

    monkeypatch.setattr(shutil, "rmtree", remove)
    outcome = train(prepare(stack, ["train.steps=5"]), run, resume=True, allow_changes=True)

    assert outcome.status == "finished"
    kept = sorted(path.name for path in folder.iterdir())
    assert kept == [".unfinished-000009", "000004", "000005"]
    assert (tmp_path / "elsewhere/state.json").is_file(), "what a link leads to is not ours"
    reasons = [event["reason"] for event in read_lines(run / "events.jsonl")]
    assert (
        "checkpoints/.unfinished-000009 is not needed, and cannot be removed: "
        "Operation not permitted"
    ) in reasons


@pytest.mark.parametrize(
    ("way", "phase"),
    [
        ("removed", "step 2: learning"),
        ("removed", "step 2: writing its records"),
        ("removed", "step 2: writing a checkpoint"),
        ("renamed", "step 2: writing a checkpoint"),
    ],
)
def test_a_run_whose_folder_goes_away_ends_and_does_not_bring_it_back(stack, tmp_path, phase, way):
    run = tmp_path / "run"

    def vandalise(text):
        if text == phase:
            shutil.rmtree(run) if way == "removed" else run.rename(tmp_path / "elsewhere")

    with pytest.raises(EnvironmentFault) as ended:
        train(prepare(stack), run, place=Phases(vandalise))

    assert ended.value.code == "RLVR-T106"
    assert "the run folder was removed or renamed" in ended.value.cause
    assert not run.exists()
    if way == "renamed":
        assert checkpoint.newest(tmp_path / "elsewhere").name == "000001"


def test_a_run_saved_at_the_end_of_an_epoch_continues_with_the_next(
    stack, unbroken, break_off, tmp_path
):
    run = tmp_path / "run"
    break_off(prepare(stack), run, "step 3: sampling")

    train(prepare(stack), run, resume=True)

    drawn = {}
    for path in (unbroken, run):
        tables = [parquet.read_table(path / f"rollouts/{n:06d}.parquet") for n in range(1, 5)]
        drawn[path.name] = [table["row_id"].to_pylist()[::4] for table in tables]
    assert drawn["run"] == drawn["unbroken"]
    for epoch in (drawn["run"][:2], drawn["run"][2:]):
        assert Counter(chain(*epoch)) == Counter(f"{number}" for number in range(8))
    assert [r["epoch"] for r in read_lines(run / "metrics.jsonl")] == [0.5, 1.0, 1.5, 2.0]
