"""Takes tests apart: what runs in the sandbox, and what is compared outside.

``assert call == literal`` becomes the call, which runs inside, and the comparison, whose literal
never enters the sandbox. The same holds for every assert whose calls of the answer can be cut out
(``abs(f(2) - 0.5) < 1e-6``, ``len(f(3)) == 3``, ``not f("(")``). Any other test runs inside as a
whole and is marked so.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence
from dataclasses import dataclass

from rlvr_plugin_code_docker import outside
from rlvr_plugin_code_docker.outside import Evaluator

_BUILTINS = frozenset(vars(builtins))
_VERDICTS = frozenset({"all", "any", "isinstance", "issubclass", "hasattr", "callable"})
"""Builtins whose result is a verdict: cut out, it would be made where the answer runs."""
_REBUILT = (
    ast.Tuple, ast.List, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare,
    ast.Subscript, ast.Slice,
)  # fmt: skip


class UnsupportedError(Exception):
    """The assert cannot be taken apart."""


@dataclass(frozen=True, slots=True)
class ValueTest:
    """Expressions that run inside, and the expression over their values that must be true."""

    setup: str
    """Statements that run in the sandbox before, after the answer."""
    holes: tuple[str, ...]
    expression: ast.expr
    own: frozenset[str]
    """Names of builtins that the answer is to define."""

    @property
    def in_process(self) -> bool:
        """Two values from the sandbox are compared with each other: both are the answer's word."""
        return len(self.holes) > 1

    def holds(self, values: list[object]) -> bool:
        """Return whether the test is passed. What its operations raise is raised."""
        return bool(Evaluator(values).evaluate(self.expression))


@dataclass(frozen=True, slots=True)
class InsideTest:
    """Statements that run beside the answer."""

    imports: str
    body: str
    own: frozenset[str]
    may_exit: bool
    """It ends by leaving the interpreter, as `unittest.main` does."""
    in_process: bool = True


def split(text: str, entry_point: str | None) -> list[ValueTest | InsideTest]:
    """Return the tests of one piece of test code: one an assert where that can be.

    Args:
        text: Asserts, with imports and definitions before them; a function ``check(candidate)``
            with asserts; or any other test code.
        entry_point: Name that is handed to ``check``, and a name that the answer defines.

    Raises:
        SyntaxError: It is no Python.
        ValueError: It has a ``check`` function, and there is no entry point.
    """
    tree = ast.parse(text)
    body = [one for one in tree.body if not _says_nothing(one)]
    check = next((one for one in body if _is_check(one)), None)
    if isinstance(check, ast.FunctionDef):
        return _split_check(body, check, entry_point)
    first = next((i for i, one in enumerate(body) if isinstance(one, ast.Assert)), len(body))
    setup, rest = body[:first], body[first:]
    own = own_builtins(tree, entry_point)
    if rest and all(isinstance(one, ast.Assert) for one in rest):
        return _asserts(setup, rest, own)
    return [_inside(body, own)]


def own_builtins(tree: ast.AST, entry_point: str | None) -> frozenset[str]:
    """Return the names of builtins that the answer is to define.

    A builtin's name in a test means the builtin, unless it is the entry point, or nothing but
    builtins is called at all.
    """
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    own = {entry_point} if entry_point else set()
    has_methods = any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        for node in ast.walk(tree)
    )
    if not entry_point and not has_methods and called <= _BUILTINS:
        own |= called
    return frozenset(own & _BUILTINS)


def wanted_names(texts: Sequence[str], entry_point: str | None) -> frozenset[str]:
    """Return the names that tests call and that an answer may have to define."""
    names = {entry_point} if entry_point else set()
    for text in texts:
        tree = ast.parse(text)
        own = own_builtins(tree, entry_point)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                name = node.func.id
                if name not in _BUILTINS or name in own:
                    names.add(name)
    return frozenset(names)


def _split_check(
    body: Sequence[ast.stmt], check: ast.FunctionDef, entry_point: str | None
) -> list[ValueTest | InsideTest]:
    if not entry_point:
        raise ValueError("a test with a function `check` needs an `entry_point`")
    own = frozenset({entry_point} & _BUILTINS)
    statements = [one for one in check.body if not _says_nothing(one)]
    if not check.args.args or not all(isinstance(one, ast.Assert) for one in statements):
        call = ast.parse(f"check({entry_point})").body
        return [_inside([*body, *call], own)]
    renamed = [_Renamed(check.args.args[0].arg, entry_point).visit(one) for one in statements]
    setup = [one for one in body if one is not check]
    return _asserts(_used(setup, renamed), renamed, own)


