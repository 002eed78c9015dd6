"""Imports point one way."""

from __future__ import annotations

from graphlib import TopologicalSorter

import pytest
from source import CORE, ROOT, imported_modules

ALLOWED = {
    "api": set(),
    "config": {"api"},
    "plugins": {"api", "config"},
    "records": {"api"},
    "rl": {"api"},
    "models": {"api"},
    "testing": {"api", "config", "plugins", "verification"},
    "scaffold": {"api", "plugins"},
    "builtin": {"api", "rl"},
    "monitors": {"api", "rl"},
    "verification": {"api", "config", "plugins"},
    "adapters": {"api", "config", "plugins", "verification", "data"},
    "data": {"api", "config", "rl"},
    "rollout": {"api", "config", "rl"},
    "evaluate": {"api", "config", "records", "verification", "data", "rollout", "rl"},
    "report": {"api", "records", "evaluate"},
    "rescore": {
        "api", "config", "plugins", "records", "verification", "evaluate", "report",
    },
    "train": {
        "api", "config", "plugins", "records", "rl", "models", "verification", "data", "rollout",
        "evaluate",
    },
    "selfcheck": {
        "api", "config", "plugins", "records", "rl", "testing", "verification", "evaluate",
        "train",
    },
    "cli": {
        "api", "config", "plugins", "records", "models", "verification", "data", "rollout",
        "evaluate", "report", "rescore", "train", "selfcheck", "monitors",
        "testing", "scaffold", "adapters",
    },
    "recipes": set(),
}  # fmt: skip
"""Part of core -> the parts that it may import."""

NOT_OURS_IN_API = {"torch", "yaml", "transformers", "accelerate", "stevedore", "jsonschema"}


def test_the_table_has_no_circle():
    assert list(TopologicalSorter(ALLOWED).static_order())


def test_the_table_names_every_part_of_core():
    parts = {path.name for path in CORE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert parts == ALLOWED.keys()


@pytest.mark.parametrize("part", sorted(ALLOWED))
def test_a_part_imports_only_what_lies_below_it(part):
    wrong = []
    for path in (CORE / part).rglob("*.py"):
        for line, name in imported_modules(path):
            package, _, rest = name.partition(".")
            other = rest.partition(".")[0]
            if package != "rlvr_core" or other in ("__version__", part):
                continue
            if other not in ALLOWED[part]:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    assert wrong == []


def test_the_contract_imports_neither_torch_nor_yaml():
    found = []
    for path in (CORE / "api").rglob("*.py"):
        text = path.read_text("utf-8")
        for line, name in imported_modules(path):
            is_for_types = text.splitlines()[line - 1].startswith("    ")
            if name.partition(".")[0] in NOT_OURS_IN_API and not is_for_types:
                found.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    assert found == []


def test_plugins_import_the_contract_and_pure_functions_only():
    wrong = []
    for path in ROOT.glob("plugins/*/src/**/*.py"):
        for line, name in imported_modules(path):
            if name.startswith("rlvr_core") and not name.startswith(
                ("rlvr_core.api.", "rlvr_core.rl.")
            ):
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    assert wrong == []
