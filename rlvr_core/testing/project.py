"""The project that a plugin comes from: its golden cases, its page and what it says of itself."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from pydantic import Field, ValidationError

from rlvr_core.api.errors import StackError
from rlvr_core.api.plugin import Strict, normalised
from rlvr_core.config.wording import problems_of, said_of
from rlvr_core.plugins.index import InstalledPlugin, metadata_of

Capability = Literal["code", "constraints", "extraction"]
Invariance = Literal["surrounding-whitespace", "line-ends"]


class CheckSettings(Strict):
    """The table ``[tool.rlvr.check]`` of a plugin's ``pyproject.toml``."""

    config: dict[str, object] = Field(default_factory=dict)
    """Settings that the plugin is checked with."""
    expected_failures: dict[str, str] = Field(default_factory=dict)
    """Number of a check -> why it fails, and why that is meant."""
    capabilities: list[Capability] = Field(default_factory=list)
    """Kinds of attack that make sense for it."""
    invariances: list[Invariance] = Field(default_factory=list)
    """Changes of a completion that change no verdict."""
    rows_per_s: float | None = Field(default=None, gt=0)
    """Rows a second of processor time that it promises to judge, at least."""


@dataclass(frozen=True, slots=True)
class Project:
    """Where a plugin's own files are."""

    folder: Path | None
    golden: Path | None
    """Its golden cases; None where none were found."""
    page: str
    """What its README says."""
    settings: CheckSettings = field(default_factory=CheckSettings)


def find_project(
    plugin: InstalledPlugin, folder: Path | None = None, golden: Path | None = None
) -> Project:
    """Find the project of an installed plugin.

    Args:
        plugin: The plugin.
        folder: Where its ``pyproject.toml`` lies. Default: the folder it was installed from, or
            the current one when its ``pyproject.toml`` is the plugin's.
        golden: Its golden cases. Default: ``golden/NAME.jsonl`` or ``golden.jsonl`` of the project.

    Raises:
        StackError: A path is none, or ``[tool.rlvr.check]`` holds what it may not (RLVR-S106).
    """
    installed = distribution(plugin.distribution)
    if folder is None:
        folder = _installed_from(installed) or _current(plugin)
    elif not (folder / "pyproject.toml").is_file():
        raise _unusable(f"--project {folder} cannot be used", "there is no pyproject.toml in it")
    if golden is None:
        golden = _first_file(folder, f"golden/{plugin.name}.jsonl", "golden.jsonl")
    page = _first_file(folder, f"docs/verifiers/{plugin.name}.md", "README.md")
    text = str(metadata_of(installed).get_payload()) if page is None else page.read_text("utf-8")
    settings = CheckSettings() if folder is None else _settings(folder)
    return Project(folder=folder, golden=golden, page=text, settings=settings)


def _installed_from(installed: Distribution) -> Path | None:
    """Return the folder that pip installed from, as PEP 610 records it."""
    record = installed.read_text("direct_url.json")
    url = urlsplit(json.loads(record)["url"]) if record else None
    if url is None or url.scheme != "file":
        return None
    folder = Path(unquote(url.path))
    return folder if (folder / "pyproject.toml").is_file() else None


def _current(plugin: InstalledPlugin) -> Path | None:
    folder = Path.cwd()
    path = folder / "pyproject.toml"
    if not path.is_file():
        return None
    name = _toml(path).get("project", {}).get("name", "")
    return folder if normalised(str(name)) == normalised(plugin.distribution) else None


def _first_file(folder: Path | None, *names: str) -> Path | None:
    if folder is None:
        return None
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _settings(folder: Path) -> CheckSettings:
    path = folder / "pyproject.toml"
    written = _toml(path).get("tool", {}).get("rlvr", {}).get("check", {})
    try:
        return CheckSettings.model_validate(written)
    except ValidationError as exc:
        lines = said_of(problems_of(exc, CheckSettings), "the table")
        raise _unusable(f"[tool.rlvr.check] of {path} is not usable", "\n".join(lines)) from exc


def _toml(path: Path) -> Mapping[str, dict[str, dict[str, dict[str, object]]]]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise _unusable(f"{path} could not be read", str(exc)) from exc


def _unusable(message: str, cause: str) -> StackError:
    return StackError(
        "RLVR-S106",
        message,
        cause=cause,
        fix="docs/reference/checks.md lists what the table may hold",
    )