def _asserts(
    setup: Sequence[ast.stmt], asserts: Sequence[ast.stmt], own: frozenset[str]
) -> list[ValueTest | InsideTest]:
    tests: list[ValueTest | InsideTest] = []
    defined = _defined(setup)
    for one in asserts:
        assert isinstance(one, ast.Assert)  # noqa: S101 - for the type checker
        try:
            splitter = _Splitter(defined, own)
            expression = splitter.outside(one.test)
        except UnsupportedError:
            tests.append(_inside([*setup, one], own))
            continue
        # An assert without a call of the answer, such as `assert True`, tests nothing.
        if splitter.holes:
            text = "\n".join(map(ast.unparse, setup))
            tests.append(ValueTest(text, tuple(splitter.holes), expression, own))
    return tests


def _inside(body: Sequence[ast.stmt], own: frozenset[str]) -> InsideTest:
    first = next(
        (i for i, one in enumerate(body) if not isinstance(one, ast.Import | ast.ImportFrom)),
        len(body),
    )
    imports, rest = body[:first], body[first:]
    text = "\n".join(map(ast.unparse, rest))
    return InsideTest("\n".join(map(ast.unparse, imports)), text, own, "unittest.main(" in text)


class _Splitter:
    """Cuts the calls of the answer out of one expression."""

    def __init__(self, defined: frozenset[str], own: frozenset[str]) -> None:
        self.holes: list[str] = []
        self._defined = defined
        self._own = own

    def outside(self, node: ast.expr) -> ast.expr:
        """Return the expression with holes for what runs in the sandbox."""
        if isinstance(node, ast.Constant):
            return node
        if isinstance(node, ast.Name) and node.id in outside.TYPES and node.id not in self._own:
            return node
        if isinstance(node, ast.Call):
            return self._call(node)
        if not isinstance(node, _REBUILT) or not outside.is_known_operator(node):
            raise UnsupportedError
        if isinstance(node, ast.Dict) and None in node.keys:
            raise UnsupportedError
        made = type(node)(**{name: getattr(node, name) for name in node._fields})
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                setattr(made, name, self.outside(value))
            elif isinstance(value, list):
                parts = [self.outside(one) if isinstance(one, ast.expr) else one for one in value]
                setattr(made, name, parts)
        return made

    def _call(self, node: ast.Call) -> ast.expr:
        name = outside.function_name(node.func)
        root = _root(node.func)
        if name is not None and name not in self._own:
            if root in self._defined and name != "math.isclose":
                raise UnsupportedError
            if any(isinstance(one, ast.Starred) for one in node.args):
                raise UnsupportedError
            arguments = [self.outside(one) for one in node.args]
            if any(one.arg is None for one in node.keywords):
                raise UnsupportedError
            keywords = [ast.keyword(one.arg, self.outside(one.value)) for one in node.keywords]
            return ast.Call(node.func, arguments, keywords)
        is_builtin = root in _VERDICTS and root not in self._own
        if root is None or root in self._defined or is_builtin:
            raise UnsupportedError
        self.holes.append(ast.unparse(node))
        return outside.hole(len(self.holes) - 1)


class _Renamed(ast.NodeTransformer):
    def __init__(self, old: str, new: str) -> None:
        self._old, self._new = old, new

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._new, node.ctx) if node.id == self._old else node


def _root(node: ast.expr) -> str | None:
    """Return the name that a chain of attributes and calls begins with."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return None
    return node.id


def _defined(statements: Sequence[ast.stmt]) -> frozenset[str]:
    """Return the names that imports, functions and classes of a test define."""
    names = set()
    for one in statements:
        if isinstance(one, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in one.names}
        elif isinstance(one, ast.FunctionDef | ast.ClassDef):
            names.add(one.name)
    return frozenset(names)


def _used(setup: Sequence[ast.stmt], asserts: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of the setup without assignments that nothing reads."""
    read = {
        node.id
        for one in (*setup, *asserts)
        for node in ast.walk(one)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    return [one for one in setup if not isinstance(one, ast.Assign) or _targets(one) & read]


def _targets(assignment: ast.Assign) -> set[str]:
    names = (node for target in assignment.targets for node in ast.walk(target))
    return {node.id for node in names if isinstance(node, ast.Name)}


def _is_check(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.FunctionDef) and statement.name == "check"


def _says_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Pass):
        return True
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
