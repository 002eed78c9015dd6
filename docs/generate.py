"""Write the reference pages that can be read off the code: CLI, stack file, hooks, error codes.

Run from anywhere: ``python docs/generate.py``. The page of bundled verifiers is read off a record
of measurements. What stands above the marker line of a page is written by hand and kept; what
stands below is written anew.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import textwrap
import types
import typing
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import annotated_types
from bundled_page import bundled_verifiers
from pydantic import BaseModel
from pydantic_core import PydanticUndefined
from typer.models import ArgumentInfo, OptionInfo

import rlvr_core
from rlvr_core.api import errors, hookspecs
from rlvr_core.api.plugin import Family
from rlvr_core.cli import main as cli
from rlvr_core.config import models
from rlvr_core.config.yaml_source import parse_yaml
from rlvr_core.plugins.stages import STAGES
from rlvr_core.testing.checks import CHECKS, package

DOCS = Path(__file__).parent
SOURCE = Path(rlvr_core.__file__).parent
MARKER = "<!-- Below this line: written by docs/generate.py. -->"


def pages() -> dict[Path, str]:
    """Return the full text of every generated page by its path."""
    parts = {
        "reference/cli.md": cli_reference(),
        "reference/stack-file.md": stack_reference(),
        "reference/hooks.md": hooks_reference(),
        "reference/error-codes.md": errors_reference(),
        "reference/checks.md": checks_reference(),
        "bundled-verifiers.md": bundled_verifiers(),
    }
    found = {}
    for name, generated in parts.items():
        path = DOCS / name
        by_hand, marker, _ = path.read_text("utf-8").partition(MARKER)
        if not marker:
            raise SystemExit(f"{path} has no line {MARKER!r}")
        found[path] = f"{by_hand}{MARKER}\n\n{generated.strip()}\n"
    return found


def cli_reference() -> str:
    """Return one section for each verb of the command line."""
    sections = []
    for verb, (target, _) in cli.VERBS.items():
        if target:
            sections.append(_verb(verb, target))
        for sub_verb, (sub_target, _) in cli.SUB_VERBS.get(verb, {}).items():
            sections.append(_verb(f"{verb} {sub_verb}", sub_target))
    return "\n\n".join(sections)


def _verb(name: str, target: str) -> str:
    module, _, attribute = target.partition(":")
    function = getattr(import_module(module), attribute)
    parameters = [_Parameter(one, hint) for one, hint in _hinted(function)]
    arguments = [one for one in parameters if one.is_argument]
    options = [one for one in parameters if not one.is_argument]
    usage = ["rlvr", name, *(one.usage for one in arguments), *(["[OPTIONS]"] if options else [])]
    lines = [f"## rlvr {name}", "", _paragraphs(inspect.getdoc(function) or ""), ""]
    lines += ["```text", " ".join(usage), "```", ""]
    rows = [(f"`{one.label}`", one.help, one.default) for one in [*arguments, *options]]
    return "\n".join([*lines, *_table(("argument or option", "meaning", "default"), rows)])


def _hinted(function: Any) -> list[tuple[inspect.Parameter, Any]]:
    hints = typing.get_type_hints(function, include_extras=True)
    return [(one, hints[one.name]) for one in inspect.signature(function).parameters.values()]


class _Parameter:
    """One argument or option of a verb, as its function declares it."""

    def __init__(self, parameter: inspect.Parameter, hint: Any) -> None:
        kind, info = typing.get_args(hint)[:2]
        if not isinstance(info, ArgumentInfo | OptionInfo):  # Annotated[X | None, …]
            raise TypeError(f"{parameter.name} is not declared as a typer argument or option")
        self.is_argument = isinstance(info, ArgumentInfo)
        self.help = info.help or ""
        self._is_required = parameter.default is inspect.Parameter.empty
        self._value = parameter.default
        self._is_flag = kind is bool
        dashed = "--" + parameter.name.replace("_", "-")
        # In Annotated[...] typer takes the first name for a default, and sets it right later.
        first = [info.default] if isinstance(info.default, str) else []
        names = ", ".join([*first, *(info.param_decls or ())] or [dashed])
        kinds = (kind, *typing.get_args(kind))
        self._is_list = any(typing.get_origin(one) is list for one in kinds)
        several = [one for one in kinds if one is not type(None)]
        word = {int: "INTEGER", float: "NUMBER", Path: "PATH"}.get(several[-1], "TEXT")
        if self.is_argument:
            self.label = (info.metavar or parameter.name.upper()).replace("[", "").replace("]", "")
        else:
            self.label = names if self._is_flag else f"{names} {info.metavar or word}"

    @property
    def usage(self) -> str:
        """The argument as the usage line shows it."""
        usage = self.label if self._is_required else f"[{self.label}]"
        return f"{usage}..." if self._is_list else usage

    @property
    def default(self) -> str:
        """What holds when it is not given."""
        if self._is_required:
            return "required"
        if self._is_flag:
            return "on" if self._value else "off"
        return "" if self._value is None else f"`{self._value}`"


def stack_reference() -> str:
    """Return one table for the stack and each of its sections."""
    sections = [_model("Top level", "", models.Stack)]
    for name, field in models.Stack.model_fields.items():
        model = _model_of(field.annotation)
        if model is not None and model is not models.PluginEntry:
            sections.append(_model(f"`{name}`", name, model))
            for inner, inner_field in model.model_fields.items():
                deeper = _model_of(inner_field.annotation)
                if deeper is not None and inner == "train":
                    sections.append(_model("A data source", "data.<split>", deeper))
                elif deeper is not None and name != "data":
                    sections.append(_model(f"`{name}.{inner}`", f"{name}.{inner}", deeper))
    skip, by_name = ("name", "config"), ("plugin",)
    sections.append(_model("A plugin entry", "", models.PluginEntry, skip, by_name))
    return "\n\n".join(sections)


def _model(
    title: str,
    prefix: str,
    model: type[BaseModel],
    skip: tuple[str, ...] = (),
    by_name: tuple[str, ...] = (),
) -> str:
    documented = attribute_docstrings(model)
    rows = []
    for name, field in model.model_fields.items():
        if name in skip:
            continue
        key = f"{prefix}.{name}" if prefix else name
        default = "the entry's name" if name in by_name else _field_default(field)
        rows.append((f"`{key}`", _values(field), default, documented[name]))
    lines = [f"## {title}", "", _paragraphs(inspect.getdoc(model) or ""), ""]
    return "\n".join([*lines, *_table(("key", "values", "default", "meaning"), rows)])


def attribute_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstring below each field of a model; "" where there is none."""
    body = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0]
    found = dict.fromkeys(model.model_fields, "")
    statements = list(ast.iter_child_nodes(body))
    for one, following in itertools.pairwise(statements):
        match one, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(ast.Constant(value=str(text))):
                found[name] = " ".join(text.split())
    return found


