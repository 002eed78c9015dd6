"""New projects pass their checks at once, overwrite nothing, and have names that can be used."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from rlvr_core.api import StackError
from rlvr_core.scaffold.make import FAMILIES, make_project, rendered

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The interpreter of an environment in which one new project of each family is installed."""
    folder = tmp_path_factory.mktemp("scaffold")
    venv.create(folder / "venv", with_pip=False)
    interpreter = folder / "venv" / "bin" / "python"
    own = sysconfig.get_path("purelib", vars={"base": str(folder / "venv")})
    # A .pth file is read for its own lines only, so those of the tests' editable installs go along.
    paths = [path for path in sys.path if path and Path(path).is_dir()]
    Path(own, "tests.pth").write_text("\n".join(dict.fromkeys([str(ROOT), *paths])))
    made = [str(make_project(f"new-{family}", family, folder / family)[0]) for family in FAMILIES]
    pip = [sys.executable, "-m", "pip", "--python", str(interpreter), "install", "--quiet"]
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    run([*pip, *options, *made], folder)
    return interpreter


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("family", FAMILIES)
def test_a_new_project_passes_its_checks_at_once(family, python, tmp_path):
    start = "from rlvr_core.cli.main import main; main()"
    command = [str(python), "-c", start, "plugins", "check", f"new-{family}", "--json"]
    report = json.loads(run(command, tmp_path))

    assert report["passed"]
    assert report["counts"]["failed"] == report["counts"]["expected"] == 0
    assert report["counts"]["passed"] >= {"verifier": 36}.get(family, 7)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_the_own_tests_of_a_new_project_pass(family, python):
    folder = python.parents[2] / family
    said = run([str(python), "-m", "pytest", "-q"], folder)
    assert "checks of plugins" in said


@pytest.mark.parametrize("family", FAMILIES)
def test_a_new_project_is_clean(family, tmp_path):
    folder, _ = make_project("some-thing-2", family, tmp_path / "made")
    for command in (["check"], ["format", "--check"]):
        options = ["--line-length", "100", "--isolated"]
        run([sys.executable, "-m", "ruff", *command, *options, "."], folder)


@pytest.mark.parametrize(
    "name", ["", "Foo", "foo_bar", "-foo", "foo-", "a--b", "2x", "a" * 41, "../x"]
)
def test_a_name_that_cannot_be_one_is_refused(name, tmp_path):
    with pytest.raises(StackError, match="cannot be the name of a plugin"):
        make_project(name, "verifier", tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_a_name_that_is_taken_is_refused(tmp_path):
    with pytest.raises(StackError, match="taken by rlvr-core"):
        make_project("exact-match", "verifier", tmp_path / "made")


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "README.md").write_text("mine")

    with pytest.raises(StackError, match="is there already"):
        make_project("foo", "verifier", tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_project_names_its_plugin_and_no_other_template(family):
    files = rendered("some-thing", family)

    assert "src/rlvr_plugin_some_thing/plugin.py" in files
    assert ("golden.jsonl" in files) is (family == "verifier")
    assert "class SomeThing(" in files["src/rlvr_plugin_some_thing/plugin.py"]
    assert not [
        path for path, text in files.items() if "{{" in text or "{%" in text or path.endswith(".j2")
    ]


def test_a_folder_that_cannot_be_made_is_said_with_the_way_out(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StackError, match="cannot be written") as caught:
        make_project("some-thing", "verifier", tmp_path / "file" / "made")
    assert caught.value.code == "RLVR-S106"
    assert "--out" in caught.value.fix
