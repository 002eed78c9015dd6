"""Apply ``key.path=value`` arguments of the command line to the raw data of a stack."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rlvr_core.api.errors import StackError, did_you_mean, listed
from rlvr_core.api.verdicts import Json
from rlvr_core.config.models import PLUGIN_LISTS
from rlvr_core.config.positions import Positions, Problem
from rlvr_core.config.yaml_source import Path, parse_value

_INDEX = re.compile(r"\[(\d+)\]")


def apply_overrides(positions: Positions, overrides: Sequence[str]) -> list[Problem]:
    """Change `positions.document` in place, in order; return what could not be applied.

    Unknown keys are left to the validation that follows.

    Raises:
        StackError: An argument has no ``=`` (RLVR-S106).
    """
    problems = []
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise StackError(
                "RLVR-S106",
                f"command line: {text!r} is not of the form key.path=value",
                fix="rlvr config show STACK prints every key",
            )
        key = key.strip()
        change = _Override(positions, key, parse_value(value, f"command line: {key}"))
        message = change.apply()
        if message:
            positions.overrides[("command line", key)] = key
            problems.append(Problem(("command line", key), message))
    return problems


class _Override:
    """One assignment on its way down the data."""

    def __init__(self, positions: Positions, key: str, value: Json) -> None:
        self._positions = positions
        self._key = key
        self._value = value

    def apply(self) -> str:
        """Set the value; return what is wrong, or nothing."""
        parts = _INDEX.sub(r".\1", self._key).split(".")
        if not isinstance(self._positions.document.data, dict):
            return "cannot be set: the stack file is not a mapping"
        if parts[0] in PLUGIN_LISTS and len(parts) > 1:
            return self._set_in_list(parts[0], parts[1:])
        if parts[0] == "control" and len(parts) > 1:
            data = self._positions.document.data
            if not data.get("control"):
                return "cannot be set: the stack has no control"
            return self._set_in_entry(data, "control", ("control",), parts[1:])
        return self._set(self._positions.document.data, (), parts)

    def _set(self, node: Json, path: Path, parts: list[str]) -> str:
        head, rest = parts[0], parts[1:]
        if isinstance(node, list):
            if not head.isdigit() or int(head) >= len(node):
                return f"there is no item {head!r}; the list has {len(node)}"
            step: str | int = int(head)
        elif isinstance(node, dict):
            step = head
        else:
            return f"cannot be set: {'.'.join(map(str, path))} is not a mapping"
        here = (*path, step)
        if not rest:
            node[step] = self._value
            self._positions.override(here, self._key)
            return ""
        if isinstance(node, dict) and node.get(step) is None:
            node[step] = {}
            self._positions.override(here, self._key)
        return self._set(node[step], here, rest)

    def _set_in_list(self, section: str, parts: list[str]) -> str:
        entries = self._positions.document.data.get(section)
        if not isinstance(entries, list):
            return f"cannot be set: the stack has no list {section!r}"
        names = [_name_of(entry) for entry in entries]
        # An instance name may hold dots itself: the longest match wins.
        for length in range(len(parts), 0, -1):
            name = ".".join(parts[:length])
            if name in names:
                index = names.index(name)
                return self._set_in_entry(entries, index, (section, index), parts[length:])
        if parts[0].isdigit() and int(parts[0]) < len(entries):
            index = int(parts[0])
            return self._set_in_entry(entries, index, (section, index), parts[1:])
        known = [name for name in names if name]
        there_is = f"In the stack: {listed(known) or 'none'}"
        return f"{section} has no plugin {parts[0]!r}{did_you_mean(parts[0], known, there_is)}"

    def _set_in_entry(self, holder: Json, step: str | int, path: Path, parts: list[str]) -> str:
        entry = holder[step]
        name = _name_of(entry)
        if not name:
            return "cannot be set: the entry is not a plugin name, or one name with its settings"
        if isinstance(entry, str) or (len(entry) == 1 and entry[name] is None):
            entry = holder[step] = {name: {}}
            self._keep_position(path, name)
        if not parts:
            entry[name] = self._value
            self._positions.override((*path, name), self._key)
            return ""
        if len(entry) != 1:
            return self._set(entry, path, parts)
        return self._set(entry[name], (*path, name), parts)

    def _keep_position(self, path: Path, name: str) -> None:
        document = self._positions.document
        if path in document.values:
            document.keys.setdefault((*path, name), document.values[path])


def _name_of(entry: Json) -> str:
    if isinstance(entry, str):
        return entry
    if isinstance(entry, dict) and len(entry) == 1:
        return str(next(iter(entry)))
    if isinstance(entry, dict) and isinstance(entry.get("name"), str):
        return str(entry["name"])
    return ""
