"""What docs/generate.py writes below the marker of docs/bundled-verifiers.md."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
RECORD = DOCS / "bundled_verifiers.json"
PLUGINS = DOCS.parent / "plugins"
COLUMNS = (
    ("cases", "cases"),
    ("agree", "agree"),
    ("false pass", "false passes"),
    ("false fail", "false fails"),
    ("score", "another score"),
    ("no verdict", "no verdict"),
)
NO_FIGURES = (
    "Its agreement is that of the model that it asks: `rlvr-llm-judge calibrate` measures it on "
    "rows of yours."
)
CASES = {"golden": "golden cases", "graded": "graded cases"}


def bundled_verifiers() -> str:
    """Return one section for each verifier of the repository."""
    record = json.loads(RECORD.read_text("utf-8"))
    names = sorted({*record, *(path.parent.name for path in PLUGINS.glob("*/golden.jsonl"))})
    return "\n\n".join(_section(name, record.get(name)) for name in names)


def _section(name: str, figures: dict[str, Any] | None) -> str:
    lines = [f"## {name}", "", *(_figures(figures) if figures else [NO_FIGURES])]
    readme = PLUGINS / name / "README.md"
    if readme.exists():
        text = readme.read_text("utf-8")
        for head, title in (("Languages", "Languages"), ("Known limits", "Limits")):
            found = _part(text, head)
            space = "\n\n" if found.startswith("-") or "\n\n" in found else " "
            lines += ["", f"**{title}.**{space}{found}"]
    return "\n".join(lines)


def _figures(figures: dict[str, Any]) -> list[str]:
    heads = ["", *(title for _, title in COLUMNS), "median", "95 %", "99 %", "slowest"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for kind, title in CASES.items():
        if kind in figures:
            found = figures[kind]
            counts = [f"{found[key]:,}" for key, _ in COLUMNS]
            times = [f"{found['ms'][key]:.2f} ms" for key in ("median", "p95", "p99", "max")]
            lines.append(f"| {' | '.join([title, *counts, *times])} |")
    return [*lines, "", f"Measured on {figures['machine']}."]


def _part(readme: str, head: str) -> str:
    """Return what stands below a heading of a README, without links to its neighbours."""
    match = re.search(rf"^## {head}\n+(.*?)(?=^## |\Z)", readme, re.MULTILINE | re.DOTALL)
    text = match[1].strip() if match else "Its README says nothing."
    return re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]+\)", r"\1", text)
