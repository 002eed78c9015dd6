"""Two processes of one run: whatever happens to one ends both, soon, with the first cause."""

import contextlib
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pyarrow.parquet as parquet
import pytest
from scenes import family, living, manifest, trouble, wait_for

from rlvr_core.train import checkpoint, noticeboard


def boards(tmp_path):
    return list(tmp_path.glob(".run.processes-*"))


@pytest.mark.slow
def test_two_processes_sample_what_one_does_and_leave_nothing(
    start, start_ranks, write_stack, tmp_path
):
    out, stack = tmp_path / "run", write_stack()

    alone = start("train", stack, "--out", tmp_path / "alone")
    ranks = start_ranks("train", stack, "--out", out)

    assert alone.wait(60) == 0, alone.said
    assert [rank.wait(60) for rank in ranks] == [0, 0], ranks[0].said + ranks[1].said
    assert manifest(out)["status"] == "finished"
    assert "step 1/4" in ranks[0].said
    assert "run" not in ranks[1].said, "the main process alone talks"
    assert not boards(tmp_path)
    tables = [
        parquet.read_table(folder / "rollouts/000002.parquet").to_pylist()
        for folder in (tmp_path / "alone", out)
    ]
    for one, two in zip(*tables, strict=True):
        assert one["row_id"] == two["row_id"]
        [first], [second] = one["segments"], two["segments"]
        assert first["token_ids"] == second["token_ids"]
        assert first["logps"] == pytest.approx(second["logps"], abs=1e-4)


@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_a_plugin_that_raises_in_one_process_is_what_both_say(
    rank, start_ranks, write_stack, tmp_path
):
    out = tmp_path / "run"
    stack = write_stack(monitors=[trouble("adjust", "raise", rank)])

    ranks = start_ranks("train", stack, "--out", out)
    codes = [each.wait(60) for each in ranks]

    assert codes == [3, 3], ranks[0].said + ranks[1].said
    for each in ranks:
        assert "ValueError: no advantage in sight" in each.said
        assert "plugin 'tiny-trouble': rlvr_adjust_advantages raised" in each.said
        assert "Traceback" not in each.said
    assert f"rank {rank} of 2 failed in step 2: learning" in ranks[1 - rank].said
    ended = manifest(out)["ended"]
    assert (manifest(out)["status"], ended["rank"]) == ("failed", rank)
    assert ended["phase"] == "step 2: learning"
    assert "tiny-trouble" in ended["reason"]
    assert not boards(tmp_path)


@pytest.mark.slow
def test_a_verifier_past_its_error_budget_in_one_process_ends_both(
    start_ranks, write_stack, tmp_path
):
    out = tmp_path / "run"
    stack = write_stack(
        lambda number: {"type": "tiny-slow", "breaks": number == 3},
        verifiers=["tiny-slow"],
        verification={"max_error_rate": 0.0},
        evaluate={"splits": []},
    )

    ranks = start_ranks("train", stack, "--out", out)
    codes = [each.wait(60) for each in ranks]

    assert codes == [3, 3], ranks[0].said + ranks[1].said
    assert all("error[RLVR-V101]" in each.said for each in ranks)
    rank = manifest(out)["ended"]["rank"]
    assert f"rank {rank} of 2 failed in step " in ranks[1 - rank].said
    assert ": sampling and verifying: verifier 'tiny-slow'" in ranks[1 - rank].said


@pytest.mark.slow
def test_a_fault_of_core_on_one_process_names_it_on_the_other(start_ranks, write_stack, tmp_path):
    out, mark = tmp_path / "run", tmp_path / "mark"
    hold = {"at": "torch:save", "how": "fail", "mark": str(mark)}

    ranks = start_ranks("train", write_stack(), "--out", out, hold=hold)
    codes = [each.wait(60) for each in ranks]

    assert codes == [4, 4], ranks[0].said + ranks[1].said
    assert "rank 0 of 2 failed in step 1: writing a checkpoint: " in ranks[1].said
    assert "it broke" in ranks[1].said
    assert manifest(out)["status"] == "failed"


def test_a_folder_that_cannot_be_made_ends_both(start_ranks, write_stack, tmp_path):
    (tmp_path / "file").write_text("no folder")

    ranks = start_ranks("train", write_stack(), "--out", tmp_path / "file" / "run")
    codes = [each.wait(60) for each in ranks]

    assert codes == [4, 4], ranks[0].said + ranks[1].said
    assert all("RLVR-T106" in each.said for each in ranks)


