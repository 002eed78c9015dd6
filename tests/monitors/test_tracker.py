"""The tracker: what reaches the tool, and that a dead, slow or broken one costs records only."""

import json
import os
import socket
import subprocess
import sys
import threading
import time

import pytest

pytest.importorskip("torch")
pytest.importorskip("tensorboard", reason="make setup installs it, and registers the tracker")

import stacks
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rlvr_core.api.errors import EnvironmentFault, StackError
from rlvr_core.monitors import tracker_outlet
from rlvr_core.monitors.tracker_outlet import Outlet
from rlvr_core.train.prepare import prepare
from rlvr_core.train.run import train

STAND_IN = '''
"""Stands in for the package wandb: speaks to a real server over a socket, one line a record."""
import json, os, socket

class config:
    update = staticmethod(lambda values, **more: None)

class Run:
    def __init__(self, settings):
        port = int(os.environ["TRACKER_PORT"])
        self._link = socket.create_connection(("localhost", port))
        self.log({"settings": settings}, step=None)

    def log(self, values, step):
        self._link.sendall(json.dumps([step, values]).encode() + b"\\n")
        if not self._link.recv(1):
            raise ConnectionResetError("the server hung up")

    def finish(self):
        self._link.close()

def init(project, **settings):
    return Run({"project": project, **settings})
'''


