"""Runs in processes of their own, which are interrupted, killed and held up."""

import functools
import multiprocessing
import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("torch")

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import child  # noqa: E402
from scenes import BOUND_S, stack_in, wait_for  # noqa: E402

ENTRY_POINTS = """
[rlvr.monitors]
tiny-trouble = fixture_trouble:Trouble

[rlvr.verifiers]
tiny-slow = fixture_trouble:Slow
"""


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


@pytest.fixture
def write_stack(tmp_path, tiny_model):
    """Return `stack_in` for the test's folder."""
    return functools.partial(stack_in, tmp_path / "stack", tiny_model)