def _model_of(annotation: Any) -> type[BaseModel] | None:
    for one in (annotation, *typing.get_args(annotation)):
        if inspect.isclass(one) and issubclass(one, BaseModel):
            return one
    return None


def _values(field: Any) -> str:
    annotation, constraints = field.annotation, list(field.metadata)
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        annotation = next(one for one in typing.get_args(annotation) if one is not type(None))
    if typing.get_origin(annotation) is typing.Annotated:
        annotation, *more = typing.get_args(annotation)
        constraints += [item for one in more for item in getattr(one, "metadata", [one])]
    kind = _kind(annotation)
    bounds = [text for one in constraints if (text := _bound(one))]
    return ", ".join([kind, *bounds])


def _kind(annotation: Any) -> str:
    if typing.get_origin(annotation) is typing.Literal:
        return " or ".join(f"`{one}`" for one in typing.get_args(annotation))
    if typing.get_origin(annotation) is list:
        inner = typing.get_args(annotation)[0]
        return (
            "list of plugin entries" if inner is models.PluginEntry else f"list of {_kind(inner)}"
        )
    if annotation is models.PluginEntry:
        return "plugin entry"
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return "mapping"
    if typing.get_origin(annotation) is dict:
        return "mapping"
    return {int: "integer", float: "number", str: "text", bool: "true or false"}[annotation]


def _bound(constraint: Any) -> str:
    signs = {
        annotated_types.Ge: ("≥", "ge"),
        annotated_types.Gt: (">", "gt"),
        annotated_types.Le: ("≤", "le"),
        annotated_types.Lt: ("<", "lt"),
    }
    for kind, (sign, attribute) in signs.items():
        if isinstance(constraint, kind):
            value = getattr(constraint, attribute)
            return f"{sign} {'2^63' if value == 2**63 else value}"
    return "not empty" if isinstance(constraint, annotated_types.MinLen) else ""


def _field_default(field: Any) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if value is None or value is PydanticUndefined or isinstance(value, BaseModel):
        return ""
    if isinstance(value, list):
        return f"`[{', '.join(value)}]`"
    return f"`{value}`"


def hooks_reference() -> str:
    """Return one section for each hook, in the order of the step."""
    sections = []
    for stage in STAGES:
        function = getattr(hookspecs, stage.hook)
        signature = _signature(function)
        lines = [f"## {stage.hook}", "", "```text"]
        lines += [signature, "```", "", _paragraphs(inspect.getdoc(function) or "")]
        sections.append("\n".join(lines))
    return "\n\n".join(sections)


