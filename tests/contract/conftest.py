"""The fixture plugins, installed as a distribution, and runs on the tiny model with them."""

import contextlib
import copy
import importlib
import json
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import stacks  # noqa: E402

from rlvr_core.train.prepare import prepare  # noqa: E402
from rlvr_core.train.run import train  # noqa: E402

torch.set_num_threads(1)  # more only get in each other's way on a model this small

HERE = Path(__file__).parent
ENTRY_POINTS = """
[rlvr.verifiers]
tiny-math-sympy = fixture_judges:MathSympy
tiny-code-docker = fixture_judges:CodeDocker
tiny-ifeval = fixture_judges:IfEval
tiny-f1-extraction = fixture_judges:F1Extraction
tiny-harmrlvr = fixture_judges:Harmrlvr
tiny-whenever = fixture_judges:Whenever
tiny-bonus = fixture_watchers:Bonus
tiny-letter-pay = fixture_watchers:LetterPay
tiny-halver = fixture_watchers:Halver

[rlvr.samplers]
tiny-oc-grpo = fixture_plugins:OcGrpo
tiny-rstg = fixture_plugins:Rstg
tiny-vigor = fixture_plugins:Vigor
tiny-dynamic-sampling = fixture_plugins:DynamicSampling
tiny-inoculation = fixture_plugins:Inoculation

[rlvr.advantages]
tiny-cue-grpo = fixture_plugins:CueGrpo
tiny-steer = fixture_plugins:Steer
tiny-second-answer = fixture_plugins:SecondAnswer

[rlvr.monitors]
tiny-governor = fixture_watchers:Governor
tiny-faulty = fixture_watchers:Faulty
tiny-canaries = fixture_watchers:Canaries
tiny-meddler = fixture_watchers:Meddler
"""


@pytest.fixture(scope="session", autouse=True)
def _installed(tmp_path_factory):
    """Install the fixture plugins: metadata on the path, which workers inherit.

    All are called ``tiny-…``: the real plugins may be installed as well.
    """
    site = tmp_path_factory.mktemp("contract-site")
    info = site / "rlvr_plugin_contract-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: rlvr-plugin-contract\nVersion: 0.1.0\n"
    )
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    added = [str(site), str(HERE)]
    sys.path[:0] = added
    yield
    for entry in added:
        sys.path.remove(entry)


@pytest.fixture
def fixture(request):
    """Return a class or function of the fixture modules by name."""

    def find(name):
        for module in ("fixture_plugins", "fixture_judges", "fixture_watchers"):
            found = getattr(importlib.import_module(module), name, None)
            if found is not None:
                return found
        raise LookupError(name)

    return find


def ifeval_row(split, number, *patterns, **metadata):
    return {
        "id": f"{split}-{number}",
        "prompt": f"{split} prompt {number}",
        "verifier": {
            "type": "tiny-ifeval",
            "instructions": [{"kind": "contains", "pattern": p} for p in patterns or ("[a-z]",)],
        },
        "metadata": metadata,
    }


@pytest.fixture
def write_stack(tmp_path, tiny_model):
    """Return a function that writes a stack file and its data, and returns the path."""

    def write(name="stack", train_rows=None, verifiers=("tiny-ifeval",), **sections):
        rows = {
            "train": train_rows or [ifeval_row("train", number) for number in range(12)],
            "dev": [ifeval_row("dev", number) for number in range(4)],
        }
        return stacks.write_stack(tmp_path / name, tiny_model, rows, list(verifiers), **sections)

    return write


@pytest.fixture
def runtimes(write_stack):
    """Return a context manager that opens the runtime of a stack."""

    @contextlib.contextmanager
    def open_one(name="stack", **sections):
        with stacks.open_runtime_of(write_stack(name, **sections)) as runtime:
            yield runtime

    return open_one


@pytest.fixture
def session_of():
    """Return a function that makes the session of a step."""
    return stacks.new_session


class Finished:
    """A run folder, read as JSON."""

    def __init__(self, outcome):
        self.outcome = outcome
        self.folder = outcome.folder

    def lines(self, name):
        return stacks.read_lines(self.folder / name)

    @property
    def manifest(self):
        return json.loads((self.folder / "manifest.json").read_text())

    def events(self, kind):
        return [event for event in self.lines("events.jsonl") if event["kind"] == kind]


@pytest.fixture
def run(write_stack, tmp_path, monkeypatch):
    """Return a function that trains a stack through `train` and returns the finished run."""
    # Outside of any work tree, so that a commit made meanwhile is no difference between two runs.
    monkeypatch.chdir(tmp_path)

    def start(name="run", resume=False, **sections):
        prepared = prepare(write_stack(name, **sections))
        return Finished(train(prepared, tmp_path / "runs" / name, resume=resume))

    return start


@pytest.fixture
def plugin_of():
    """Return a function that finds a plugin instance of a runtime by its name."""

    def find(runtime, name):
        return next(one.plugin for one in runtime.dispatcher.plugins if one.name == name)

    return find


@pytest.fixture
def row():
    """Return the function that makes a data row: ``row(split, number, *patterns, **metadata)``."""
    return ifeval_row


@pytest.fixture
def gradients_after():
    """Return a function that gives the gradient of one update, by a plain step of size 1."""
    return lambda runtime, session, groups: stacks.gradients_after(runtime, session, groups)[0]


@pytest.fixture
def logps_of():
    """Return a function that gives float64 log-probabilities of a rollout under any prompt."""

    def score(runtime, model, rollout, prompt):
        prompt_ids = list(runtime.tokenizer.encode(prompt))
        ids = list(rollout.segments[0].token_ids)
        logits = model(torch.tensor([prompt_ids + ids])).logits[0, len(prompt_ids) - 1 : -1]
        logp = (logits.double() / runtime.stack.rollout.temperature).log_softmax(-1)
        return logp.gather(-1, torch.tensor(ids)[:, None])[:, 0], logp

    return score


@pytest.fixture
def expected_gradients(logps_of):
    """Return a function that gives the float64 gradient of ``-sum c_t log pi(y_t|x)``."""

    def compute(runtime, coefficients):
        model = copy.deepcopy(runtime.policy.model).double()
        total = torch.zeros((), dtype=torch.float64)
        for rollout, by_token in coefficients:
            logp_T, _ = logps_of(runtime, model, rollout, rollout.trained_under)
            total = total - (torch.as_tensor(by_token, dtype=torch.float64) * logp_T).sum()
        total.backward()
        return {name: parameter.grad for name, parameter in model.named_parameters()}

    return compute


@pytest.fixture
def assert_same():
    """Return a function that compares two sets of gradients, one of which must not be all 0."""

    def check(found, expected, tolerance=2e-6):
        assert max(gradient.abs().max() for gradient in expected.values()) > 1e-4
        for name, gradient in expected.items():
            torch.testing.assert_close(
                found[name].double(), gradient.double(), atol=tolerance, rtol=0, msg=name
            )

    return check


@pytest.fixture
def model_inputs():
    """Return a function that records, decoded, every input the policy's model is given."""

    def spy(runtime, texts):
        def note(module, arguments, keywords):
            ids = keywords["input_ids"] if "input_ids" in keywords else arguments[0]
            texts.extend(runtime.tokenizer.decode(line.tolist()) for line in ids)

        return runtime.policy.model.model.register_forward_pre_hook(note, with_kwargs=True)

    return spy
