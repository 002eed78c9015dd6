"""Rules for every file of the repository."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import distribution

import pytest
from source import ROOT, python_files, tracked_files

MAX_LINES = 400

MACHINE_PATHS = re.compile(
    r"(?<![\w.~}\])/-])/(?:home|root|Users|work|opt|mnt|srv|scratch)/[\w.-]+"
    r"|(?<![\w.])(?<!==)(?:\d{1,3}\.){3}\d{1,3}(?![\w.])"
    r"|\bfind-links\b|--extra-index-url|--index-url",
)
"""Folders of one machine, addresses, and where one machine finds packages."""

PUBLIC_HOSTS = {
    "arxiv.org", "pypi.org", "semver.org", "github.com", "example.org", "example.com",
    "joschu.net", "pytorch.org", "www.w3.org", "www.apache.org", "huggingface.co",
    "json-schema.org", "localhost",
}  # fmt: skip
"""Hosts that a reader anywhere can look up, or is; nothing here fetches from them."""

THIS = "tests/meta/test_repository.py"


def texts():
    for path in tracked_files():
        name = str(path.relative_to(ROOT))
        if name != THIS:
            try:
                yield name, path.read_text("utf-8")
            except UnicodeDecodeError:
                continue


def test_no_module_is_longer_than_four_hundred_lines():
    too_long = {
        str(path.relative_to(ROOT)): lines
        for path in python_files()
        if "tests" not in path.parts
        and (lines := len(path.read_text("utf-8").splitlines())) > MAX_LINES
    }
    assert too_long == {}


def test_no_file_names_a_place_of_one_machine():
    found = [
        f"{name}: {match[0]}"
        for name, text in texts()
        for match in MACHINE_PATHS.finditer(text)
        if name != "LICENSE"
    ]
    assert found == []


def test_no_file_names_a_host_that_is_not_public():
    found = {
        f"{name}: {host}"
        for name, text in texts()
        for host in re.findall(r"https?://(?:[\w:]+@)?([\w.-]+)", text)
        if host.rstrip(".") not in PUBLIC_HOSTS and not host.endswith(".example")
    }
    assert found == set()


def test_no_file_holds_a_note_to_do_something_later():
    found = [
        f"{name}: {match[0]}"
        for name, text in texts()
        for match in re.finditer(r"(?:#|<!--|//)\s*(?:TODO|FIXME|XXX|HACK)\b.*", text)
    ]
    assert found == []


@pytest.mark.parametrize("name", ["rlvr-core", "rlvr-plugin-math-sympy"])
def test_every_entry_point_leads_to_something(name):
    entry_points = [
        one
        for one in distribution(name).entry_points
        if one.name == "rlvr" or one.group[:4] == "rlvr"
    ]
    assert entry_points
    for entry_point in entry_points:
        pytest.importorskip("torch")
        assert entry_point.load() is not None


def test_every_plugin_of_the_repository_is_installed_by_make_setup():
    wanted = (ROOT / "requirements" / "dev.txt").read_text("utf-8")
    for project in ROOT.glob("plugins/*/pyproject.toml"):
        folder = project.parent.relative_to(ROOT)
        assert f"-e {folder}\n" in wanted
        facts = tomllib.loads(project.read_text("utf-8"))["project"]
        assert facts["name"] == f"rlvr-plugin-{folder.name}"
        for file in ("README.md", "LICENSE", "CHANGELOG.md", "tests"):
            assert (project.parent / file).exists(), f"{folder} has no {file}"


def test_torch_is_pinned_for_setup_and_not_for_users():
    pinned = (ROOT / "requirements" / "constraints-cpu.txt").read_text("utf-8").splitlines()
    [torch] = [line for line in pinned if line.startswith("torch==")]
    assert "+" not in torch
    assert all("==" in line and "+" not in line for line in pinned if not line.startswith("#"))
