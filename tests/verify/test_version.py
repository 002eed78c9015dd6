"""The version on a verdict changes with what may change the verdict, and with nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from rlvr_core.api.plugin import Family
from rlvr_core.plugins.ref import PluginRef
from rlvr_core.plugins.resolve import resolve_plugin
from rlvr_core.verification import version as version_module
from rlvr_core.verification.version import dependency_versions, stamped_version

JUDGE = """
from rlvr_core.api import RowVerifier, Strict

class Judge(RowVerifier):
    api_version = "1.0"
    class GroundTruth(Strict):
        answer: str
    class Config(Strict):
        tolerance: float = 0.5
        kinds: frozenset[str] = frozenset("abcdefgh")
        words: dict[str, int] = {}
    def verify_row(self, row):
        return self.judge(1.0)
"""


def install(site: Path, name: str, version: str = "1.0", *lines: str, entry_points: str = ""):
    """Put a distribution's metadata into a folder; an older version of it is replaced."""
    for old in site.glob(f"{name.replace('-', '_')}-*.dist-info"):
        shutil.rmtree(old)
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    body = "\n".join(["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *lines])
    (info / "METADATA").write_text(body + "\n")
    if entry_points:
        (info / "entry_points.txt").write_text(entry_points)


def make(site: Path, package: str) -> Path:
    """Install a judge that is a package of two modules and a word list; return its folder."""
    folder = site / package
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "judge.py").write_text(JUDGE)
    (folder / "inner" / "words.json").write_text("[]")
    install(site, "aa-leaf")
    install(site, "aa-branch", "1.0", "Requires-Dist: aa-leaf")
    install(
        site,
        "rlvr-plugin-made-judge",
        "0.3.0",
        "Requires-Dist: aa-branch>=1",
        "Requires-Dist: aa-absent; python_version < '3'",
        "Requires-Dist: aa-optional; extra == 'fast'",
        entry_points=f"[rlvr.verifiers]\nmade-judge = {package}.judge:Judge\n",
    )
    return folder


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.fixture
def folder(site):
    return make(site, f"made_{uuid.uuid4().hex}")


def stamped(**config: object) -> str:
    return stamped_version(resolve_plugin(Family.VERIFIERS, "made-judge", config))


def test_it_begins_with_the_version_of_the_distribution(folder):
    release, _, digits = stamped().partition("+")

    assert release == "0.3.0"
    assert len(digits) == 12
    assert stamped() == stamped()


@pytest.mark.parametrize("file", ["judge.py", "__init__.py", "inner/words.json"])
def test_another_source_or_data_file_is_another_version(folder, file):
    before = stamped()
    (folder / file).write_text((folder / file).read_text() + "\n")
    changed = stamped()
    (folder / "inner" / "more.txt").write_text("")

    assert len({before, changed, stamped()}) == 3


def test_other_settings_are_another_version_and_defaults_written_out_are_not(folder):
    assert stamped(tolerance=0.5) == stamped()
    assert stamped(words={"a": 1, "b": 2}) == stamped(words={"b": 2, "a": 1})
    assert len({stamped(), stamped(tolerance=0.25), stamped(words={"a": 1})}) == 3


def test_another_version_of_what_it_needs_is_another_version_two_steps_away_too(site, folder):
    before = stamped()
    install(site, "aa-branch", "1.1", "Requires-Dist: aa-leaf")
    nearer = stamped()
    install(site, "aa-leaf", "2.0")

    assert len({before, nearer, stamped()}) == 3
    assert dependency_versions("rlvr-plugin-made-judge") == {"aa-branch": "1.1", "aa-leaf": "2.0"}


def test_what_it_does_not_need_does_not_count(site, folder):
    before = stamped()
    install(site, "aa-unrelated", "3.0")
    install(site, "aa-optional", "3.0")
    install(site, "aa-absent", "3.0")

    assert stamped() == before


def test_extras_that_are_asked_for_circles_and_what_is_missing_are_followed(site):
    install(site, "aa-top", "1", "Requires-Dist: aa-middle[fast]")
    install(
        site,
        "aa-middle",
        "2",
        "Requires-Dist: aa-quick; extra == 'fast'",
        "Requires-Dist: aa-slow; extra == 'slow'",
        "Requires-Dist: aa-top",
        "Requires-Dist: aa-missing",
    )
    install(site, "aa-quick", "3")

    assert dependency_versions("aa-top") == {"aa-middle": "2", "aa-quick": "3", "aa-missing": ""}


def test_core_counts_by_its_version_alone(site):
    install(site, "aa-plugin", "1", "Requires-Dist: rlvr-core")

    assert list(dependency_versions("aa-plugin")) == ["rlvr-core"]


def test_the_api_python_and_the_contract_count(folder, monkeypatch, tmp_path):
    found = {stamped()}
    with monkeypatch.context() as patch:
        patch.setattr(version_module, "API_VERSION", "1.7")
        found.add(stamped())
    with monkeypatch.context() as patch:
        patch.setattr("platform.python_version_tuple", lambda: ("3", "99", "0"))
        found.add(stamped())
    with monkeypatch.context() as patch:
        patch.setattr(
            "platform.python_version_tuple", lambda: (*map(str, sys.version_info[:2]), "99")
        )
        found.add(stamped())
    copied = tmp_path / "api"
    shutil.copytree(Path(sys.modules["rlvr_core.api"].__path__[0]), copied)
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["rlvr_core.api"], "__path__", [str(copied)])
        found.add(stamped())
        (copied / "text.py").write_text("other rules of reading")
        found.add(stamped())

    assert len(found) == 4, "a patch release of Python and another place change nothing"


