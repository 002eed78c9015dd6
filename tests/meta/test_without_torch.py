"""Core imports, and its verbs that do not train run, where torch and its companions are absent."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

HEAVY = ("torch", "transformers", "accelerate", "vllm", "gguf", "safetensors", "datasets")

BLOCKED = f"""
import sys
from importlib.abc import MetaPathFinder

HEAVY = {HEAVY!r}

class Blocker(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HEAVY:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

# importlib.util.find_spec must say that they are absent, too.
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in HEAVY else real(name, package)
sys.meta_path.insert(0, Blocker())
"""


def run_code(code, folder, *arguments):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def rlvr(tmp_path):
    """Return a function that runs the command line where torch cannot be imported."""

    def run(*arguments):
        code = BLOCKED + "from rlvr_core.cli.main import main; main()"
        return run_code(code, tmp_path, *arguments)

    return run


@pytest.mark.parametrize("module", ["rlvr_core", "rlvr_core.api", "rlvr_core.api.hookspecs"])
def test_importing_core_imports_nothing_heavy(module, tmp_path):
    code = f"import sys, {module}; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = run_code(code, tmp_path)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["plugins", "list"]])
def test_the_command_line_imports_nothing_heavy_to_show_what_there_is(arguments, tmp_path):
    code = (
        "import sys\nfrom rlvr_core.cli.main import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit:\n    pass\n"
        f"print(sorted({{*{HEAVY!r}, 'yaml', 'jsonschema'}} & set(sys.modules)))"
    )
    done = run_code(code, tmp_path)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


@pytest.mark.slow
def test_verbs_that_do_not_train_run_without_torch(rlvr, tmp_path):
    (tmp_path / "rows.jsonl").write_text(
        '{"completion": "4", "ground_truth": {"answer": "4"}, "expected": 1}\n'
    )
    commands = [
        ("plugins", "list"),
        ("plugins", "doctor"),
        ("plugins", "show", "exact-match", "--load"),
        ("verify", "exact-match", "rows.jsonl", "--json"),
        ("demo", "--dry-run", "--out", "demo"),
        ("config", "check", "demo/stack.yaml"),
        ("data", "check", "demo/stack.yaml"),
    ]
    for command in commands:
        done = rlvr(*command)
        assert done.returncode == 0, (command, done.stdout, done.stderr)


def test_training_without_torch_says_what_to_install(rlvr, tmp_path):
    assert rlvr("data", "make", "arithmetic", "--out", "data").returncode == 0
    assert rlvr("config", "copy", "smollm2-arithmetic", "stack.yaml").returncode == 0
    done = rlvr("train", "stack.yaml")
    assert done.returncode == 4
    assert "RLVR-E101" in done.stderr
    assert 'pip install "rlvr-core[train]"' in done.stderr
