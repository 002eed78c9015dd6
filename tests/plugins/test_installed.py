"""Third parties' plugins, built as wheels and installed by pip into an environment of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Environment

WriteStack = Callable[..., Path]


def test_list_shows_every_plugin_and_imports_none(environment: Environment) -> None:
    done = environment.rlvr("plugins", "list", "--json")

    assert done.returncode == 0, done.stderr
    listed = {(one["name"], one["distribution"]): one for one in json.loads(done.stdout)}
    assert listed[("fixture-good", "rlvr-fixture-good")]["api"] == "1.0"
    assert listed[("fixture-wrong-api", "rlvr-fixture-wrong-api")]["api"] == "2.0"
    assert listed[("fixture-good", "rlvr-fixture-good")]["duplicate"]
    assert listed[("Fixture_Good", "rlvr-fixture-duplicate")]["duplicate"]
    assert not listed[("fixture-nan", "rlvr-fixture-nan")]["duplicate"]
    assert ("grpo", "rlvr-core") in listed
    assert environment.imported() == []


def test_doctor_names_what_is_wrong_and_imports_nothing(environment: Environment) -> None:
    done = environment.rlvr("plugins", "doctor", "--json")

    assert done.returncode == 1, done.stderr
    problems = {one["about"]: one["message"] for one in json.loads(done.stdout)["problems"]}
    assert (
        "rlvr-fixture-absent>=1.0, which is not installed"
        in (problems["rlvr-fixture-missing-dependency 0.1.0"])
    )
    assert "registered 2 times" in problems["Fixture_Good"]
    assert "rlvr-fixture-good 0.1.0" not in problems
    assert environment.imported() == []


@pytest.mark.slow
def test_doctor_tries_each_import_when_told_to(environment: Environment) -> None:
    done = environment.rlvr("plugins", "doctor", "--load")

    assert done.returncode == 1
    assert "does not like to be imported" in done.stdout
    assert "speaks plugin API 2.0" in done.stdout
    assert "there is no hook 'rlvr_verfy'; did you mean 'rlvr_verify'?" in done.stdout
    assert "rlvr_fixture_good" in environment.imported()


def test_show_prints_metadata_without_importing(environment: Environment) -> None:
    done = environment.rlvr("plugins", "show", "Fixture_NaN")

    assert done.returncode == 0, done.stderr
    assert "https://example.org/rlvr-fixture-nan/issues" in done.stdout
    assert environment.imported() == []


def test_show_prints_hooks_and_settings_when_it_may_load(environment: Environment) -> None:
    done = environment.rlvr("plugins", "show", "fixture-good", "--load", "--json")

    facts = {one["distribution"]: one for one in json.loads(done.stdout)}
    assert facts["rlvr-fixture-good"]["hooks"] == ["rlvr_verify"]
    assert facts["rlvr-fixture-good"]["config"]["properties"]["fold_case"]["default"] is False


def test_a_third_partys_plugin_works_like_ours(
    environment: Environment, write_stack: WriteStack
) -> None:
    qualified = {"fixture-good": {"plugin": "rlvr-fixture-good/fixture-good", "fold_case": True}}

    done = environment.rlvr("config", "check", str(write_stack([qualified, "exact-match"])))

    assert done.returncode == 0, done.stderr
    assert environment.imported() == ["rlvr_fixture_good"]


CASES = {
    "fixture-import-error": (3, "RLVR-P102", "does not like to be imported", "pip install"),
    "fixture-missing-dependency": (3, "RLVR-P102", "'rlvr_fixture_absent'", "pip install"),
    "fixture-wrong-api": (3, "RLVR-P103", "API 2.0, this core 1.0", "--upgrade rlvr-core"),
    "fixture-misspelt-hook": (3, "RLVR-P104", "did you mean 'rlvr_verify'", "upgrade"),
    "fixture-good": (3, "RLVR-P101", "rlvr-fixture-duplicate 0.1.0", "pip uninstall"),
    "fixture-goood": (2, "RLVR-S103", "did you mean 'fixture-good'", "rlvr plugins list"),
}


@pytest.mark.parametrize("plugin", CASES)
def test_a_broken_plugin_named_in_a_stack_is_blamed_with_the_way_out(
    environment: Environment, write_stack: WriteStack, plugin: str
) -> None:
    exit_code, code, said, fix = CASES[plugin]

    done = environment.rlvr("config", "check", str(write_stack([plugin])))

    assert done.returncode == exit_code, done.stderr
    assert code in done.stderr
    assert said in done.stderr
    assert fix in done.stderr
    assert "stack.yaml:9:3" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_dependency_is_told_from_a_broken_plugin(
    environment: Environment, write_stack: WriteStack
) -> None:
    script = """
