"""Every code block of the README and the documentation is run, in order, page by page.

The mark above a block says more: ``<!-- lane: NAME -->`` is run by that lane of .ci/run and not
here, ``<!-- test: PATH -->`` by that test; ``<!-- slow -->`` is run by the slow tests;
``<!-- file: NAME -->`` is saved under that name. YAML without a model is a part of a stack file.
"""

from __future__ import annotations

import json
import os
import re
import tomllib

import pytest
from documents import ROOT, blocks, documents, make_reader

from rlvr_core.config.models import Stack
from rlvr_core.config.yaml_source import parse_yaml, render_yaml

PAGES = [page for page in documents() if any(blocks(page))]
SLOW_PAGES = [page for page in PAGES if any(block.mark == "slow" for block in blocks(page))]
SMALLEST = {
    "model": "smollm2",
    "data": {"train": {"path": "train.jsonl"}},
    "verifiers": ["exact-match"],
    "train": {"steps": 1, "learning_rate": 1e-5},
}
"""What a part of a stack file is completed with."""
LANGUAGES = {"bash", "python", "yaml", "toml", "json", "text"}


@pytest.fixture(scope="session")
def reader(tmp_path_factory):
    """An environment with rlvr, where a tiny model stands in the cache in place of SmolLM2.

    The commands of the pages are run as they are written; only the weights are others.
    """
    pytest.importorskip("torch")
    from rlvr_core.models.smollm2 import FOLDER
    from rlvr_core.testing.tiny_model import make_tiny_model

    folder = tmp_path_factory.mktemp("reader")
    cache = folder / "cache"
    make_tiny_model(cache / "models" / FOLDER, hidden=8, layers=1, positions=1024)
    return make_reader(folder, cache, dict(os.environ))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_blocks_of_a_page_run(page, reader, tmp_path):
    _run_page(page, reader, tmp_path, leave_out=("lane", "test", "slow"))


@pytest.mark.slow
@pytest.mark.parametrize("page", SLOW_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_blocks_of_a_page_that_trains_run(page, reader, tmp_path):
    _run_page(page, reader, tmp_path, leave_out=("lane", "test"))


def _run_page(page, reader, folder, leave_out):
    for block in blocks(page):
        print(block.place)  # noqa: T201 - pytest shows it when the block fails
        if block.mark == "file":
            (folder / block.value).write_text(block.code, "utf-8")
        if block.mark not in leave_out:
            _run(block, reader, folder)


def _run(block, reader, folder):
    assert block.language in LANGUAGES, f"{block.place}: unknown language {block.language!r}"
    if block.language == "bash":
        reader.bash(block.code, folder)
    elif block.language == "python" and block.mark != "file":
        reader.python(block.code, folder)
    elif block.language == "python":
        compile(block.code, block.place, "exec")
    elif block.language == "toml":
        tomllib.loads(block.code)
    elif block.language == "json":
        assert [json.loads(line) for line in block.code.splitlines()]
    elif block.language == "yaml":
        written = parse_yaml(block.code, block.place).data
        text = block.code if "model" in written else render_yaml({**SMALLEST, **written})
        stack = folder / f"block-{block.line}.yaml"
        stack.write_text(text, "utf-8")
        reader.bash(f"rlvr config check {stack.name}", folder)


def test_blocks_that_are_not_run_here_name_a_lane_that_runs_them():
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    lanes = set(re.findall(r"^lane_(\w+)\(\)", script, re.MULTILINE))
    left_out = [block for page in PAGES for block in blocks(page) if block.mark == "lane"]
    assert left_out
    assert {block.value for block in left_out} <= lanes
    assert {block.language for block in left_out} == {"bash"}


def test_blocks_that_are_not_run_here_name_a_test_that_runs_them():
    for block in (block for page in PAGES for block in blocks(page) if block.mark == "test"):
        assert block.page.name in (ROOT / block.value).read_text("utf-8"), block.place


def test_the_tutorial_trains_as_the_demo_does():
    tutorial = ROOT / "docs" / "tutorials" / "your-first-run.md"
    [stack] = [block.code for block in blocks(tutorial) if block.value == "stack.yaml"]
    recipe = (ROOT / "rlvr_core" / "recipes" / "smollm2-arithmetic.yaml").read_text("utf-8")
    written, meant = parse_yaml(stack, "tutorial").data, parse_yaml(recipe, "recipe").data
    assert Stack.model_validate(written) == Stack.model_validate(meant)


def test_links_between_pages_lead_somewhere():
    missing = []
    for page in documents():
        text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            name, _, anchor = target.partition("#")
            if "://" in name:
                continue
            path = page.parent / name if name else page
            if not path.exists() or (anchor and anchor not in _anchors(path)):
                missing.append(f"{page.relative_to(ROOT)}: {target}")
    assert missing == []


def _anchors(page):
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
