"""What the tests of this folder know about the source."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CORE = ROOT / "rlvr_core"


def tracked_files() -> list[Path]:
    """Return the files of the repository: what git tracks, or all but what it would ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode == 0:
        return sorted(path for name in listed.stdout.split("\0") if (path := ROOT / name).is_file())
    ignored = {".venv", "runs", "dist", "build", "__pycache__", ".git"}
    return sorted(
        path
        for path in ROOT.rglob("*")
        if path.is_file() and not ignored & set(path.relative_to(ROOT).parts)
    )


def python_files() -> list[Path]:
    return [path for path in tracked_files() if path.suffix == ".py"]


def imported_modules(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of everything that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