import sys
from rlvr_core.api.errors import PluginDependencyError, PluginError
from rlvr_core.config.load import load_stack
from rlvr_core.plugins.resolve import resolve_stack
try:
    resolve_stack(load_stack(sys.argv[1], [f"verifiers=[{sys.argv[2]}]"]))
except PluginError as error:
    print(type(error).__name__, error.report)
"""
    path = str(write_stack())

    missing = environment.run("-c", script, path, "fixture-missing-dependency")
    broken = environment.run("-c", script, path, "fixture-import-error")

    assert missing.stdout.split() == [
        "PluginDependencyError",
        "https://example.org/rlvr-fixture-missing-dependency/issues",
    ], missing.stderr
    assert broken.stdout.split()[0] == "PluginError", broken.stderr


def test_all_broken_plugins_are_named_in_one_error(
    environment: Environment, write_stack: WriteStack
) -> None:
    broken = ["fixture-import-error", "fixture-wrong-api", "fixture-misspelt-hook"]

    done = environment.rlvr("config", "check", str(write_stack(broken)), "--json")

    error = json.loads(done.stdout)["error"]
    for name in broken:
        assert name in error["message"]


def test_debug_shows_the_traceback_of_the_plugin(
    environment: Environment, write_stack: WriteStack
) -> None:
    done = environment.rlvr(
        "config", "check", str(write_stack(["fixture-import-error"])), "--debug"
    )

    assert "rlvr_fixture_import_error.py" in done.stderr


def test_stevedore_writes_no_cache_of_its_own(
    environment: Environment, write_stack: WriteStack, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"

    stack = str(write_stack(["fixture-wrong-api"]))
    done = environment.rlvr("config", "check", stack, XDG_CACHE_HOME=str(cache))

    assert "RLVR-P103" in done.stderr

    assert not (cache / "python-entrypoints").exists()


@pytest.mark.parametrize(
    ("plugin", "failure"),
    [
        ("fixture-hangs", "verifier_timeout"),
        ("fixture-kills-its-process", "verifier_crash"),
        ("fixture-wrong-length", "contract_violation"),
        ("fixture-nan", "contract_violation"),
        ("fixture-none", "contract_violation"),
    ],
)
def test_a_verifier_that_breaks_is_an_error_of_the_row_and_names_its_distribution(
    environment: Environment, plugin: str, failure: str
) -> None:
    script = """
import json, sys
import rlvr_core
if __name__ == "__main__":
    truth = {"answer": "1"}
    rows = [{"completion": text, "ground_truth": truth} for text in ("hang kill", "1")]
    verdicts = rlvr_core.verify(sys.argv[1], rows, workers=1, timeout_s=0.5)
    print(json.dumps([verdict.to_json() for verdict in verdicts]))
"""
    path = environment.import_log.parent / "judge.py"
    path.write_text(script)

    done = environment.run(str(path), plugin)

    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)
    assert (first["status"], first["failure"], first["score"]) == ("error", failure, None)
    assert first["version"].startswith("0.1.0+")
    if plugin in ("fixture-hangs", "fixture-kills-its-process"):
        assert second["status"] == "passed"
