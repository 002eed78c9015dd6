"""A real stack on the tiny model, for tests of the step."""

import contextlib
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for the modules that tests of this folder share

torch = pytest.importorskip("torch")

import fixture_resume  # noqa: E402
import stacks  # noqa: E402
from forked_runs import Forker  # noqa: E402
from phases import Phases  # noqa: E402

from rlvr_core.train.run import train  # noqa: E402

torch.set_num_threads(1)  # more only get in each other's way on a model this small

ANSWER_A = {"type": "exact-match", "answer": "a"}
PROMPTS = ["one", "a longer prompt", "three", "and the fourth of them"]


@pytest.fixture(scope="session", autouse=True)
def fixture_path(tmp_path_factory):
    """Install the fixture plugins: metadata on the path, which workers inherit; return the path."""
    site = tmp_path_factory.mktemp("train-site")
    info = site / "rlvr_plugin_resume-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: rlvr-plugin-resume\nVersion: 0.1.0\n"
    )
    (info / "entry_points.txt").write_text(fixture_resume.ENTRY_POINTS)
    sys.path.insert(0, str(site))
    yield [str(site), str(HERE)]
    sys.path.remove(str(site))


@pytest.fixture(scope="session")
def forker(fixture_path):
    """A process that forks runs, so that torch is imported once for all of them."""
    forker = Forker(fixture_path)
    yield forker
    forker.close()


@pytest.fixture
def break_off():
    """Return a function that trains, and breaks off where a phase begins for the n-th time."""

    def run_until(prepared, run, phase, times=1, **options):
        seen = 0

        def interrupt(text):
            nonlocal seen
            seen += text.startswith(phase)
            if seen == times:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            train(prepared, run, place=Phases(interrupt), **options)

    return run_until


@pytest.fixture
def write_stack(tmp_path, tiny_model):
    """Return a function that writes a stack file and its data, and returns the path."""

    def write(name="stack", rows=12, verifiers=("exact-match",), judged_by=ANSWER_A, **sections):
        of_splits = {
            split: [
                {
                    "id": f"{split}-{number}",
                    "prompt": PROMPTS[number % 4] + f" {split} {number}",
                    "verifier": dict(judged_by),
                }
                for number in range(rows)
            ]
            for split in stacks.SPLITS
        }
        return stacks.write_stack(
            tmp_path / name, tiny_model, of_splits, list(verifiers), **sections
        )

    return write


@pytest.fixture
def runtimes(write_stack):
    """Return a context manager that opens the runtime of a stack."""

    @contextlib.contextmanager
    def open_one(name="stack", overrides=(), **sections):
        with stacks.open_runtime_of(write_stack(name, **sections), overrides) as runtime:
            yield runtime

    return open_one


@pytest.fixture
def session_of():
    """Return a function that makes the session of a step."""
    return stacks.new_session


@pytest.fixture
def make_groups():
    """Return a function that makes groups of made-up rollouts with given rewards."""
    return stacks.made_up_groups
