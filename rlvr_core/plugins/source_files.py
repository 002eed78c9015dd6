"""Find a plugin's module file, and read what it declares, without importing anything."""

from __future__ import annotations

import ast
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path


def missing_module(entry_point: EntryPoint) -> str | None:
    """Return the first part of the entry point's module that is nowhere to be found, if any."""
    parts = entry_point.value.partition(":")[0].strip().split(".")
    if not _top_folders(parts[0]):
        return parts[0]
    for length in range(2, len(parts) + 1):
        if not _candidates(parts[:length]):
            return ".".join(parts[:length])
    return None


def declared_api(entry_point: EntryPoint) -> str | None:
    """Return the `api_version` that the plugin class sets as a literal, if the source says so."""
    found = _class_of(entry_point)
    return _literal_version(found) if found else None


def declared_summary(entry_point: EntryPoint) -> str | None:
    """Return the first paragraph of the plugin class's docstring, if its source has one."""
    found = _class_of(entry_point)
    docstring = ast.get_docstring(found) if found else None
    return " ".join(docstring.partition("\n\n")[0].split()) if docstring else None


def _class_of(entry_point: EntryPoint) -> ast.ClassDef | None:
    module, _, attribute = entry_point.value.partition(":")
    files = [path for path in _candidates(module.strip().split(".")) if path.suffix == ".py"]
    if not files:
        return None
    try:
        tree = ast.parse(files[0].read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == attribute.strip():
            return node
    return None


def _literal_version(node: ast.ClassDef) -> str | None:
    for statement in node.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        named = [target.id for target in targets if isinstance(target, ast.Name)]
        value = getattr(statement, "value", None)
        if "api_version" in named and isinstance(value, ast.Constant):
            return str(value.value)
    return None


def _top_folders(name: str) -> list[Path]:
    """Return where a top-level package or module lies; finding one of those imports nothing."""
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return []
    if spec is None:
        return []
    if spec.submodule_search_locations:
        return [Path(folder) for folder in spec.submodule_search_locations]
    return [Path(spec.origin)] if spec.origin else []


def _candidates(parts: list[str]) -> list[Path]:
    """Return the existing files or folders of a module, its source first."""
    found = []
    for top in _top_folders(parts[0]):
        if len(parts) == 1 and top.is_file():
            found.append(top)
            continue
        base = top.joinpath(*parts[1:])
        tried = [base.with_name(base.name + ".py"), base / "__init__.py", base]
        if len(parts) > 1:
            tried += base.parent.glob(f"{base.name}.*.so")
        found += [path for path in tried if path.exists()]
    return found
