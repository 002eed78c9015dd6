"""What can be named is documented, tested and real: hooks, error codes, verbs, stack keys."""

from __future__ import annotations

import importlib.util
import re
import sys

import pytest
from source import CORE, ROOT

from rlvr_core.api.errors import CATALOGUE
from rlvr_core.cli.main import SUB_VERBS, VERBS
from rlvr_core.config import models
from rlvr_core.plugins.stages import HOOK_ARGUMENTS

REFERENCE = ROOT / "docs" / "reference"


def _load_generator():
    sys.path.insert(0, str(ROOT / "docs"))
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["generate"] = module
    spec.loader.exec_module(module)
    return module


GENERATOR = _load_generator()
PAGES = GENERATOR.pages()


@pytest.fixture(scope="module")
def tests_text():
    """All tests but those of this folder, in one string."""
    files = [*ROOT.glob("tests/**/*.py"), *ROOT.glob("plugins/*/tests/**/*.py")]
    return "\n".join(path.read_text("utf-8") for path in files if path.parent.name != "meta")


@pytest.fixture(scope="module")
def source_text():
    """All of core but the catalogue of errors, in one string."""
    files = [path for path in CORE.rglob("*.py") if path != CORE / "api" / "errors.py"]
    return "\n".join(path.read_text("utf-8") for path in files)


def headings(name):
    return re.findall(r"^## (.+)$", (REFERENCE / name).read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_generated_page_is_what_the_generator_writes(path):
    assert path.read_text("utf-8") == PAGES[path], "run `make docs` and commit"


def test_every_hook_is_documented():
    assert headings("hooks.md") == list(HOOK_ARGUMENTS)


@pytest.mark.parametrize("hook", HOOK_ARGUMENTS)
def test_every_hook_is_tested(hook, tests_text):
    assert re.search(rf"\b{hook}\b", tests_text), f"no test names {hook}"


def test_every_error_code_is_documented():
    assert headings("error-codes.md") == list(CATALOGUE)


@pytest.mark.parametrize("code", CATALOGUE)
def test_every_error_code_is_raised_somewhere(code):
    assert GENERATOR.raising_classes()[code], f"nothing in core raises {code}"


@pytest.mark.parametrize("code", CATALOGUE)
def test_every_error_code_is_tested(code, tests_text):
    assert code in tests_text, f"no test names {code}"


def test_every_code_in_the_source_is_in_the_catalogue(source_text):
    assert set(re.findall(r"RLVR-[A-Z]\d{3}", source_text)) <= CATALOGUE.keys()


def test_every_verb_is_documented():
    verbs = [f"rlvr {verb}" for verb, (target, _) in VERBS.items() if target]
    verbs += [f"rlvr {verb} {sub}" for verb, table in SUB_VERBS.items() for sub in table]
    assert sorted(headings("cli.md")) == sorted(verbs)


@pytest.mark.parametrize(
    "model",
    [
        one
        for one in vars(models).values()
        if isinstance(one, type) and one.__module__ == models.__name__
    ],
    ids=lambda model: model.__name__,
)
def test_every_key_of_a_stack_says_what_it_means(model):
    meanings = GENERATOR.attribute_docstrings(model)
    own_name = {"name"} if model is models.PluginEntry else set()
    assert [key for key, text in meanings.items() if not text and key not in own_name] == []
