from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rlvr_core.api import EnvironmentFault, RunFolderError
from rlvr_core.records.logs import read_log
from rlvr_core.report.read import read_run
from rlvr_core.train.manifest import code_revision, hardware_facts
from rlvr_core.train.run_folder import RunFolder

MANIFEST = {"run": "r", "status": "running", "budget": {"steps": 9}}


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "runs" / "r", MANIFEST, "model: m\n")


def lines(folder: RunFolder, name: str) -> list[dict]:
    return [json.loads(line) for line in (folder.path / name).read_text().splitlines()]


def test_a_new_folder_is_whole_and_leaves_nothing_beside_it(folder):
    assert json.loads((folder.path / "manifest.json").read_text()) == {"format": 1, **MANIFEST}
    assert (folder.path / "stack.yaml").read_text() == "model: m\n"
    assert [path.name for path in folder.path.parent.iterdir()] == ["r"]


def test_a_folder_that_holds_a_run_is_refused_and_left_alone(folder):
    folder.append_metrics({"step": 1})
    with pytest.raises(RunFolderError, match="already holds a run") as caught:
        RunFolder.create(folder.path, MANIFEST, "")
    assert caught.value.code == "RLVR-T101"
    assert "--resume" in caught.value.fix
    assert lines(folder, "metrics.jsonl") == [{"step": 1}]


def test_a_folder_that_holds_anything_else_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(RunFolderError, match="not a run of rlvr") as caught:
        RunFolder.create(tmp_path, MANIFEST, "")
    assert caught.value.code == "RLVR-T101"
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_an_empty_folder_is_used(tmp_path):
    (tmp_path / "empty").mkdir()
    assert RunFolder.create(tmp_path / "empty", MANIFEST, "").path == (tmp_path / "empty").resolve()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "not a run folder"),
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"format": 2}', "newer rlvr"),
    ],
)
def test_opening_what_is_no_run_says_why(tmp_path, content, says):
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)
    for opens in (RunFolder.open, read_run):
        with pytest.raises(RunFolderError, match=says) as caught:
            opens(tmp_path)
        assert caught.value.code == "RLVR-T104"


def test_the_manifest_is_updated_in_place(folder):
    folder.update_manifest(status="finished", ended={"at": "now"})
    assert RunFolder.open(folder.path).manifest == {
        "format": 1,
        **MANIFEST,
        "status": "finished",
        "ended": {"at": "now"},
    }


def test_numbers_that_json_lacks_become_null_and_are_named(folder):
    folder.append_metrics(
        {"step": 1, "loss": float("nan"), "kl": float("-inf"), "deep": {"x": [float("inf")]}}
    )
    assert lines(folder, "metrics.jsonl") == [
        {
            "step": 1,
            "loss": None,
            "kl": None,
            "deep": {"x": [None]},
            "non_finite": {"loss": "nan", "kl": "-inf"},
        }
    ]


def test_text_of_every_kind_comes_back_from_a_log(folder):
    reason = "lone \ud83d, \u2028 separator, \x00, ünïcode"
    folder.append_event({"step": 1, "kind": "warn", "reason": reason})
    (event,) = read_run(folder.path).events
    assert event["reason"] == reason
    assert event["time"].endswith("+00:00")


