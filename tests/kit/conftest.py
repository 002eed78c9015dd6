"""The fixture verifiers, installed as distributions: metadata on the path that workers inherit."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCE = (HERE / "fixture_bad_verifiers.py").read_text("utf-8")
NUMBERS = sorted(re.findall(r"^(?:class )?([RC]\d\d)\b", SOURCE, re.MULTILINE))

PAGE = """# A fixture

| key | default | meaning |
|---|---|---|
| `marker` | `Answer:` | what the line begins with |

Failures: `no_answer`, `wrong_answer`, `malformed`.

## Known limits

Many.

## Licence

Apache-2.0.
"""
METADATA = """Metadata-Version: 2.4
Name: {name}
Version: 0.1.0
{licence}Requires-Python: >=3.11
Requires-Dist: rlvr-core>=0.1,<1

{page}"""


def golden(completion, answer, expected, **more):
    return {"completion": completion, "ground_truth": {"answer": answer}, "expected": expected,
            **more}  # fmt: skip


CITIES = ["Paris", "Rome", "Oslo", "Lima", "Quito"]
GOLDEN = [
    *(golden(f"Answer: {city}", city, 1) for city in CITIES),
    golden("It is old.\nAnswer: Rom\nAnswer: Rome", "Rome", 1),
    *(golden(f"Answer: {city.lower()}", city, 0, near_miss=True) for city in CITIES[:3]),
    golden("Answer: Rome", "Paris", 0),
    golden("Paris", "Paris", 0),
    golden("Answer: Oslo\nAnswer: Lima", "Oslo", 0),
]
NAMES = [["Ada", "Bob"], ["Cy", "Di"], ["Eve", "Flo"], ["Gus", "Hal"], ["Ida", "Jo"]]
GOLDEN_NAMES = [
    {"completion": json.dumps(claimed), "ground_truth": {"names": names}, "expected": expected,
     "near_miss": not expected}
    for names in NAMES
    for claimed, expected in ((names, 1), (names[:1], 0))
]  # fmt: skip
ADD = "```python\ndef add(a, b):\n    return a + b\n```"
GOLDEN_CODE = [
    {"completion": f"{ADD}\n{number}" if expected else f"{number}", "expected": expected,
     "ground_truth": {"tests": f"assert add(0, {number}) == {number}"}, "near_miss": not expected}
    for number in range(5)
    for expected in (1, 0)
]  # fmt: skip
BETTER = [*GOLDEN, {"id": "better", "completion": "Answer: Pari", "better_than": "plain",
                    "ground_truth": {"answer": "Paris"}},
          {**golden("Answer: P", "Paris", 0), "id": "plain"}]  # fmt: skip

CASES = {"C26": BETTER, "C54": GOLDEN_CODE, "C56": GOLDEN_NAMES}
"""Golden cases of those that need others."""
SETTINGS = {
    "C25": 'invariances = ["surrounding-whitespace"]',
    "C54": 'capabilities = ["code"]',
    "C55": 'capabilities = ["constraints"]',
    "C56": 'capabilities = ["extraction"]',
    "R63": "rows_per_s = 1e9",
}
"""What their projects say."""
TARGETS = {
    "good": "fixture_bad_verifiers:Good",
    "C26": "fixture_bad_verifiers:Good",
    "R03": "fixture_bad_verifiers:Good",
    "R04": "fixture_noisy_import:R04",
    "R63": "fixture_bad_verifiers:Good",
    "R70": "fixture_bad_verifiers:Good",
    **{number: f"fixture_bad_verifiers:{number}" for number in NUMBERS},
}
"""Name -> entry point."""


def plugin_name(number):
    return f"kit-{number.lower()}"


@pytest.fixture(scope="session", autouse=True)
def _installed(tmp_path_factory):
    """Put one distribution with every fixture on the path, and two that say less of themselves."""
    site = tmp_path_factory.mktemp("kit-site")
    odd = ("R03", "R70")
    _distribution(site, "rlvr-plugin-kit", [one for one in TARGETS if one not in odd])
    _distribution(site, "rlvr-plugin-unlicensed", ["R03"], licence="")
    _distribution(site, "rlvr-plugin-terse", ["R70"], page="# A fixture\n")
    added = [str(site), str(HERE)]
    sys.path[:0] = added
    yield
    for entry in added:
        sys.path.remove(entry)


def _distribution(site, name, numbers, licence="License-Expression: Apache-2.0\n", page=PAGE):
    info = site / f"{name.replace('-', '_')}-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA.format(name=name, licence=licence, page=page))
    lines = [f"{plugin_name(number)} = {TARGETS[number]}" for number in numbers]
    (info / "entry_points.txt").write_text("\n".join(["[rlvr.verifiers]", *lines, ""]))


@pytest.fixture
def project_of(tmp_path):
    """Return a function that makes the project of a fixture: settings and golden cases."""

    def make(number):
        settings = SETTINGS.get(number, "")
        (tmp_path / "pyproject.toml").write_text(f"[tool.rlvr.check]\n{settings}\n")
        lines = [json.dumps(case) for case in CASES.get(number, GOLDEN)]
        (tmp_path / "golden.jsonl").write_text("\n".join(lines) + "\n")
        if number != "R70":
            (tmp_path / "README.md").write_text(PAGE)
        return tmp_path

    return make
