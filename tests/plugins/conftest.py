"""An environment of the tests' own, with every fixture plugin built as a wheel and installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import uuid
import venv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

PROJECTS = Path(__file__).parents[1] / "fixtures" / "plugins"
REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment, and what was imported in it."""

    python: Path
    import_log: Path

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run Python code or a module in it; the log of imports starts empty."""
        self.import_log.write_text("")
        variables = {"RLVR_FIXTURE_IMPORT_LOG": str(self.import_log), **variables}
        return subprocess.run(
            [str(self.python), *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=self.import_log.parent,
            env={**os.environ, "PYTHONPATH": "", **variables},
        )

    def rlvr(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the command line in it."""
        start = "from rlvr_core.cli.main import main; main()"
        return self.run("-c", start, *arguments, **variables)

    def imported(self) -> list[str]:
        """Return the fixture modules that the last run imported."""
        return sorted(set(self.import_log.read_text().split()))


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet"]
    projects = sorted(str(path.parent) for path in PROJECTS.glob("*/pyproject.toml"))
    wheels = folder / "wheels"
    build = ["wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", str(wheels), *projects]
    _run([*pip, *build])
    built = sorted(str(path) for path in wheels.glob("*.whl"))
    assert len(built) == len(projects)
    _run([*pip, "--python", str(python), "install", "--no-deps", "--no-index", *built])
    _see_what_we_see(folder / "venv")
    return Environment(python, folder / "imports.log")


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def _see_what_we_see(folder: Path) -> None:
    """Let the environment import core and its dependencies from the environment of the tests."""
    own = sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    standard = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    paths = [str(REPOSITORY), *(path for path in sys.path if path and Path(path).is_dir())]
    lines = [path for path in dict.fromkeys(paths) if path not in standard]
    (Path(own) / "tests_of_core.pth").write_text("\n".join(lines))


@dataclass(frozen=True, slots=True)
class Made:
    """A distribution that a test made on its own path."""

    folder: Path
    module: str


MakeDistribution = Callable[..., Made]


@pytest.fixture
def make_distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeDistribution:
    """Return a function that puts a distribution with one module on ``sys.path``."""

    def make(
        source: str,
        name: str = "rlvr-plugin-made",
        version: str = "0.1.0",
        plugins: Mapping[str, str] | None = None,
        group: str = "rlvr.verifiers",
        metadata: str = "",
    ) -> Made:
        module = f"made_{uuid.uuid4().hex}"
        folder = tmp_path / module
        info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (folder / f"{module}.py").write_text(source)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{metadata}"
        )
        entries = {"made": "Made"} if plugins is None else plugins
        lines = [f"{key} = {module}:{value}" for key, value in entries.items()]
        (info / "entry_points.txt").write_text(f"[{group}]\n" + "\n".join(lines) + "\n")
        monkeypatch.syspath_prepend(str(folder))
        return Made(folder, module)

    return make


@pytest.fixture
def write_stack(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a small stack with the given plugin lists."""

    def write(verifiers: Sequence[object] = ("exact-match",), **sections: object) -> Path:
        stack = {
            "model": "smollm2",
            "data": {"train": {"path": "train.jsonl"}},
            "verifiers": list(verifiers),
            "train": {"steps": 2, "learning_rate": 0.001},
            **sections,
        }
        path = tmp_path / "stack.yaml"
        # JSON is YAML.
        path.write_text(json.dumps(stack, indent=1))
        return path

    return write
