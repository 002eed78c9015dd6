"""Whole runs that sample with vLLM: what is recorded, a kill and a resume, and how they end."""

import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pyarrow.parquet as parquet
import pytest
import stacks

from rlvr_core.records.layout import complete_checkpoints
from rlvr_core.train import checkpoint
from rlvr_core.train.exam import examine
from rlvr_core.train.prepare import prepare
from rlvr_core.train.progress import Silent
from rlvr_core.train.run import train

pytestmark = pytest.mark.vllm

LETTERS = [chr(code) for code in range(ord("A"), ord("Z") + 1)]
RUN_RLVR = "from rlvr_core.cli.main import main; main()"
LOSE_THE_DEVICE = """
from rlvr_core.rollout.vllm_engine import LLMEngine
step = LLMEngine.step
calls = iter(range(100))
def lose_the_device(self):
    if next(calls) == 25:
        raise RuntimeError("the device was lost")
    return step(self)
LLMEngine.step = lose_the_device
"""


@pytest.fixture
def stack(tmp_path, wide_model):
    """A stack that pays for capital letters, one sampled byte in ten, and samples with vLLM."""
    rows = {
        split: [
            {
                "id": f"{split}-{number}",
                "prompt": f"{split} {number}",
                "verifier": {"type": "exact-match", "answer": LETTERS},
            }
            for number in range(8)
        ]
        for split in stacks.SPLITS
    }
    return stacks.write_stack(
        tmp_path / "stack",
        wide_model,
        rows,
        ["exact-match"],
        rollout={
            "engine": "vllm",
            "vllm": {"kv_cache_gib": 0.125, "eager": True},
            "max_completion_tokens": 1,
            "prompts_per_step": 8,
            "group_size": 8,
        },
        train={"steps": 4, "learning_rate": 3e-3, "checkpoint_every": 1},
        evaluate={"splits": ["dev"]},
    )


def versions(run, step):
    table = parquet.read_table(run / f"rollouts/{step:06d}.parquet").to_pylist()
    assert all(row["entropy"] is None for row in table)
    return {row["weights_version"] for row in table}


def test_a_run_learns_records_its_versions_and_is_measured(stack, tmp_path):
    run = tmp_path / "run"
    prepared = prepare(stack, ["train.steps=12"])

    outcome = train(prepared, run)
    [record] = examine(prepared, run, ["dev"], Silent())

    assert outcome.status == "finished"
    steps = stacks.read_lines(run / "metrics.jsonl")
    made = [one["weights_version"] for one in steps]
    assert made[-1] >= 10
    assert [versions(run, step) for step in range(1, 13)] == [{0}, *({one} for one in made[:-1])]
    assert sum(one["reward_mean"] for one in steps[:3]) / 3 < 0.3
    assert sum(one["reward_mean"] for one in steps[-3:]) / 3 > 0.5
    first, last = stacks.read_lines(run / "evals.jsonl")
    assert first["weights_version"] == 0
    assert last["weights_version"] == record["weights_version"] == made[-1]
    assert record["graders"] == last["graders"]
    assert record["graders"]["exact-match"]["accuracy"] > 0.5


def start(stack, run, *more, before=""):
    """Start ``rlvr train`` as the leader of a session of its own."""
    command = [sys.executable, "-c", before + RUN_RLVR, "train", str(stack), "--out", str(run)]
    return subprocess.Popen(
        [*command, *more],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def left_of(session):
    """Return the processes of a session that are still there a little later."""
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        left = [one for one in psutil.process_iter() if _session_of(one.pid) == session]
        if not left:
            return []
        time.sleep(0.1)
    return left


def _session_of(pid):
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def completions(path):
    """Return what was sampled, by row and sample."""
    return {
        (row["row_id"], row["sample_index"]): row["completion"]
        for row in parquet.read_table(path).to_pylist()
    }


def test_a_killed_run_continues_from_what_is_on_record_and_leaves_no_process(stack, tmp_path):
    run = tmp_path / "run"
    changes = ["train.steps=16", "train.checkpoint_every=6"]
    process = start(stack, run, *changes)
    deadline = time.monotonic() + 120
    while not (run / "rollouts/000008.parquet").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    done = len(stacks.read_lines(run / "metrics.jsonl"))
    assert left_of(process.pid) == []
    [saved] = complete_checkpoints(run)
    version = checkpoint.load_progress(saved).weights_version
    assert 7 <= done < 12, "the run was over before it was killed"

    resumed = start(stack, run, *changes, "--resume")
    _, errors = resumed.communicate(timeout=240)

    assert resumed.returncode == 0, errors
    assert [one["step"] for one in stacks.read_lines(run / "metrics.jsonl")] == [*range(1, 17)]
    assert versions(run, 7) == {version}
    made_again = completions(run / "rollouts/000007.parquet")
    assert made_again == completions(run / "discarded/001/rollouts/000007.parquet")
    events = stacks.read_lines(run / "events.jsonl")
    assert [event["step"] for event in events if event["kind"] == "replayed"][:1] == [7]
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["status"] == "finished"
    assert manifest["hardware"]["vllm"]
    assert manifest["computation"]["engine"] == "vllm"
    assert manifest["computation"]["samples_repeat"] is False


def test_an_engine_that_fails_ends_the_run_with_its_reason_and_no_process(stack, tmp_path):
    run = tmp_path / "run"

    process = start(stack, run, "train.steps=16", before=LOSE_THE_DEVICE)
    _, errors = process.communicate(timeout=120)

    assert process.returncode == 4, errors
    assert "error[RLVR-E104] vLLM failed when it sampled" in errors
    assert "RuntimeError: the device was lost" in errors
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["status"] == "failed"
    assert "vLLM failed" in manifest["ended"]["reason"]
    assert 1 <= manifest["ended"]["step"] < 16
    assert left_of(process.pid) == []


def test_an_interruption_while_vllm_samples_ends_the_run_and_leaves_no_process(stack, tmp_path):
    run = tmp_path / "run"
    longest = "rollout.max_completion_tokens=8000"
    process = start(stack, run, longest, "evaluate.splits=[]")
    manifest = run / "manifest.json"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if manifest.exists() and "computation" in manifest.read_text():
            break
        time.sleep(0.01)
    time.sleep(2)  # step 1 has begun, and its completions are far from their end
    process.send_signal(signal.SIGTERM)  # heard in a shell's background too
    _, errors = process.communicate(timeout=60)

    assert process.returncode == 130, errors
    assert "sampling" in errors
    assert json.loads(manifest.read_text())["status"] == "interrupted"
    assert left_of(process.pid) == []


def test_json_lines_are_not_mixed_with_what_vllm_prints(stack, tmp_path):
    process = start(stack, tmp_path / "run", "train.steps=1", "--json")
    output, errors = process.communicate(timeout=120)

    assert process.returncode == 0, errors
    kinds = [json.loads(line)["kind"] for line in output.splitlines()]
    assert kinds == ["evaluation", "step", "evaluation", "end"]


def test_too_little_memory_for_the_cache_is_said_before_step_1(stack, tmp_path):
    process = start(stack, tmp_path / "run", "rollout.vllm.kv_cache_gib=0.00001")
    _, errors = process.communicate(timeout=120)

    assert process.returncode == 4
    assert "error[RLVR-E104] vLLM failed when it was started" in errors
    assert json.loads((tmp_path / "run/manifest.json").read_text())["status"] == "failed"
    assert left_of(process.pid) == []
