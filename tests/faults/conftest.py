"""Whole stacks on the tiny model, with plugins that go wrong, installed as a distribution."""

import contextlib
import json
import shutil
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import pyarrow.parquet as parquet  # noqa: E402
import stacks  # noqa: E402

from rlvr_core.config.models import PluginEntry, VerificationSection  # noqa: E402
from rlvr_core.plugins.resolve import Family, resolve_plugin  # noqa: E402
from rlvr_core.train.prepare import prepare  # noqa: E402
from rlvr_core.train.run import train  # noqa: E402
from rlvr_core.verification.engine import VerifyEngine  # noqa: E402
from rlvr_core.verification.rows import RawRow  # noqa: E402

torch.set_num_threads(1)  # more only get in each other's way on a model this small

HERE = Path(__file__).parent
ENTRY_POINTS = """
[rlvr.verifiers]
odd = fixture_faults:Odd
odd-service = fixture_faults:OddService
odd-batch = fixture_faults:Miscounting
odd-shaper = fixture_hooks:Shaper
odd-scale = fixture_hooks:Scale
odd-wrapper = fixture_hooks:Wrapper

[rlvr.samplers]
odd-wrap = fixture_hooks:Wrap

[rlvr.advantages]
odd-loss = fixture_hooks:OwnLoss
odd-weights = fixture_hooks:WholeBatch

[rlvr.monitors]
odd-settings = fixture_hooks:Loose
odd-watcher = fixture_hooks:Watcher
odd-acts = fixture_hooks:Acts
"""


@pytest.fixture(scope="session", autouse=True)
def _installed(tmp_path_factory):
    """Install the plugins: metadata on the path, which workers inherit."""
    site = tmp_path_factory.mktemp("faults-site")
    info = site / "rlvr_plugin_faults-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: rlvr-plugin-faults\nVersion: 0.1.0\n"
    )
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    added = [str(site), str(HERE)]
    sys.path[:0] = added
    yield
    for entry in added:
        sys.path.remove(entry)


def data_row(number=0, split="train", does="judge", samples=None, **more):
    """Return a row for the verifier `odd`, which does something with some of its samples."""
    truth = {"type": "odd", "does": does}
    if samples is not None:
        truth["samples"] = samples
    row = {"id": f"{split}-{number}", "prompt": f"{split} prompt {number}", "verifier": truth}
    return {**row, **more}


@pytest.fixture
def row():
    """Return the function that makes a data row: ``row(number, split, does, samples, **keys)``."""
    return data_row


@contextlib.contextmanager
def open_judge(plugin, config=None, **settings):
    """Open an engine over one plugin; yield a function that judges ``(does, completion)`` pairs."""
    ref = resolve_plugin(Family.VERIFIERS, plugin, config or {})
    entry = PluginEntry.model_validate({"name": plugin, "plugin": plugin, "config": {}})
    defaults = {"workers": 1, "timeout_s": 20.0, "max_error_rate": 1.0}
    with VerifyEngine([(ref, entry)], VerificationSection(**{**defaults, **settings})) as engine:

        def judge(*rows):
            return engine.judge(
                plugin,
                [
                    RawRow(id=f"step 1/r/{n}", completion=text, ground_truth={"does": does})
                    for n, (does, text) in enumerate(rows)
                ],
            )

        judge.health = lambda: engine.health()[plugin]
        yield judge


def write_faulty_stack(folder, model, train_rows=None, dev_rows=None, verifiers=("odd",), **more):
    """Write a stack over the verifier `odd`, with 8 training rows, and return its path."""
    rows = {
        "train": train_rows or [data_row(number) for number in range(8)],
        "dev": dev_rows or [data_row(number, "dev") for number in range(4)],
    }
    return stacks.write_stack(folder, model, rows, list(verifiers), **more)


@pytest.fixture
def write_stack(tmp_path, tiny_model):
    """Return a function that writes a stack file and its data, and returns the path."""

    def write(name="stack", model=None, **sections):
        return write_faulty_stack(tmp_path / name, model or tiny_model, **sections)

    return write


class Finished:
    """A run folder, read as JSON."""

    def __init__(self, folder, outcome):
        self.folder = folder
        self.outcome = outcome

    @property
    def manifest(self):
        return json.loads((self.folder / "manifest.json").read_text())

    @property
    def metrics(self):
        return stacks.read_lines(self.folder / "metrics.jsonl")

    @property
    def evals(self):
        return stacks.read_lines(self.folder / "evals.jsonl")

    def reasons(self, kind="warn"):
        events = stacks.read_lines(self.folder / "events.jsonl")
        return [event["reason"] for event in events if event["kind"] == kind]

    def rollouts(self, step=1):
        return parquet.read_table(self.folder / f"rollouts/{step:06d}.parquet").to_pylist()

    def weights(self):
        from safetensors.torch import load_file

        newest = max((self.folder / "checkpoints").iterdir())
        return load_file(newest / "model.safetensors")


@pytest.fixture
def run(write_stack, tmp_path, monkeypatch):
    """Return a function that trains a stack and returns the finished run.

    Its attribute ``read`` reads what a run left that raised.
    """
    # Outside of any work tree, so that a commit made meanwhile is no difference between two runs.
    monkeypatch.chdir(tmp_path)

    def start(name="run", overrides=(), **sections):
        prepared = prepare(write_stack(name, **sections), overrides)
        folder = tmp_path / "runs" / name
        return Finished(folder, train(prepared, folder))

    start.read = lambda name="run": Finished(tmp_path / "runs" / name, None)
    return start


@pytest.fixture
def changed_model(tmp_path, tiny_model):
    """Return a function that copies the tiny model with changes, and returns the folder."""

    def change(name="changed", template=None, config=None, weights=None, generation=None):
        folder = tmp_path / name
        shutil.copytree(tiny_model, folder)
        if template is not None:
            # An empty template is none.
            (folder / "chat_template.jinja").unlink()
            if template:
                (folder / "chat_template.jinja").write_text(template)
        for file, values in (("config.json", config), ("generation_config.json", generation)):
            if values:
                path = folder / file
                path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
        if weights:
            from safetensors.torch import load_file, save_file

            path = folder / "model.safetensors"
            tensors = load_file(path)
            weights(tensors)
            save_file(tensors, path, metadata={"format": "pt"})
        return folder

    return change
