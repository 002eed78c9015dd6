"""Look for what is wrong with the installed plugins, importing none of them."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution, version

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from rlvr_core.api.errors import did_you_mean
from rlvr_core.api.plugin import Family
from rlvr_core.plugins.index import CORE, InstalledPlugin, PluginIndex, metadata_of
from rlvr_core.plugins.inspection import inspect_apart
from rlvr_core.plugins.source_files import missing_module


@dataclass(frozen=True, slots=True)
class Complaint:
    """One thing that is wrong."""

    about: str
    """Distribution with version, or plugin."""
    message: str
    fix: str

    def to_json(self) -> dict[str, str]:
        """Return it as plain data."""
        return {"about": self.about, "message": self.message, "fix": self.fix}


def examine(index: PluginIndex, *, load: bool = False) -> list[Complaint]:
    """Return everything that is wrong with what is installed.

    Args:
        index: What is installed.
        load: Import each plugin too, each in a process of its own.
    """
    complaints = [*_index_complaints(index)]
    seen: set[str] = set()
    for plugin in index.plugins:
        complaints += _entry_point_complaints(plugin)
        if plugin.distribution not in seen:
            seen.add(plugin.distribution)
            complaints += _distribution_complaints(plugin)
    if load:
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as executor:
            for found in executor.map(_load_complaints, index.plugins):
                complaints += found
    return complaints


def surroundings() -> dict[str, str]:
    """Return which interpreter looks, and where: most missing plugins are in another one."""
    return {
        "python": f"{platform.python_version()} at {sys.executable}",
        "environment": sys.prefix,
        "core": _core_version(),
    }


def _core_version() -> str:
    try:
        return version(CORE)
    except PackageNotFoundError:
        return "not installed (running from its source folder)"


def _index_complaints(index: PluginIndex) -> Iterator[Complaint]:
    if not any(plugin.distribution == CORE for plugin in index.plugins):
        yield Complaint(
            CORE,
            "its own plugins are not registered in this environment",
            "pip install it here; from a clone: pip install -e .",
        )
    for same in index.duplicates():
        names = " and ".join(plugin.blame for plugin in same)
        yield Complaint(
            same[0].name,
            f"the name is registered {len(same)} times among the {same[0].family.value}: {names}",
            f"pip uninstall one of them, or name it in full: {same[0].distribution}/{same[0].name}",
        )
    groups = [family.entry_point_group for family in Family]
    for group, name in index.unknown_groups:
        yield Complaint(
            name,
            f"registers plugins in {group!r}, which nobody reads{did_you_mean(group, groups)}",
            f"known groups: {', '.join(groups)}",
        )
    for shadowed in index.shadowed:
        yield Complaint(
            shadowed,
            "is installed twice; this one is hidden by another earlier on the path",
            "pip uninstall it until none is left, then install it once",
        )


def _entry_point_complaints(plugin: InstalledPlugin) -> Iterator[Complaint]:
    module = missing_module(plugin.entry_point)
    if module is not None:
        yield Complaint(
            plugin.blame,
            f"the plugin {plugin.name!r} points at {plugin.entry_point.value}, but there is no "
            f"module {module!r}",
            f"stale or incomplete: pip install --force-reinstall {plugin.distribution}",
        )
    elif ":" not in plugin.entry_point.value:
        yield Complaint(
            plugin.blame,
            f"the plugin {plugin.name!r} points at a module, not at a class",
            "report it to its author",
        )


def _distribution_complaints(plugin: InstalledPlugin) -> Iterator[Complaint]:
    try:
        found = distribution(plugin.distribution)
    except PackageNotFoundError:
        return
    yield from _python_complaints(plugin, found)
    yield from _file_complaints(plugin, found)
    for text in found.requires or ():
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            yield Complaint(
                plugin.blame, f"its requirement {text!r} cannot be read", "report it to its author"
            )
            continue
        wrong = _unmet(requirement)
        if wrong:
            wanted = f"{requirement.name}{requirement.specifier}"
            yield Complaint(plugin.blame, f"needs {wanted}, {wrong}", f"pip install {wanted!r}")


def _unmet(requirement: Requirement) -> str:
    """Return what is wrong with an installed requirement, or nothing."""
    if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
        return ""
    try:
        installed = version(requirement.name)
    except PackageNotFoundError:
        return "which is not installed"
    if requirement.specifier.contains(installed, prereleases=True):
        return ""
    return f"but {installed} is installed"


def _python_complaints(plugin: InstalledPlugin, found: Distribution) -> Iterator[Complaint]:
    wanted = metadata_of(found).get("Requires-Python")
    try:
        fits = not wanted or SpecifierSet(wanted).contains(platform.python_version())
    except InvalidSpecifier:
        return
    if not fits:
        yield Complaint(
            plugin.blame,
            f"needs Python {wanted}, this is {platform.python_version()}",
            "use an environment with a Python that it supports",
        )


def _file_complaints(plugin: InstalledPlugin, found: Distribution) -> Iterator[Complaint]:
    sources = [path for path in found.files or () if path.suffix == ".py"]
    gone = [str(path) for path in sources if not found.locate_file(path).is_file()]  # type: ignore[attr-defined]
    if gone:
        yield Complaint(
            plugin.blame,
            f"{len(gone)} of its {len(sources)} source files are gone, {gone[0]} first",
            f"pip install --force-reinstall {plugin.distribution}",
        )


def _load_complaints(plugin: InstalledPlugin) -> list[Complaint]:
    error = inspect_apart(plugin.ref(plugin.name, {})).get("error")
    if not error:
        return []
    cause = f" ({error['cause']})" if error["cause"] else ""
    return [Complaint(plugin.blame, error["message"] + cause, error["fix"] or "report it")]
