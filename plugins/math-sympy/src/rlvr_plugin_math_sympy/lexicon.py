"""Words, patterns and the expression node of the parser."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Node:
    """One node of an expression.

    Attributes:
        op: ``num``, ``sym``, ``inf``, ``add``, ``mul``, ``div``, ``pow``, ``neg``, ``fact``,
            ``degree``, ``sum``, ``prod``, or the name of a function.
        args: Operands.
        value: The number of ``num``, the name of ``sym``, the bound variable of a ``sum``.
    """

    op: str
    args: tuple[Node, ...] = ()
    value: Fraction | str | None = None


FUNCTIONS = frozenset(
    [
        "sqrt",
        "cbrt",
        "sin",
        "cos",
        "tan",
        "cot",
        "sec",
        "csc",
        "arcsin",
        "arccos",
        "arctan",
        "arccot",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "ln",
        "log",
        "lg",
        "exp",
        "abs",
        "floor",
        "ceil",
        "gcd",
        "lcm",
        "max",
        "min",
    ]
)
POWERED = frozenset(
    ["sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "ln", "log", "lg"]
)
RENAMED = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arccot": "acot"}
GREEK = frozenset(
    [
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "varepsilon",
        "zeta",
        "eta",
        "theta",
        "vartheta",
        "iota",
        "kappa",
        "lambda",
        "mu",
        "nu",
        "xi",
        "rho",
        "sigma",
        "tau",
        "upsilon",
        "phi",
        "varphi",
        "chi",
        "psi",
        "omega",
        "Gamma",
        "Delta",
        "Theta",
        "Lambda",
        "Xi",
        "Sigma",
        "Phi",
        "Psi",
        "Omega",
        "ell",
        "hbar",
    ]
)
WORDS = sorted(FUNCTIONS | GREEK | {"pi", "infinity"}, key=len, reverse=True)
MAX_LETTER_RUN = 3

NUMBER = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d{1,4})(?![\d.]))?")
PYTHON_LITERAL = re.compile(r"0[xXbBoO][0-9A-Fa-f]")
DERIVATIVE = re.compile(r"\s*\{\s*d(?:\^\S{1,3})?\s*[A-Za-z]?\s*\}\s*\{\s*d\s*[A-Za-z]")
COMMAND = re.compile(r"\\([A-Za-z]+)")
SUBSCRIPT = re.compile(r"\s*_\s*(?:\{([A-Za-z0-9,+\- ]{1,20})\}|([A-Za-z0-9]))")
MIXED_TAIL = re.compile(
    r"\s*\\frac\s*(?:\{\s*(\d+)\s*\}|(\d))\s*(?:\{\s*(\d+)\s*\}|(\d))(?!\s*[\^!])"
)
MIXED_PLAIN = re.compile(r"\s+(\d+)\s*/\s*(\d+)(?![\d.^!])")
MULTIPLY = re.compile(r"\s*(?:\*(?!\*)|\\(?:cdot|times|ast)(?![A-Za-z]))")
DIVIDE = re.compile(r"\s*(?:/|\\div(?![A-Za-z]))")
SPACES = re.compile(r"\s*")