def _signature(function: Any) -> str:
    signature = inspect.signature(function)
    arguments = [f"{one.name}: {one.annotation}" for one in signature.parameters.values()]
    joined = f"{function.__name__}({', '.join(arguments)}) -> {signature.return_annotation}"
    if len(joined) <= 90:
        return joined
    inner = "".join(f"    {one},\n" for one in arguments)
    return f"{function.__name__}(\n{inner}) -> {signature.return_annotation}"


def _paragraphs(docstring: str) -> str:
    """Return a docstring as Markdown: ``:param:`` lines as a list, code in single backticks."""
    text = docstring.replace("``", "`")
    paragraphs = []
    for paragraph in text.split("\n\n"):
        lines: list[str] = []
        for line in paragraph.splitlines():
            field = re.match(r":(?:param (\w+)|returns):\s*(.*)", line)
            if field:
                lines.append(f"- {'`' + field[1] + '`' if field[1] else 'returns'}: {field[2]}")
            elif lines and line.startswith(" "):
                lines[-1] += " " + line.strip()
            else:
                lines.append(line)
        paragraphs.append("\n".join(lines))
    return "\n\n".join(paragraphs)


def errors_reference() -> str:
    """Return one section for each error code."""
    advice = parse_yaml((DOCS / "error_advice.yaml").read_text("utf-8"), "error_advice.yaml").data
    raised = raising_classes()
    sections = []
    for code, meaning in errors.CATALOGUE.items():
        classes = sorted(raised[code], key=lambda one: one.__name__)
        exits = " or ".join(sorted({str(one.exit_code) for one in classes}))
        names = " or ".join(f"`{one.__name__}`" for one in classes)
        sections.append(
            f"## {code}\n\n{meaning[0].upper() + meaning[1:]}.\n\nExit code {exits}, raised as "
            f"{names}.\n\n**What to do.** {' '.join(advice[code].split())}"
        )
    return "\n\n".join(sections)


def checks_reference() -> str:
    """Return one table for the checks that every plugin has, and one for each family."""
    tables = {"Every plugin": package.CHECKS}
    for family, title in (
        (Family.VERIFIERS, "Verifiers"),
        (Family.SAMPLERS, "Samplers"),
        (Family.ADVANTAGE, "Advantage plugins"),
        (Family.MONITORS, "Monitors"),
    ):
        tables[title] = tuple(one for one in CHECKS[family] if one not in package.CHECKS)
    sections = []
    for title, checks in tables.items():
        rows = [(one.number, one.sentence, ", ".join(one.needs)) for one in checks]
        lines = [f"## {title}", "", *_table(("check", "what must hold", "needs"), rows)]
        sections.append("\n".join(lines))
    return "\n\n".join(sections)


@cache
def raising_classes() -> Mapping[str, set[type[errors.RlvrError]]]:
    """Return, for each code that stands in the source, the error classes it is raised as."""
    known = {
        name: one
        for name, one in vars(errors).items()
        if inspect.isclass(one) and issubclass(one, errors.RlvrError)
    }
    found: dict[str, set[type[errors.RlvrError]]] = defaultdict(set)
    for path in sorted(SOURCE.rglob("*.py")):
        if path != SOURCE / "api" / "errors.py":
            for code, name in _codes(ast.parse(path.read_text("utf-8"))):
                found[code].add(known.get(name) or known["StackError"])
    return found


def _codes(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield (code, name of what it is given to); "" where it is not an argument of a class."""
    for node in ast.walk(tree):
        given: list[Any] = []
        name = ""
        if isinstance(node, ast.Call):
            given, name = node.args, ast.unparse(node.func).rpartition(".")[2]
        elif isinstance(node, ast.arguments):
            given = [*node.defaults, *node.kw_defaults]
        for one in given:
            for constant in ast.walk(one) if one is not None else ():
                text = constant.value if isinstance(constant, ast.Constant) else None
                is_direct = constant is one or isinstance(one, ast.IfExp)
                if isinstance(text, str) and text in errors.CATALOGUE and is_direct:
                    yield text, name


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    if not rows:
        return ["No arguments or options."]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    return lines + [f"| {' | '.join(map(_cell, row))} |" for row in rows]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("``", "`").replace("|", "\\|")


def main() -> None:
    """Write every generated page."""
    for path, text in pages().items():
        path.write_text(text, "utf-8")
        print(path.relative_to(DOCS.parent))  # noqa: T201


if __name__ == "__main__":
    main()
