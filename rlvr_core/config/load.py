"""Load a stack file: YAML, overrides, strict models, rules; every problem reported at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rlvr_core.api.errors import StackError
from rlvr_core.api.verdicts import Json
from rlvr_core.config.models import PLUGIN_LISTS, PluginEntry, Stack
from rlvr_core.config.overrides import apply_overrides
from rlvr_core.config.positions import Positions, Problem
from rlvr_core.config.rules import check_rules
from rlvr_core.config.wording import problems_of
from rlvr_core.config.yaml_source import Path, parse_yaml


@dataclass(frozen=True, slots=True)
class StackFile:
    """A stack that passed phase one, and where each part of it was written."""

    stack: Stack
    path: FilePath
    positions: Positions

    def locate(self, loc: Path) -> str:
        """Return where a part of the stack was given.

        Args:
            loc: Path in the `Stack` model, such as ``("data", "train", "path")``.

        Returns:
            ``stack.yaml:5:5`` of the nearest parent that is written there, or
            ``command line: data.train.path``.
        """
        return self.positions.locate(loc)

    def error(self, problems: Sequence[Problem], code: str = "RLVR-S102") -> StackError:
        """Return one error for problems that a later phase found."""
        return self.positions.error(problems, code)


def load_stack(path: FilePath | str, overrides: Sequence[str] = ()) -> StackFile:
    """Read a stack file and check everything that needs no plugin.

    Args:
        path: The YAML file.
        overrides: ``key.path=value`` arguments, applied in order. Plugins are named by their
            instance name (``verifiers.math-sympy.tolerance=1e-6``) or place (``verifiers[0]``).

    Raises:
        StackError: The file cannot be read (RLVR-S101), or holds problems (RLVR-S102), all in one.
    """
    path = FilePath(path)
    positions = Positions(str(path), parse_yaml(_read(path), str(path)))
    problems = apply_overrides(positions, overrides)
    raw = positions.document.data
    if not isinstance(raw, dict):
        raise positions.error([Problem((), "a stack file must be a mapping of keys to values")])
    stack = None
    try:
        stack = Stack.model_validate(raw)
        sections: Mapping[str, Any] = {name: getattr(stack, name) for name in Stack.model_fields}
    except ValidationError as exc:
        problems += problems_of(exc, Stack)
        sections = _valid_sections(raw)
    problems += check_rules(sections)
    if problems or stack is None:
        raise positions.error(problems)
    return StackFile(_without_absent_splits(stack), path, positions)


def _read(path: FilePath) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as exc:
        raise StackError(
            "RLVR-S101",
            f"there is no file {str(path)!r}",
            fix="name a stack file; rlvr config copy writes one from a recipe",
        ) from exc
    except UnicodeDecodeError as exc:
        raise StackError("RLVR-S101", f"{path}: is not UTF-8 text: {exc.reason}") from exc
    except OSError as exc:
        raise StackError(
            "RLVR-S101",
            f"{path}: cannot be read: {exc.strerror}",
            fix="name a stack file, and not a folder" if path.is_dir() else None,
        ) from exc


def _valid_sections(raw: Mapping[str, Json]) -> dict[str, Any]:
    """Validate each section, and each plugin entry, by itself and return those that pass."""
    sections = {}
    for name, field in Stack.model_fields.items():
        if raw.get(name) is None:
            if not field.is_required():
                sections[name] = field.get_default(call_default_factory=True)
            continue
        if name in PLUGIN_LISTS and isinstance(raw[name], list):
            sections[name] = [_valid(PluginEntry, entry) for entry in raw[name]]
            continue
        value = _valid(field.annotation, raw[name])
        if value is not None:
            sections[name] = value
    return sections


def _valid(annotation: Any, value: Json) -> Any:
    """Return the validated value, or None when it is not valid."""
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    try:
        return adapter.validate_python(value)
    except ValidationError:
        return None


def _without_absent_splits(stack: Stack) -> Stack:
    """Drop ``dev`` from the default splits when the stack has no dev data."""
    present = [split for split in stack.evaluate.splits if getattr(stack.data, split) is not None]
    evaluate = stack.evaluate.model_copy(update={"splits": present})
    return stack.model_copy(update={"evaluate": evaluate})