@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_a_killed_process_is_named_by_the_other_and_nothing_is_left(
    rank, start_ranks, write_stack, tmp_path
):
    out, mark = tmp_path / "run", tmp_path / "mark"
    stack = write_stack(monitors=[trouble("adjust", "sleep", rank, mark=str(mark))])

    ranks = start_ranks("train", stack, "--out", out)
    assert ranks[rank].comes_to(mark), ranks[rank].said
    others = family(ranks[0]) + family(ranks[1])
    ranks[rank].send(signal.SIGKILL)
    codes = [each.wait(20) for each in ranks]

    assert codes[rank] == -signal.SIGKILL
    assert codes[1 - rank] == 4, ranks[1 - rank].said
    assert f"error[RLVR-T109] rank {rank} of 2 failed in step 2: learning" in ranks[1 - rank].said
    assert "it was killed" in ranks[1 - rank].said
    assert wait_for(lambda: not living(others))
    assert (manifest(out)["status"], manifest(out)["ended"]["rank"]) == ("failed", rank)
    assert manifest(out)["ended"]["phase"].startswith("step 2: learning")
    assert not boards(tmp_path)


@pytest.mark.parametrize("how", ["spin", pytest.param("stop", marks=pytest.mark.slow)])
@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_a_process_that_hangs_is_named_by_the_other_and_ended(
    how, rank, start_ranks, write_stack, tmp_path
):
    out, mark = tmp_path / "run", tmp_path / "mark"
    stack = write_stack(
        monitors=[trouble("adjust", how, rank, mark=str(mark))],
        train={"process_timeout_s": 2.0},
    )

    ranks = start_ranks("train", stack, "--out", out)
    assert ranks[rank].comes_to(mark), ranks[rank].said
    others = family(ranks[0]) + family(ranks[1])
    codes = [each.wait(30) for each in ranks]

    assert codes[1 - rank] == 4, ranks[1 - rank].said
    assert codes[rank] == (4 if how == "spin" else -signal.SIGKILL)
    speaking = ranks if how == "spin" else [ranks[1 - rank]]
    for each in speaking:
        assert f"rank {rank} of 2 failed in step 2: learning" in each.said
        assert "in rlvr_adjust_advantages of 'tiny-trouble'" in each.said
        assert "it did not come on from there" in each.said
        assert "train.process_timeout_s" in each.said
    assert wait_for(lambda: not living(others))
    assert (manifest(out)["status"], manifest(out)["ended"]["rank"]) == ("failed", rank)
    assert not boards(tmp_path)


def test_a_process_whose_closing_hangs_is_ended_and_says_why(start_ranks, write_stack, tmp_path):
    stack = write_stack(monitors=[trouble("adjust", "raise", 1)])
    hold = {"at": "rlvr_core.verification.engine:VerifyEngine.close", "mark": str(tmp_path / "m")}

    ranks = start_ranks(
        *("train", stack, "--out", tmp_path / "run"),
        hold=hold,
        constants={"rlvr_core.train.watch:END_WITHIN_S": 2.0},
    )
    codes = [each.wait(60) for each in ranks]

    assert codes == [3, 3], ranks[0].said + ranks[1].said
    assert "rank 1 of 2 failed in step 2: learning" in ranks[0].said
    assert "rank 0 was ended: closing took longer than 2 s" in ranks[0].said


def test_a_board_that_was_just_made_outlives_another_launcher(tmp_path):
    made = noticeboard.make_folder(tmp_path / "run")
    (made / "0.new").touch()
    killed = tmp_path / ".run.processes-killed"
    killed.mkdir()
    (killed / "0").touch()

    noticeboard.make_folder(tmp_path / "run")

    assert made.is_dir()
    assert not killed.exists()


@pytest.mark.slow
def test_a_process_stuck_in_c_is_ended(start_ranks, write_stack, tmp_path):
    out, mark = tmp_path / "run", tmp_path / "mark"
    hold = {"at": "rlvr_core.plugins.dispatch:Dispatcher.policy_loss", "how": "block", "rank": 1}

    stack = write_stack(train={"process_timeout_s": 2.0})
    ranks = start_ranks("train", stack, "--out", out, hold={**hold, "mark": str(mark)})
    codes = [each.wait(60) for each in ranks]

    assert codes == [4, 4], ranks[0].said + ranks[1].said
    assert all("rank 1 of 2 failed in step 2: learning" in each.said for each in ranks)


