"""The public names and signatures are those of ``public_api.txt``: every change of them is seen.

After a change that is meant, write the file anew: ``python tests/meta/test_public_api.py``.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path

import rlvr_core
from rlvr_core import adapters, api
from rlvr_core.api import hookspecs

SNAPSHOT = Path(__file__).with_name("public_api.txt")


def described() -> str:
    lines: list[str] = []
    for module in (rlvr_core, adapters, api):
        for name in sorted(module.__all__):
            lines += _described(f"{module.__name__}.{name}", getattr(module, name))
    for name, function in sorted(vars(hookspecs).items()):
        if name.startswith("rlvr_"):
            options = getattr(function, "rlvr_spec", {})
            kind = " (first result)" if options.get("firstresult") else ""
            lines.append(f"hook {name}{inspect.signature(function)}{kind}")
    return "\n".join(lines) + "\n"


def _described(name: str, value: object) -> Iterator[str]:
    if inspect.isclass(value):
        bases = ", ".join(base.__name__ for base in value.__bases__)
        yield f"class {name}({bases})"
        yield from (f"    {line}" for line in _members(value))
    elif inspect.isfunction(value):
        yield f"def {name}{inspect.signature(value)}"
    elif name.endswith(".CATALOGUE"):
        yield f"{name}: {', '.join(value)}"
    elif name.endswith(".__version__"):
        yield f"{name}: str"
    else:
        yield f"{name}: {value if isinstance(value, str) else type(value).__name__}"


def _members(cls: type) -> Iterator[str]:
    if issubclass(cls, enum.Enum):
        yield from (f"{member.name} = {member.value!r}" for member in cls)
        return
    annotations = vars(cls).get("__annotations__", {})
    for name, annotation in annotations.items():
        if not name.startswith("_"):
            yield f"{name}: {annotation}"
    for name, member in vars(cls).items():
        if name.startswith("_") or name in annotations or name == "model_config":
            continue
        if isinstance(member, property):
            yield f"property {name}"
        elif inspect.isfunction(member):
            yield f"def {name}{inspect.signature(member)}"


def test_public_names_and_signatures_are_the_committed_ones():
    committed = SNAPSHOT.read_text("utf-8").splitlines()
    changes = list(unified_diff(committed, described().splitlines(), "committed", "now", n=0))
    fix = "if that is meant, run: python tests/meta/test_public_api.py"
    assert not changes, "\n".join([*changes, fix])


if __name__ == "__main__":
    SNAPSHOT.write_text(described(), "utf-8")
