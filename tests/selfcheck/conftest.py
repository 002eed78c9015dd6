"""The plugins with mistakes, installed as a distribution, and the checks of a stack with them."""

import json
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from rlvr_core.selfcheck.checks import CHECKS  # noqa: E402
from rlvr_core.selfcheck.run import selfcheck  # noqa: E402
from rlvr_core.train.prepare import prepare  # noqa: E402

HERE = Path(__file__).parent
PLUGINS = {
    "verifiers": ["PaysTheFirst", "Moody", "Brittle", "NoCommas", "Abstains"],
    "samplers": ["DropsFirstToken", "LosesLogps", "SharedChance"],
    "advantages": [
        "LocalMean", "OffPolicyLocalMean", "PeeksAtLayout", "FirstIsBaseline", "CountsMasked",
        "WeighsByMasked", "OwnShareOnly", "UnequalSums", "LeaveOneOut", "NoBaseline", "NoSignal",
        "AloneIsNan", "DeclaresTooMuch", "ReadsEntropy", "DeclaresTooLittle", "Forgets",
        "Remembers", "LoadsHalf", "Raises",
    ],
    "monitors": ["BrokenMonitor", "LearnsByChance", "Exams", "StopsAndSlows", "Auditor"],
}  # fmt: skip

JUDGES = {"Moody", "Brittle", "NoCommas", "Abstains"}
ADJUST = {"PeeksAtLayout", "WeighsByMasked", "DeclaresTooMuch", "Forgets", "LoadsHalf"}
"""They stand beside an estimator."""


def name_of(cls):
    """Return the registered name of a fixture class: ``bad-LocalMean``."""
    return f"bad-{cls}"


@pytest.fixture(scope="session", autouse=True)
def _installed(tmp_path_factory):
    """Install the fixture plugins: metadata on the path, which workers inherit."""
    site = tmp_path_factory.mktemp("selfcheck-site")
    info = site / "rlvr_plugin_mistakes-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: rlvr-plugin-mistakes\nVersion: 0.1.0\n"
    )
    lines = []
    for family, classes in PLUGINS.items():
        lines.append(f"[rlvr.{family}]")
        lines += [f"{name_of(cls)} = fixture_bad:{cls}" for cls in classes]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    added = [str(site), str(HERE)]
    sys.path[:0] = added
    yield
    for entry in added:
        sys.path.remove(entry)


@pytest.fixture
def stack_with():
    """Return a function that gives the sections of a stack with one of the fixture plugins."""

    def sections(cls):
        [family] = [family for family, classes in PLUGINS.items() if cls in classes]
        if cls in JUDGES:
            return {"verifier": name_of(cls)}
        section = {"advantages": "advantage"}.get(family, family)
        beside = {"verifiers": ["exact-match"], "advantages": ["dr-grpo"] * (cls in ADJUST)}
        return {section: [*beside.get(family, []), name_of(cls)]}

    return sections


@pytest.fixture
def write_stack(tmp_path):
    """Return a function that writes a stack file and its data, and returns the path."""

    def write(verifier="exact-match", rows=12, **sections):
        lines = [
            json.dumps(
                {
                    "id": f"row-{number}",
                    "prompt": f"Question {number}" + " and more" * (number % 4),
                    "verifier": {"type": verifier, "answer": "a"},
                }
            )
            for number in range(rows)
        ]
        (tmp_path / "train.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
        stack = {
            "model": "a-model/that-is-never-loaded",
            "data": {"train": {"path": "train.jsonl"}},
            "verifiers": [verifier],
            "train": {"steps": 100, "learning_rate": 1e-6},
            **sections,
        }
        path = tmp_path / "stack.yaml"
        path.write_text(json.dumps(stack), "utf-8")  # JSON is YAML
        return path

    return write


@pytest.fixture
def check(write_stack):
    """Return a function that makes checks on a stack, and returns the results by name."""

    def make(names, **sections):
        chosen = [one for one in CHECKS if one.name in names]
        assert len(chosen) == len(names)
        results = selfcheck(prepare(write_stack(**sections)), chosen)
        return {result.name: result for result in results}

    return make