def test_a_line_torn_by_a_kill_is_counted_and_the_next_one_stands_alone(folder):
    folder.append_metrics({"step": 1})
    with (folder.path / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step": 2, "rew')
    folder.append_metrics({"step": 2})
    run = read_run(folder.path)
    assert [line["step"] for line in run.metrics] == [1, 2]
    assert run.unreadable_lines == 1


def test_rollouts_come_back_exactly(folder, some_groups):
    some_groups[0].weight = 0.5
    some_groups[0].rollouts[0].advantage = [0.25] * some_groups[0].rollouts[0].length
    some_groups[0].rollouts[1].verdict = None
    some_groups[0].rollouts[1].reward = None
    some_groups[1].rollouts[0].sampled_under = "a hint"
    some_groups[1].rollouts[0].completion = "lone \ud83d"
    path = folder.write_rollouts(1, some_groups, [True, False, True])
    assert path == folder.path / "rollouts" / "000001.parquet"
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "ZSTD"
    rows = pq.read_table(path).to_pylist()
    rollouts = [(g, r) for group in some_groups for g, r in [(group, r) for r in group.rollouts]]
    assert len(rows) == len(rollouts) == 12
    for row, (group, rollout) in zip(rows, rollouts, strict=True):
        assert row["row_id"] == group.row.id
        assert json.loads(row["ground_truth"]) == group.row.ground_truth
        assert [turn["content"] for turn in json.loads(row["prompt"])] == [
            turn.content for turn in group.row.prompt
        ]
        assert row["segments"][0]["token_ids"] == rollout.segments[0].token_ids
        assert row["segments"][0]["logps"] == pytest.approx(rollout.segments[0].logps, rel=1e-6)
        assert (row["length"], row["entropy"]) == (rollout.length, rollout.entropy)
        assert row["reward"] == rollout.reward
        assert (row["kept"], row["dead"]) == (group is not some_groups[1], group.is_dead)
    assert rows[0]["advantages"] == some_groups[0].rollouts[0].advantage
    assert rows[0]["group_weight"] == 0.5
    assert (rows[1]["status"], rows[1]["reward"]) == (None, None)
    assert json.loads(rows[4]["sampled_under"]) == "a hint"
    assert rows[4]["trained_under"] is None
    assert rows[4]["completion"] == "lone \\ud83d"


def test_kept_must_say_one_thing_a_group(folder, some_groups):
    with pytest.raises(ValueError, match=r"shorter|longer"):
        folder.write_rollouts(1, some_groups, [True])
    assert list((folder.path / "rollouts").iterdir()) == []


def test_every_grader_must_judge_every_completion(folder, some_groups):
    rollouts = some_groups[0].rollouts
    with pytest.raises(ValueError, match="strict: 3 verdicts for 4"):
        folder.write_evaluation(0, "dev", rollouts, {"strict": [r.verdict for r in rollouts[:3]]})


def test_a_rewind_sets_aside_what_is_later_and_loses_nothing(folder, some_groups):
    rollouts = some_groups[0].rollouts
    verdicts = {"math-sympy": [rollout.verdict for rollout in rollouts]}
    for step in range(1, 5):
        folder.append_metrics({"step": step})
        folder.append_event({"step": step, "kind": "warn"})
        folder.write_rollouts(step, some_groups, [True] * 3)
    for step in (0, 2, 4):
        folder.write_evaluation(step, "dev", rollouts, verdicts)
        folder.append_eval({"step": step, "split": "dev", "graders": {}})
    folder.append_event({"kind": "note"})
    with (folder.path / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step": 5, "torn')
    target = folder.rewind(2)
    assert target == folder.path / "discarded" / "001"
    assert [line["step"] for line in lines(folder, "metrics.jsonl")] == [1, 2]
    assert [line["step"] for line in lines(folder, "evals.jsonl")] == [0, 2]
    events = lines(folder, "events.jsonl")
    assert [event["kind"] for event in events] == ["warn", "warn", "note", "rewound"]
    assert events[-1]["discarded"] == "discarded/001"
    assert read_run(folder.path).rollout_steps == [1, 2]
    discarded = (target / "metrics.jsonl").read_bytes().splitlines()
    assert discarded == [b'{"step": 3}', b'{"step": 4}', b'{"step": 5, "torn']
    assert sorted(path.name for path in (target / "rollouts").iterdir()) == [
        "000003.parquet",
        "000004.parquet",
    ]
    assert [path.name for path in (target / "evaluations").iterdir()] == ["000004-dev.parquet"]
    assert folder.rewind(2) is None
    folder.append_metrics({"step": 3})
    assert folder.rewind(0) == folder.path / "discarded" / "002"


def run_python(code: str, *arguments: object) -> subprocess.Popen:
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)


HOLD_THE_LOCK = """
    import os, subprocess, sys, time
    from pathlib import Path
    from rlvr_core.train.run_folder import RunFolder
    with RunFolder.open(Path(sys.argv[1])).lock():
        if os.fork() == 0:  # a worker that outlives its parent must not keep the lock
            time.sleep(3)
            os._exit(0)
        print("locked", flush=True)
        time.sleep(60)
"""


def test_two_writers_are_refused_and_a_killed_one_leaves_no_lock(folder):
    holder = run_python(HOLD_THE_LOCK, folder.path)
    try:
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(RunFolderError) as caught, folder.lock():
            pass
        assert caught.value.code == "RLVR-T105"
        assert str(holder.pid) in caught.value.cause
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    with folder.lock():
        pass


def test_one_process_cannot_lock_a_run_twice_and_can_lock_it_again(folder):
    with folder.lock():
        with pytest.raises(RunFolderError), RunFolder.open(folder.path).lock():
            pass
        with pytest.raises(RunFolderError), folder.lock():
            pass
    with folder.lock():
        pass


WRITE_FOR_EVER = """
    import sys
    from pathlib import Path
    from rlvr_core.api import FinishReason, Group, Rollout, Row, Segment
    from rlvr_core.train.run_folder import RunFolder
    row = Row(id="a", prompt="p", verifier="v", ground_truth={})
    rollouts = [
        Rollout(row=row, sample_index=i, completion="x" * 5000,
                segments=[Segment(token_ids=range(500), logps=[-1.0] * 500)],
                finish_reason=FinishReason.STOP, weights_version=0, sampled_under="p",
                trained_under="p", reward=float(i % 2))
        for i in range(8)
    ]
    folder = RunFolder.open(Path(sys.argv[1]))
    with folder.lock():
        step = int(sys.argv[2])
        while True:
            print("writing", flush=True)
            step += 1
            folder.write_rollouts(step, [Group(row=row, rollouts=rollouts)], [True])
            folder.append_metrics({"step": step, "filler": "y" * 20000})
            folder.append_event({"step": step, "kind": "warn"})
            folder.update_manifest(last=step)
"""


def test_a_writer_killed_at_any_moment_leaves_a_readable_folder(folder):
    rng = random.Random(3)
    step = 0
    for _ in range(4):
        writer = run_python(WRITE_FOR_EVER, folder.path, step)
        for _ in range(2):
            assert writer.stdout.readline() == b"writing\n"
        time.sleep(rng.uniform(0, 0.05))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        run = read_run(folder.path)
        steps = [line["step"] for line in run.metrics]
        assert steps == list(range(1, len(steps) + 1))
        assert set(steps) <= set(run.rollout_steps)
        for number in run.rollout_steps[-2:]:
            assert len(run.rollouts(number)) == 8
        step = run.steps_done
        with folder.lock():
            folder.rewind(step)
        assert read_run(folder.path).unreadable_lines == 0
    assert step >= 4


def test_a_disk_that_does_not_take_it_is_the_environments_fault(folder):
    (folder.path / "metrics.jsonl").mkdir()
    with pytest.raises(EnvironmentFault, match=r"metrics\.jsonl could not be written") as caught:
        folder.append_metrics({"step": 1})
    assert caught.value.code == "RLVR-T106"


@pytest.mark.parametrize(
    "line",
    [
        b"1",
        b"[2]",
        b"\xff\xfe",
        b'{"kind": "warn"',
        b"[" * 100_000,
        b'{"a": ' * 100_000,
        b"{}",
        b'{"kind": 1}',
        b'{"kind": "warn", "step": "1"}',
        b'{"kind": "warn", "step": NaN}',
        b'{"kind": "warn", "step": -1}',
    ],
)
def test_lines_that_hold_no_event_are_counted(tmp_path, line):
    (tmp_path / "events.jsonl").write_bytes(b'{"kind": "warn"}\n\n' + line + b"\n")
    read = read_log(tmp_path, "events.jsonl")
    assert (read.records, read.unreadable) == ([{"kind": "warn"}], 1)


@pytest.mark.parametrize("name", ["metrics.jsonl", "evals.jsonl", "events.jsonl", "stack.yaml"])
def test_what_is_no_file_is_said(folder, name):
    (folder.path / name).unlink(missing_ok=True)
    (folder.path / name).mkdir()
    with pytest.raises(RunFolderError, match=f"{name} cannot be read") as caught:
        read_run(folder.path)
    assert caught.value.code == "RLVR-T104"


def test_the_machine_and_the_revision_are_told(tmp_path):
    facts = hardware_facts()
    assert facts["cores"] >= 1
    assert facts["memory_bytes"] > 2**20
    assert facts["python"] == sys.version.split()[0]
    assert json.loads(json.dumps(facts)) == facts
    assert code_revision(tmp_path) is None
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run([*git, "commit", "-qm", "x", "--allow-empty"], cwd=tmp_path, check=True)
    revision = code_revision(tmp_path)
    assert len(revision["commit"]) == 40
    assert not revision["dirty"]


def test_a_new_run_that_cannot_be_written_is_not_told_to_continue(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentFault, match="could not be written") as caught:
        RunFolder.create(tmp_path / "file" / "run", {}, "")
    assert caught.value.code == "RLVR-T106"
    assert "--resume" not in caught.value.fix
    assert "--out" in caught.value.fix