class Server:
    """A server of the stand-in, which takes its time to say that it has a record."""

    def __init__(self, takes_s=0.0):
        self.records = []
        self._takes_s = takes_s
        self._socket = socket.create_server(("localhost", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                link, _ = self._socket.accept()
            except OSError:
                return
            with link, link.makefile("r") as lines:
                for line in lines:
                    time.sleep(self._takes_s)
                    self.records.append(json.loads(line))
                    link.sendall(b"k")

    def close(self):
        self._socket.close()


@pytest.fixture
def wandb(tmp_path, monkeypatch):
    """Install the stand-in, and return a function that says at which port its server is."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "wandb.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    yield lambda port: monkeypatch.setenv("TRACKER_PORT", str(port))
    sys.modules.pop("wandb", None)


@pytest.fixture
def stack_with(tmp_path, tiny_model):
    """Return a function that prepares a stack with a tracker."""

    def write(tracker, **sections):
        truth = {"type": "exact-match", "answer": ["a", "b", "c"]}
        rows = {
            split: [{"id": f"{split}-{n}", "prompt": f"{n}", "verifier": truth} for n in range(4)]
            for split in stacks.SPLITS
        }
        given = {"train": {"steps": 4}, "evaluate": {"splits": ["dev"]}, **sections}
        monitors = [{"tracker": tracker}]
        path = stacks.write_stack(
            tmp_path / "stack", tiny_model, rows, ["exact-match"], monitors=monitors, **given
        )
        return prepare(path)

    return write


def warnings(run):
    """Return what the tracker warned of."""
    found = stacks.read_lines(run / "events.jsonl")
    return [each["reason"] for each in found if each["monitor"] == "tracker"]


def scalars(run):
    found = EventAccumulator(str(run / "tensorboard"))
    found.Reload()
    return {tag: [(e.step, e.value) for e in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def test_tensorboard_shows_the_numbers_of_steps_and_evaluations(stack_with, tmp_path):
    run = tmp_path / "run"

    train(stack_with({"to": "tensorboard"}), run)

    shown = scalars(run)
    steps = stacks.read_lines(run / "metrics.jsonl")
    for key in ("reward_mean", "length_mean", "learning_rate", "step_s"):
        expected = [(record["step"], pytest.approx(record[key])) for record in steps]
        assert shown[f"train/{key}"] == expected
    evaluations = stacks.read_lines(run / "evals.jsonl")
    path = "evaluation/dev/graders/exact-match/accuracy"
    assert shown[path] == [
        (each["step"], pytest.approx(each["graders"]["exact-match"]["accuracy"]))
        for each in evaluations
    ]
    assert not warnings(run)


def test_a_resumed_run_shows_each_step_once(stack_with, tmp_path):
    run = tmp_path / "run"
    prepared = stack_with({"to": "tensorboard"}, train={"steps": 4, "checkpoint_every": 2})
    train(prepared, run)
    (run / "checkpoints/000004").rename(run / "checkpoints/lost")

    train(prepared, run, resume=True)

    assert [step for step, _ in scalars(run)["train/reward_mean"]] == [1, 2, 3, 4]
    assert len(list((run / "tensorboard").iterdir())) == 2, "the first attempt's file and another"


def test_a_tool_is_told_the_project_and_the_same_id_after_a_resume(stack_with, tmp_path, wandb):
    server, run = Server(), tmp_path / "run"
    wandb(server.port)
    prepared = stack_with(
        {"to": "wandb", "project": "sums", "settings": {"entity": "us"}},
        train={"steps": 4, "checkpoint_every": 2},
    )

    train(prepared, run)
    (run / "checkpoints/000004").rename(run / "checkpoints/lost")
    train(prepared, run, resume=True)
    server.close()

    first, second = (v["settings"] for step, v in server.records if step is None)
    assert (first["project"], first["entity"], first["name"]) == ("sums", "us", "run")
    assert (first["id"], first["resume"]) == (second["id"], "allow")
    sent = [step for step, values in server.records if "train/reward_mean" in values]
    assert sent == [1, 2, 3, 4, 3, 4]


def dead_server():
    """Return a port at which nobody listens."""
    with socket.create_server(("localhost", 0)) as closed:
        return closed.getsockname()[1]


def test_a_server_that_refuses_costs_records_and_not_the_run(stack_with, tmp_path, wandb):
    wandb(dead_server())

    outcome = train(stack_with({"to": "wandb"}), tmp_path / "run")

    assert outcome.status == "finished"
    said = warnings(tmp_path / "run")
    assert said[-1].startswith("6 records did not reach wandb in all (ConnectionRefusedError: ")
    assert len(said) <= 2
    assert all("did not reach wandb so far; the run goes on" in each for each in said[:-1])


def test_a_server_that_never_answers_costs_the_end_of_the_run_a_bounded_time(
    stack_with, tmp_path, wandb
):
    silent = socket.create_server(("localhost", 0))
    wandb(silent.getsockname()[1])
    prepared = stack_with({"to": "wandb", "end_within_s": 1.0})

    train(prepared, tmp_path / "run")

    records = stacks.read_lines(tmp_path / "run/metrics.jsonl")
    assert max(record["step_s"] for record in records) < 5
    assert warnings(tmp_path / "run") == [
        "6 records did not reach wandb in all (it took longer than 1 s at the end of the run)"
    ]
    silent.close()


def test_a_slow_server_gets_everything_while_the_run_goes_on(stack_with, tmp_path, wandb):
    server = Server(takes_s=0.2)
    wandb(server.port)

    train(stack_with({"to": "wandb"}), tmp_path / "run")
    server.close()

    assert len(server.records) == 1 + 4 + 2
    assert not warnings(tmp_path / "run")


def test_a_tool_that_is_not_installed_is_found_before_the_run(stack_with, tmp_path):
    with pytest.raises(EnvironmentFault) as refused:
        stack_with({"to": "aim"})

    assert refused.value.code == "RLVR-E101"
    assert "the tracker needs aim" in refused.value.message
    assert refused.value.fix == "pip install aim"


def test_a_misspelt_tool_is_refused_with_what_was_meant(stack_with):
    with pytest.raises(StackError, match="did you mean 'tensorboard'"):
        stack_with({"to": "tensorbord"})


@pytest.mark.slow
def test_a_tool_that_hangs_does_not_keep_python_at_its_end(stack_with, tmp_path, wandb):
    silent = socket.create_server(("localhost", 0))
    wandb(silent.getsockname()[1])
    hangs = "\nimport atexit, time\natexit.register(time.sleep, 100)\n"
    with (tmp_path / "site" / "wandb.py").open("a") as module:
        module.write(hangs)
    stack_with({"to": "wandb", "end_within_s": 1.0})
    code = "from rlvr_core.cli.main import main; main()"
    command = [sys.executable, "-c", code, "train", str(tmp_path / "stack" / "stack.yaml")]

    began = time.monotonic()
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "run")],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 60
    assert done.stdout.splitlines()[-1] == f"run folder: {tmp_path / 'run'}"
    silent.close()


class Recorder:
    """A tool in memory."""

    run_id = "mine"

    def __init__(self):
        self.steps = []
        self.gate = threading.Event()
        self.gate.set()
        self.fails_at = ()

    def log(self, values, step):
        self.gate.wait()
        if step in self.fails_at:
            raise SystemExit("the tool wants to end the process")
        self.steps.append(step)

    def finish(self):
        self.steps.append("end")


def test_records_are_sent_in_order_and_one_that_fails_is_the_only_one_lost():
    tool = Recorder()
    tool.fails_at = (3,)
    outlet = Outlet(lambda run_id: tool, None)

    for step in range(6):
        outlet.put({}, step)

    assert outlet.close(10)
    assert tool.steps == [0, 1, 2, 4, 5, "end"]
    assert (outlet.lost, outlet.run_id) == (1, "mine")
    assert outlet.reason == "SystemExit: the tool wants to end the process"


def test_more_records_than_may_wait_are_lost_and_putting_never_waits(monkeypatch):
    monkeypatch.setattr(tracker_outlet, "WAITING", 5)
    tool = Recorder()
    tool.gate.clear()
    outlet = Outlet(lambda run_id: tool, None)
    outlet.put({}, 0)
    time.sleep(0.2)  # the thread has taken it, and waits

    for step in range(1, 11):
        outlet.put({}, step)  # one that waited would do so for ever
    assert outlet.lost == 5
    tool.gate.set()

    assert outlet.close(10)
    assert tool.steps == [0, 1, 2, 3, 4, 5, "end"]


def test_a_tool_that_cannot_be_opened_is_tried_again_with_the_next_record():
    tool, tries = Recorder(), []

    def open_tool(run_id):
        tries.append(run_id)
        if len(tries) < 3:
            raise ConnectionError("not yet")
        return tool

    outlet = Outlet(open_tool, "theirs")
    for step in range(5):
        outlet.put({}, step)

    assert outlet.close(10)
    assert tries == ["theirs"] * 3
    assert tool.steps == [2, 3, 4, "end"]
    assert (outlet.lost, outlet.reason) == (2, "ConnectionError: not yet")
