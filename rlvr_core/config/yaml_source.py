"""Read YAML with the position of every key and value, under the scalar rules of YAML 1.2.

``1e-6`` is a number, ``no`` and ``on`` are strings, ``012`` is twelve, ``0o14`` is octal, and a key
given twice is refused. Keys are always strings, as written. Nothing is ever constructed but null,
bool, int, float, str, list and dict.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeAlias

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from rlvr_core.api.errors import StackError
from rlvr_core.api.verdicts import Json

Path: TypeAlias = tuple[str | int, ...]

MAX_NODES = 20_000
"""Values in one file after aliases are expanded."""
MAX_DEPTH = 40
MAX_CHARACTERS = 1_000_000

_NULL = re.compile(r"(null|Null|NULL|~|)\Z")
_TRUE = re.compile(r"(true|True|TRUE)\Z")
_FALSE = re.compile(r"(false|False|FALSE)\Z")
_DECIMAL = re.compile(r"[-+]?[0-9]{1,400}\Z")
_OCTAL = re.compile(r"0o[0-7]+\Z")
_HEX = re.compile(r"0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_INFINITE = re.compile(r"([-+]?)\.(inf|Inf|INF)\Z")
_NAN = re.compile(r"\.(nan|NaN|NAN)\Z")

_IMPLICIT = "plain scalar"


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A place in a file, 1-based."""

    line: int
    column: int


@dataclass(slots=True)
class YamlDocument:
    """The data of one file and where each part of it stands."""

    data: Json
    values: dict[Path, Mark] = field(default_factory=dict)
    """Where the value at a path begins."""
    keys: dict[Path, Mark] = field(default_factory=dict)
    """Where the last key of a path stands, for values inside mappings."""


def parse_scalar(text: str) -> str | int | float | bool | None:
    """Return what `text` means as a plain scalar of the YAML 1.2 core schema."""
    if _NULL.match(text):
        return None
    if _TRUE.match(text) or _FALSE.match(text):
        return bool(_TRUE.match(text))
    if _DECIMAL.match(text):
        return int(text)
    if _OCTAL.match(text) or _HEX.match(text):
        return int(text, base=0)
    if _FLOAT.match(text) or _NAN.match(text):
        return float(text.replace(".nan", "nan").replace(".NaN", "nan").replace(".NAN", "nan"))
    if infinite := _INFINITE.match(text):
        return float(infinite[1] + "inf")
    return text


def parse_value(text: str, origin: str) -> Json:
    """Return what `text` means as a value on the command line.

    Text that begins with a bracket, a brace or a quote is read as YAML, anything else as a scalar.

    Raises:
        StackError: The text is not YAML; `origin` says where it came from.
    """
    if text.lstrip()[:1] in ("[", "{", '"', "'"):
        return parse_yaml(text, origin).data
    return parse_scalar(text.strip())


def parse_yaml(text: str, name: str) -> YamlDocument:
    """Read one YAML document.

    Args:
        text: The document.
        name: What messages call it, usually the path of the file.

    Raises:
        StackError: RLVR-S101, with ``name:line:column``.
    """
    if len(text) > MAX_CHARACTERS:
        raise _unreadable(name, None, f"is longer than {MAX_CHARACTERS:,} characters")
    try:
        loader = _Composer(text)
        try:
            root = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as exc:
        raise _syntax_error(name, exc) from exc
    except yaml.YAMLError as exc:
        raise _unreadable(name, None, f"is not text that YAML allows: {exc}") from exc
    except RecursionError as exc:
        raise _unreadable(name, None, "is nested too deeply") from exc
    if root is None:
        raise _unreadable(name, None, "is empty")
    return _Builder(name).build(root)


class _Composer(yaml.BaseLoader):
    """PyYAML's composer, told to leave the meaning of plain scalars to us."""

    def resolve(self, kind: type[Node], value: str | None, implicit: object) -> str:
        """Mark plain scalars; everything else is what its node class says."""
        is_plain = kind is ScalarNode and isinstance(implicit, tuple) and implicit[0]
        return _IMPLICIT if is_plain else ""


class _Builder:
    """Turns nodes into data and writes down where each stood."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes = 0
        self._document = YamlDocument(None)

    def build(self, root: Node) -> YamlDocument:
        self._document.data = self._value(root, ())
        return self._document

    def _value(self, node: Node, path: Path) -> Json:
        self._document.values[path] = _mark(node)
        self._nodes += 1
        if self._nodes > MAX_NODES or len(path) > MAX_DEPTH:
            raise self._error(
                node,
                f"holds more than {MAX_NODES:,} values, or is nested deeper than {MAX_DEPTH}, "
                "once aliases are expanded",
            )
        if node.tag not in ("", _IMPLICIT):
            raise self._error(
                node, "tags such as !!str are not allowed; quote the value to make it a string"
            )
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        if isinstance(node, SequenceNode):
            return [self._value(item, (*path, index)) for index, item in enumerate(node.value)]
        return parse_scalar(node.value) if node.tag == _IMPLICIT else node.value

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, Json]:
        result: dict[str, Json] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                raise self._error(key_node, "a key must be a plain word or a string")
            key = key_node.value
            here = (*path, key)
            if key == "<<" and key_node.tag == _IMPLICIT:
                raise self._error(key_node, "merge keys (<<) are not part of YAML 1.2")
            if key in result:
                first = self._document.keys[here]
                raise self._error(
                    key_node,
                    f"the key {key!r} is given twice, first at "
                    f"{self._name}:{first.line}:{first.column}",
                )
            self._document.keys[here] = _mark(key_node)
            result[key] = self._value(value_node, here)
        return result

    def _error(self, node: Node, what: str) -> StackError:
        return _unreadable(self._name, _mark(node), what)


def _mark(node: Node) -> Mark:
    return Mark(node.start_mark.line + 1, node.start_mark.column + 1)


def _syntax_error(name: str, exc: yaml.MarkedYAMLError) -> StackError:
    position = exc.problem_mark or exc.context_mark
    mark = Mark(position.line + 1, position.column + 1) if position else None
    problem = exc.problem or "cannot be read as YAML"
    if "'\\t'" in problem:
        problem = "a tab stands where YAML allows only spaces"
    elif exc.context:
        problem = f"{problem} ({exc.context})"
    return _unreadable(name, mark, problem)


def _unreadable(name: str, mark: Mark | None, what: str) -> StackError:
    place = name if mark is None else f"{name}:{mark.line}:{mark.column}"
    return StackError("RLVR-S101", f"{place}: {what}")


def render_yaml(data: Json) -> str:
    """Return `data` as YAML that `parse_yaml` reads back to equal data, keys in their order."""
    text = yaml.dump(
        data,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=100,
    )
    return str(text)


class _Dumper(yaml.SafeDumper):
    """Writes plain scalars only where both YAML 1.1 and 1.2 read the same value."""

    def ignore_aliases(self, data: object) -> bool:
        """Write equal values out instead of naming them."""
        return True

    def represent_text(self, text: str) -> ScalarNode:
        """Quote every string that would not come back as the same string."""
        is_ambiguous = parse_scalar(text) != text
        return self.represent_scalar(
            "tag:yaml.org,2002:str", text, style="'" if is_ambiguous and "\n" not in text else None
        )


_Dumper.add_representer(str, _Dumper.represent_text)
