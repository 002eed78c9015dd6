"""Say where in a stack file, or on the command line, a part of the stack stands."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field

from rlvr_core.api.errors import StackError
from rlvr_core.api.plugin import RESERVED_CONFIG_KEYS
from rlvr_core.api.verdicts import Json
from rlvr_core.config.models import PLUGIN_LISTS
from rlvr_core.config.yaml_source import Mark, Path, YamlDocument


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a stack."""

    loc: Path
    """Path in the `Stack` model, as pydantic reports it."""
    message: str
    is_about_key: bool = False
    """The key is at fault, not its value."""


@dataclass(slots=True)
class Positions:
    """The raw data of a stack, and where each part of it comes from.

    Paths here are those of the YAML text. In a plugin list they differ from those of the models:
    ``verifiers[0].config.tolerance`` of the model is ``verifiers[0].math-sympy.tolerance`` in the
    text, and people read ``verifiers[0].tolerance``.
    """

    name: str
    document: YamlDocument
    overrides: dict[Path, str] = field(default_factory=dict)
    """Text path -> the key of the command line that set it."""

    def locate(self, loc: Path) -> str:
        """Return ``file:line:column`` of the nearest known parent, or ``command line: key``."""
        _, place = self._place(self._text_path(loc), is_about_key=False)
        return place

    def show(self, loc: Path) -> str:
        """Return a path of the model as people write it, such as ``verifiers[0].weight``."""
        if _is_entry(loc) and len(loc) > _entry_length(loc):
            cut = _entry_length(loc)
            loc = (*loc[:cut], *loc[cut + 1 :]) if loc[cut] == "config" else loc
        text = ""
        for part in loc:
            text += f"[{part}]" if isinstance(part, int) else f".{part}"
        return text.removeprefix(".")

    def error(self, problems: Iterable[Problem], code: str = "RLVR-S102") -> StackError:
        """Return one error that holds all problems, sorted by their place in the file."""
        lines = [line for _, line in sorted(self._line(problem) for problem in problems)]
        unique = list(dict.fromkeys(lines))
        if len(unique) == 1:
            return StackError(code, unique[0])
        return StackError(code, "\n  ".join([f"the stack has {len(unique)} problems:", *unique]))

    def override(self, path: Path, key: str) -> None:
        """Note that what stands at the text path `path` now comes from the command line."""
        for table in (self.document.values, self.document.keys, self.overrides):
            for known in [known for known in table if known[: len(path)] == path]:
                del table[known]
        self.overrides[path] = key

    def _line(self, problem: Problem) -> tuple[Mark, str]:
        path = self._text_path(problem.loc)
        mark, place = self._place(path, is_about_key=problem.is_about_key)
        shown = self.show(problem.loc)
        if self.overrides.get(path) is not None or not shown:
            return mark, f"{place}: {problem.message}"
        return mark, f"{place}: {shown}: {problem.message}"

    def _place(self, path: Path, *, is_about_key: bool) -> tuple[Mark, str]:
        first = self.document.keys if is_about_key else self.document.values
        for length in range(len(path), -1, -1):
            parent = path[:length]
            if parent in self.overrides:
                return Mark(sys.maxsize, 1), f"command line: {self.overrides[parent]}"
            # Of a parent the key is what catches the eye: the value may begin lines below.
            table = first if length == len(path) else self.document.keys
            mark = table.get(parent) or self.document.values.get(parent)
            if mark is not None:
                return mark, f"{self.name}:{mark.line}:{mark.column}"
        return Mark(1, 1), f"{self.name}:1:1"

    def _text_path(self, loc: Path) -> Path:
        if not _is_entry(loc):
            return loc
        cut = _entry_length(loc)
        entry, head, rest = self._raw(loc[:cut]), loc[:cut], loc[cut:]
        if not isinstance(entry, dict) or len(entry) != 1 or not rest:
            return loc
        name = next(iter(entry))
        if rest[0] == "name" or (rest[0] == "plugin" and "plugin" not in (entry[name] or {})):
            return (*head, name)
        if rest[0] == "config":
            return (*head, name, *rest[1:])
        return (*head, name, *rest) if rest[0] in RESERVED_CONFIG_KEYS else loc

    def _raw(self, path: Path) -> Json:
        node = self.document.data
        for part in path:
            try:
                node = node[part]
            except (KeyError, IndexError, TypeError):
                return None
        return node


def _is_entry(loc: Path) -> bool:
    is_listed = len(loc) > 1 and loc[0] in PLUGIN_LISTS and isinstance(loc[1], int)
    return is_listed or loc[:1] == ("control",)


def _entry_length(loc: Path) -> int:
    return 1 if loc[0] == "control" else 2
