"""Runs in processes of their own, which are interrupted, killed and held up."""

import functools
import json
import multiprocessing
import os
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

pytest.importorskip("torch")

import stacks

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import child  # noqa: E402

ENTRY_POINTS = """
[rlvr.monitors]
tiny-trouble = fixture_trouble:Trouble

[rlvr.verifiers]
tiny-slow = fixture_trouble:Slow
"""
BOUND_S = 30.0
"""Long enough for a busy machine; what it bounds would otherwise last a minute or for ever."""


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Folder on ``sys.path`` of the fixture plugins' metadata, as if they were installed."""
    folder = tmp_path_factory.mktemp("endings-site")
    info = folder / "rlvr_plugin_endings-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: rlvr-plugin-endings\nVersion: 0.1.0\n"
    )
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder


@pytest.fixture(scope="session")
def forks(site):
    """The context of a fork server that has imported torch and core."""
    context = multiprocessing.get_context("forkserver")
    sys.path[:0] = [str(site)]
    context.set_forkserver_preload(["child", "transformers", "accelerate", "rlvr_core.train.run"])
    yield context
    sys.path.remove(str(site))


@dataclass
class Started:
    """A command line that goes on."""

    process: multiprocessing.process.BaseProcess
    output: Path

    @property
    def said(self):
        return self.output.read_text()

    def wait(self, bound_s=BOUND_S):
        """Wait for its end and return its exit code; -N when signal N ended it."""
        self.process.join(bound_s)
        assert self.process.exitcode is not None, f"still there after {bound_s} s: {self.said}"
        return self.process.exitcode

    def comes_to(self, mark):
        """Wait until it is held up, and say whether it is."""
        return wait_for(lambda: mark.exists() or self.process.exitcode is not None) and (
            mark.exists()
        )

    def send(self, number):
        os.kill(self.process.pid, number)


@pytest.fixture(scope="module")
def start_in(forks):
    """Return a function that starts ``rlvr ARGUMENTS``, held up as `child.hold_up` says."""
    started = []

    def begin(folder, *arguments, environment=None, hold=None, constants=None):
        output = folder / f"output-{len(started)}"
        output.touch()
        process = forks.Process(
            target=child.command_line,
            args=(
                [str(one) for one in arguments],
                str(output),
                environment or {},
                hold,
                constants or {},
            ),
        )
        process.start()
        started.append(Started(process, output))
        return started[-1]

    yield begin
    for one in started:
        if one.process.exitcode is None:
            one.process.kill()
        one.process.join(10)


@pytest.fixture
def start(start_in, tmp_path):
    """Return a function that starts ``rlvr ARGUMENTS``, with its output in the test's folder."""
    return functools.partial(start_in, tmp_path)


@pytest.fixture
def start_ranks(start):
    """Return a function that starts ``rlvr ARGUMENTS`` as two processes of one run."""

    def begin(*arguments, hold=None, constants=None):
        with socket.socket() as probe:
            probe.bind(("localhost", 0))
            port = probe.getsockname()[1]
        common = {
            "WORLD_SIZE": "2",
            "LOCAL_WORLD_SIZE": "2",
            "MASTER_ADDR": "localhost",
            "MASTER_PORT": str(port),
            "ACCELERATE_USE_CPU": "true",
        }
        return [
            start(
                *arguments,
                environment={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                hold=hold,
                constants=constants,
            )
            for rank in (0, 1)
        ]

    return begin


LETTERS = [chr(code) for code in range(ord("A"), ord("Z") + 1)]
EXACT_MATCH = {"type": "exact-match", "answer": LETTERS}


def trouble(hook, how, rank, step=2, **more):
    """Return the stack entry of a plugin that makes trouble."""
    return {"tiny-trouble": {"hook": hook, "how": how, "rank": rank, "step": step, **more}}


def stack_in(folder, model, truth=lambda n: EXACT_MATCH, dev_truth=None, rows=12, **sections):
    """Write a stack that has something to learn in every step, and return its path."""
    truths = {"train": truth, "dev": dev_truth or truth}
    of_splits = {
        split: [
            {"id": f"{split}-{n}", "prompt": f"{split} prompt {n}", "verifier": truths[split](n)}
            for n in range(rows)
        ]
        for split in stacks.SPLITS
    }
    given = {
        "rollout": {"max_completion_tokens": 1, "prompts_per_step": 4, "group_size": 8},
        "train": {"steps": 4, "learning_rate": 3e-2, "precision": "fp32", "checkpoint_every": 1},
        "evaluate": {"splits": ["dev"], "every": 1},
    }
    for section, values in sections.items():
        is_known = section in given
        given[section] = {**given[section], **values} if is_known else values
    verifiers = given.pop("verifiers", ["exact-match"])
    return stacks.write_stack(folder, model, of_splits, verifiers, **given)


@pytest.fixture
def write_stack(tmp_path, tiny_model):
    """Return `stack_in` for the test's folder."""
    return functools.partial(stack_in, tmp_path / "stack", tiny_model)


def wait_for(condition, bound_s=BOUND_S):
    """Wait until a condition holds, and say whether it does."""
    until_s = time.monotonic() + bound_s
    while time.monotonic() < until_s:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


def family(started):
    """Return the processes that a started one has started itself."""
    return psutil.Process(started.process.pid).children(recursive=True)


def living(processes):
    """Return those that have not ended."""
    return [
        each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE
    ]


def manifest(run):
    """Return the manifest of a run."""
    return json.loads((run / "manifest.json").read_text())