def test_compiled_files_and_hidden_ones_do_not_count(folder):
    before = stamped()
    (folder / "__pycache__").mkdir(exist_ok=True)
    (folder / "__pycache__" / "judge.cpython-399.pyc").write_bytes(b"x")
    (folder / "judge.pyc").write_bytes(b"x")
    (folder / ".judge.py.swp").write_bytes(b"x")

    assert stamped() == before


def test_neither_the_place_nor_the_hash_seed_counts(tmp_path):
    package = f"made_{uuid.uuid4().hex}"
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from rlvr_core.api.plugin import Family\n"
        "from rlvr_core.plugins.resolve import resolve_plugin\n"
        "from rlvr_core.verification.version import stamped_version\n"
        "print(stamped_version(resolve_plugin(Family.VERIFIERS, 'made-judge', {})))\n"
    )
    printed = set()
    for number, place in enumerate(("here", "there/and/deeper")):
        make(tmp_path / place, package)
        printed.add(
            subprocess.run(
                [sys.executable, "-c", code, str(tmp_path / place)],
                env={**os.environ, "PYTHONHASHSEED": str(number)},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )

    assert len(printed) == 1
    assert printed.pop().startswith("0.3.0+")


def reference(value: str, **fields) -> PluginRef:
    import_module(value.partition(":")[0])
    return PluginRef(
        family=Family.VERIFIERS,
        plugin="p",
        name="p",
        value=value,
        distribution="aa-nothing",
        version="1",
        config={},
        **fields,
    )


def test_of_a_namespace_only_the_own_package_counts(site):
    space = f"space_{uuid.uuid4().hex}"
    for name in ("mine", "other"):
        (site / space / name).mkdir(parents=True)
        (site / space / name / "__init__.py").write_text(JUDGE)
    ref = reference(f"{space}.mine:Judge")
    before = stamped_version(ref)
    (site / space / "other" / "__init__.py").write_text("# changed")
    same = stamped_version(ref)
    (site / space / "mine" / "__init__.py").write_text(JUDGE + "# changed")

    assert before == same != stamped_version(ref)


def test_a_single_module_counts_without_its_neighbours(site):
    name = f"single_{uuid.uuid4().hex}"
    (site / f"{name}.py").write_text(JUDGE)
    (site / "neighbour.py").write_text("")
    ref = reference(f"{name}:Judge")
    before = stamped_version(ref)
    (site / "neighbour.py").write_text("# changed")
    same = stamped_version(ref)
    (site / f"{name}.py").write_text(JUDGE + "# changed")

    assert before == same != stamped_version(ref)


def test_the_instance_name_and_the_address_for_reports_do_not_count():
    ref = reference("rlvr_core.builtin.exact_match:ExactMatch")

    assert stamped_version(ref) == stamped_version(
        replace(ref, name="x", report_url="https://example.org/issues")
    )


def test_the_version_of_one_that_asks_others_has_their_versions_in_it(folder):
    def together() -> str:
        config = {"of": ["exact-match", {"made-judge": {"tolerance": 0.1}}], "rule": "all"}
        return stamped_version(resolve_plugin(Family.VERIFIERS, "combine", config))

    before = together()
    (folder / "judge.py").write_text(JUDGE + "\n")

    assert before != together()
