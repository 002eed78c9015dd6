"""What is installed, from distribution metadata alone: no plugin is ever imported here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from email.message import Message as Metadata
from importlib.metadata import Distribution, EntryPoint
from typing import cast

from rlvr_core.api.errors import PluginError, StackError, closest, listed
from rlvr_core.api.plugin import Family, normalised
from rlvr_core.api.verdicts import Json
from rlvr_core.plugins.ref import PluginRef

CORE = "rlvr-core"

FIRST_PARTY: dict[Family, tuple[str, ...]] = {
    Family.VERIFIERS: (
        "code-docker",
        "f1-extraction",
        "ifeval",
        "json-schema",
        "llm-judge",
        "math-sympy",
        "sql-exec",
        "steps",
    )
}
"""Plugins of this repository beside core, each the distribution ``rlvr-plugin-<name>``."""

_GROUPS = {family.entry_point_group: family for family in Family}


def metadata_of(distribution: Distribution) -> Metadata:
    """Return the metadata as the mail message that it is; missing keys are None."""
    return cast(Metadata, distribution.metadata)


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """One entry point of one installed distribution."""

    family: Family
    name: str
    entry_point: EntryPoint
    distribution: str
    version: str
    report_url: str | None
    location: str
    """The folder that the distribution is installed in."""

    @property
    def blame(self) -> str:
        """Distribution and version."""
        return f"{self.distribution} {self.version}"

    def ref(self, name: str, config: dict[str, Json]) -> PluginRef:
        """Return the reference that builds this plugin under an instance name."""
        return PluginRef(
            family=self.family,
            plugin=self.name,
            name=name,
            value=self.entry_point.value,
            distribution=self.distribution,
            version=self.version,
            config=config,
            report_url=self.report_url,
        )


@dataclass(frozen=True, slots=True)
class PluginIndex:
    """Every registered plugin, sorted by family and name; duplicates are kept."""

    plugins: tuple[InstalledPlugin, ...]
    unknown_groups: tuple[tuple[str, str], ...] = ()
    """(group, distribution) of entry-point groups that look like ours but are not."""
    unread: tuple[EntryPoint, ...] = ()
    """What is registered in these groups."""
    shadowed: tuple[str, ...] = ()
    """Distributions found twice on the path, as "name version in folder" of the unused one."""

    @classmethod
    def scan(cls, path: Sequence[str] | None = None) -> PluginIndex:
        """Read the metadata of all distributions on `path` (default ``sys.path``), once."""
        found: list[InstalledPlugin] = []
        unknown: list[tuple[str, str]] = []
        unread: list[EntryPoint] = []
        shadowed: list[str] = []
        names: set[str] = set()
        for distribution in _with_our_groups(path):
            metadata = metadata_of(distribution)
            name = metadata["Name"] or "unknown"
            if normalised(name) in names or not _is_first(distribution, name, path):
                shadowed.append(f"{name} {distribution.version} in {_folder(distribution)}")
                continue
            names.add(normalised(name))
            for entry_point in distribution.entry_points:
                if entry_point.group in _GROUPS:
                    found.append(_installed(entry_point, distribution, name, metadata))
                elif entry_point.group.startswith(("rlvr.", "rlvr-", "rlvr_")):
                    unknown.append((entry_point.group, name))
                    unread.append(entry_point)
        order = list(Family)
        found.sort(
            key=lambda one: (order.index(one.family), normalised(one.name), one.distribution)
        )
        return cls(tuple(found), tuple(dict.fromkeys(unknown)), tuple(unread), tuple(shadowed))

    def of_family(self, family: Family) -> list[InstalledPlugin]:
        """Return the plugins of one family."""
        return [plugin for plugin in self.plugins if plugin.family is family]

    def named(self, name: str, family: Family | None = None) -> list[InstalledPlugin]:
        """Return every plugin of that name.

        A name may be qualified by its distribution, as in ``rlvr-plugin-foo/foo``.
        """
        distribution, slash, plugin = name.rpartition("/")
        return [
            candidate
            for candidate in self.plugins
            if normalised(candidate.name) == normalised(plugin)
            and (not slash or normalised(candidate.distribution) == normalised(distribution))
            and family in (None, candidate.family)
        ]

    def duplicates(self) -> list[list[InstalledPlugin]]:
        """Return the plugins that share family and name, one list for each such name."""
        together: dict[tuple[Family, str], list[InstalledPlugin]] = {}
        for plugin in self.plugins:
            together.setdefault((plugin.family, normalised(plugin.name)), []).append(plugin)
        return [same for same in together.values() if len(same) > 1]

    def find(self, family: Family, name: str, origin: str) -> InstalledPlugin:
        """Return the one plugin of that family and name.

        Args:
            family: Where to look.
            name: As the user wrote it.
            origin: Where the user wrote it, for the message.

        Raises:
            StackError: None is installed (RLVR-S103).
            PluginError: Two distributions register it (RLVR-P101).
        """
        found = self.named(name, family)
        if len(found) == 1:
            return found[0]
        raise self._ambiguous(found, origin) if found else self._missing(family, name, origin)

    def _ambiguous(self, found: Sequence[InstalledPlugin], origin: str) -> PluginError:
        name = found[0].name
        places = " and ".join(f"{plugin.blame} ({plugin.location})" for plugin in found)
        return PluginError(
            "RLVR-P101",
            f"{origin}: the plugin name {name!r} is registered by "
            f"{' and '.join(plugin.blame for plugin in found)}",
            cause=places,
            fix=f"pip uninstall the one you do not want, or name the other in full: "
            f"'{name}: {{plugin: {found[0].distribution}/{name}}}'",
        )

    def _missing(self, family: Family, name: str, origin: str) -> StackError:
        # Across families first: the plugin may only stand in the wrong section.
        elsewhere = self.named(name)
        if elsewhere:
            other = elsewhere[0]
            return StackError(
                "RLVR-S103",
                f"{origin}: {name!r} is not one of the {family.value} but belongs under "
                f"{other.family.value!r} ({other.blame})",
                fix=f"move it to the section {other.family.value!r} of the stack",
            )
        unread = [one for one in self.unread if normalised(one.name) == normalised(name)]
        if unread:
            group = unread[0].group
            return StackError(
                "RLVR-S103",
                f"{origin}: {name!r} is registered in {group!r}, which nobody reads",
                cause=f"{family.value} register in {family.entry_point_group!r}",
                fix="rlvr plugins doctor says which distribution does so; correct the name of the "
                "group in its pyproject.toml, and install it again",
            )
        installed = {plugin.name: plugin.blame for plugin in self.of_family(family)}
        absent = [one for one in FIRST_PARTY.get(family, ()) if not self.named(one, family)]
        wanted = normalised(name)
        is_known = wanted in absent
        near = None if is_known else closest(wanted, installed)
        meant = wanted if is_known else None if near else closest(wanted, absent)
        hint = ""
        fix = "correct the name, or install the plugin; rlvr plugins list shows what is installed"
        if near:
            hint = f"; did you mean {near!r} ({installed[near]}, installed)?"
        elif meant:
            hint = "" if is_known else f"; did you mean {meant!r} (not installed)?"
            fix = f"pip install rlvr-plugin-{meant}"
        if not any(plugin.distribution == CORE for plugin in self.plugins):
            fix = f"{CORE} itself is not installed here, so that its own plugins are not found"
        return StackError(
            "RLVR-S103",
            f"{origin}: no plugin named {name!r} is installed{hint}",
            cause=_what_there_is(family, installed, absent),
            fix=fix,
        )


def _with_our_groups(path: Sequence[str] | None) -> Iterator[Distribution]:
    distributions = (
        Distribution.discover() if path is None else Distribution.discover(path=list(path))
    )
    for distribution in distributions:
        # The text is read before the metadata, whose parsing is what makes a scan slow.
        text = distribution.read_text("entry_points.txt")
        if text and "[rlvr" in text:
            yield distribution


def _is_first(distribution: Distribution, name: str, path: Sequence[str] | None) -> bool:
    """Tell whether this is the distribution that Python itself would pick for the name."""
    same = (
        Distribution.discover(name=name)
        if path is None
        else Distribution.discover(name=name, path=list(path))
    )
    first = next(iter(same), None)
    return first is None or _folder(first) == _folder(distribution)


def _folder(distribution: Distribution) -> str:
    return str(distribution.locate_file(""))


def _installed(
    entry_point: EntryPoint, distribution: Distribution, name: str, metadata: Metadata
) -> InstalledPlugin:
    return InstalledPlugin(
        family=_GROUPS[entry_point.group],
        name=entry_point.name,
        entry_point=entry_point,
        distribution=name,
        version=distribution.version,
        report_url=_report_url(metadata),
        location=_folder(distribution),
    )


def _report_url(metadata: Metadata) -> str | None:
    urls = [url.partition(",") for url in metadata.get_all("Project-URL") or ()]
    by_label = {label.strip().lower(): url.strip() for label, _, url in urls}
    labels = ("issues", "issue tracker", "bug tracker", "bug reports", "tracker")
    known = [by_label[label] for label in labels if label in by_label]
    return known[0] if known else None


def _what_there_is(family: Family, installed: Iterable[str], absent: Sequence[str]) -> str:
    text = f"installed {family.value}: {listed(installed) or 'none'}"
    if absent:
        text += f"\nknown but not installed: {listed(absent, limit=20)}"
        text += " (pip install rlvr-plugin-<name>)"
    return text