@pytest.mark.slow
def test_a_process_that_is_late_but_comes_is_waited_for(start_ranks, write_stack, tmp_path):
    out, mark = tmp_path / "run", tmp_path / "mark"
    stack = write_stack(
        monitors=[trouble("adjust", "stop", 1, mark=str(mark))],
        train={"process_timeout_s": 30.0},
    )

    ranks = start_ranks("train", stack, "--out", out)
    assert ranks[1].comes_to(mark), ranks[1].said
    time.sleep(2)
    ranks[1].send(signal.SIGCONT)

    assert [rank.wait(60) for rank in ranks] == [0, 0], ranks[0].said + ranks[1].said


@pytest.mark.slow
def test_a_run_that_is_stopped_as_a_whole_and_continued_goes_on(start_ranks, write_stack, tmp_path):
    out, mark = tmp_path / "run", tmp_path / "mark"
    stack = write_stack(
        monitors=[trouble("adjust", "stop", 1, mark=str(mark))],
        train={"process_timeout_s": 2.0},
    )

    ranks = start_ranks("train", stack, "--out", out)
    assert ranks[1].comes_to(mark), ranks[1].said
    ranks[0].send(signal.SIGSTOP)
    time.sleep(4)
    for rank in ranks:
        rank.send(signal.SIGCONT)

    assert [rank.wait(60) for rank in ranks] == [0, 0], ranks[0].said + ranks[1].said


def test_ctrl_c_reaches_both_also_where_one_waits_for_the_other(start_ranks, write_stack, tmp_path):
    out, mark = tmp_path / "run", tmp_path / "mark"
    stack = write_stack(
        monitors=[trouble("adjust", "sleep", 1, mark=str(mark))],
        train={"process_timeout_s": 10},
    )

    ranks = start_ranks("train", stack, "--out", out)
    assert ranks[1].comes_to(mark), ranks[1].said
    others = family(ranks[0]) + family(ranks[1])
    for rank in ranks:
        rank.send(signal.SIGINT)
    codes = [each.wait(15) for each in ranks]

    assert codes == [130, 130], ranks[0].said + ranks[1].said
    assert manifest(out)["status"] == "interrupted"
    assert wait_for(lambda: not living(others))
    resumed = start_ranks("train", stack, "--out", out, "--resume")
    assert [rank.wait(60) for rank in resumed] == [0, 0], resumed[0].said
    assert checkpoint.newest(out).name == "000004"


@pytest.mark.slow
def test_a_killed_process_under_torchrun_leaves_nothing(write_stack, tmp_path, site):
    stack = write_stack(monitors=[trouble("adjust", "kill", 1)])
    page = Path(__file__).parents[2] / "docs" / "explanation" / "how-a-run-ends.md"
    [command] = re.findall(r"^torchrun .*$", page.read_text("utf-8"), re.MULTILINE)
    scripts = Path(sys.executable).parent

    done = subprocess.run(
        [*shlex.split(command), "--out", str(tmp_path / "run")],
        cwd=stack.parent,
        env={
            **os.environ,
            "PATH": os.pathsep.join([str(scripts), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join([str(site), str(Path(__file__).parent)]),
            "OMP_NUM_THREADS": "1",
            "ACCELERATE_USE_CPU": "true",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 1, "torchrun's own"
    told = "error[RLVR-T109] rank 1 of 2 failed in step 2: learning"
    assert told in done.stderr, done.stderr
    assert manifest(tmp_path / "run")["status"] == "failed"
    assert not boards(tmp_path)


@pytest.mark.slow
def test_a_process_that_is_killed_at_random_moments_again_and_again(
    start_ranks, write_stack, tmp_path
):
    seed = random.SystemRandom().randrange(2**32)
    generator, out, stack = random.Random(seed), tmp_path / "run", write_stack()
    codes, others = [], []
    for attempt in range(9):
        resuming = ["--resume"] if (out / "manifest.json").exists() else []
        ranks = start_ranks("train", stack, "--out", out, *resuming)
        assert wait_for(lambda ranks=ranks: "loading the model" in ranks[0].said)
        if attempt < 8:
            rank = generator.randrange(2)
            time.sleep(generator.uniform(0, 1 + 0.2 * attempt))
            with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
                others += family(ranks[0]) + family(ranks[1])
                ranks[rank].send(signal.SIGKILL)
            other = ranks[1 - rank]
            codes.append(other.wait(25))
            if ranks[rank].wait(25) == 0 or codes[-1] == 0:
                break  # its part was done, and it was closing or gone
            assert codes[-1] == 4, (seed, other.said)
            assert f"rank {rank} of 2 failed in " in other.said, (seed, other.said)
        else:
            codes.append(max(rank.wait(60) for rank in ranks))

    assert codes[-1] == 0, (seed, codes)
    assert wait_for(lambda: not living(others)), seed
    assert not boards(tmp_path), seed
    assert manifest(out)["status"] == "finished"
