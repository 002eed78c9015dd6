"""A Pratt parser for plain-text and LaTeX arithmetic and algebra. It evaluates nothing."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from rlvr_plugin_math_sympy.guards import MAX_NESTING, MAX_NODES, NotMathsError, is_readable
from rlvr_plugin_math_sympy.lexicon import (
    COMMAND,
    DERIVATIVE,
    DIVIDE,
    FUNCTIONS,
    GREEK,
    MAX_LETTER_RUN,
    MIXED_PLAIN,
    MIXED_TAIL,
    MULTIPLY,
    NUMBER,
    POWERED,
    PYTHON_LITERAL,
    RENAMED,
    SPACES,
    SUBSCRIPT,
    WORDS,
    Node,
)

_ADD, _MUL, _PREFIX, _POW = 10, 20, 25, 40


@lru_cache(maxsize=2048)
def parse(text: str) -> Node:
    """Parse an expression.

    Raises:
        NotMathsError: when `text` is no expression this parser knows, or is too large to read.
    """
    if not is_readable(text):
        raise NotMathsError("too long or too deeply nested")
    parser = _Parser(text)
    node = parser.expression(0)
    parser.skip()
    if parser.position != len(text):
        raise NotMathsError(f"unexpected text at {parser.position}")
    return node


class _Parser:
    """One pass over one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.depth = 0
        self.nodes = 0
        self.bars = 0

    # -- reading ---------------------------------------------------------------------------------

    def skip(self) -> None:
        match = SPACES.match(self.text, self.position)
        self.position = match.end() if match else self.position

    def peek(self) -> str:
        self.skip()
        return self.text[self.position : self.position + 1]

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.position)
        if match is not None:
            self.position = match.end()
        return match

    def expect(self, character: str) -> None:
        if self.peek() != character:
            raise NotMathsError(f"expected {character} at {self.position}")
        self.position += 1

    def node(self, op: str, *args: Node, value: Fraction | str | None = None) -> Node:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise NotMathsError("too many terms")
        return Node(op, args, value)

    # -- expressions -----------------------------------------------------------------------------

    def expression(self, binding: int) -> Node:
        self.deeper()
        left = self.prefix()
        while True:
            found = self.infix(left, binding)
            if found is None:
                break
            left = found
        self.depth -= 1
        return left

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > 3 * MAX_NESTING:
            raise NotMathsError("too deeply nested")

    def prefix(self) -> Node:
        negative = False
        signed = False
        while self.peek() in ("-", "+"):
            negative ^= self.text[self.position] == "-"
            signed = True
            self.position += 1
        operand = self.expression(_PREFIX) if signed else self.atom()
        return self.node("neg", operand) if negative else operand

    def infix(self, left: Node, binding: int) -> Node | None:
        following = self.peek()
        if following == "!" and self.text[self.position : self.position + 2] not in ("!!", "!="):
            self.position += 1
            return self.node("fact", left)
        if following == "°":
            self.position += 1
            return self.node("degree", left)
        if following == "%":
            self.position += 1
            return self.node("div", left, self.node("num", value=Fraction(100)))
        if following == "^" or self.text.startswith("**", self.position):
            if binding > _POW:
                return None
            self.position += 1 if following == "^" else 2
            return self.node("pow", left, self.expression(_POW))
        if following in ("+", "-"):
            return self.sum_or_difference(left, binding)
        return self.product(left, binding)

    def sum_or_difference(self, left: Node, binding: int) -> Node | None:
        if binding >= _ADD:
            return None
        sign = self.text[self.position]
        self.position += 1
        right = self.expression(_ADD)
        right = right if sign == "+" else self.node("neg", right)
        terms = left.args if left.op == "add" else (left,)
        return self.node("add", *terms, right)

    def product(self, left: Node, binding: int) -> Node | None:
        if binding >= _MUL:
            return None
        if self.take(MULTIPLY):
            right = self.expression(_MUL)
        elif self.take(DIVIDE):
            return self.node("div", left, self.expression(_MUL))
        elif self.starts_atom():
            if self.peek().isdigit() and left.op in ("num", "div"):
                raise NotMathsError("two numbers side by side")
            right = self.expression(_MUL)
        else:
            return None
        factors = left.args if left.op == "mul" else (left,)
        return self.node("mul", *factors, right)

    def starts_atom(self) -> bool:
        following = self.peek()
        if following == "|":
            return self.bars == 0
        if following == "\\":
            match = COMMAND.match(self.text, self.position)
            return match is not None and match[1] not in ("rfloor", "rceil", "rangle", "pm", "mp")
        return following.isalnum() or (following in ("(", "{", "[", ".") and following != "")

    # -- atoms -----------------------------------------------------------------------------------

    def atom(self) -> Node:
        self.deeper()
        node = self.bare_atom()
        self.depth -= 1
        return node

    def bare_atom(self) -> Node:
        following = self.peek()
        if following and following in "({[":
            return self.group()
        if following == "|":
            return self.absolute()
        if following.isascii() and (following.isdigit() or following == "."):
            return self.number()
        if following == "\\":
            return self.command()
        if following.isascii() and following.isalpha():
            return self.name()
        raise NotMathsError(f"unexpected character at {self.position}")

    def group(self) -> Node:
        closing = {"(": ")", "{": "}", "[": "]"}[self.text[self.position]]
        self.position += 1
        bars, self.bars = self.bars, 0
        node = self.expression(0)
        self.expect(closing)
        self.bars = bars
        return node

    def absolute(self) -> Node:
        self.position += 1
        self.bars += 1
        node = self.expression(0)
        self.expect("|")
        self.bars -= 1
        return self.node("abs", node)

    def number(self) -> Node:
        if PYTHON_LITERAL.match(self.text, self.position):
            raise NotMathsError("a programming literal")
        match = self.take(NUMBER)
        if match is None:
            raise NotMathsError("a lone point")
        value = Fraction(match[1] if match[1] != "." else "0")
        if match[2]:
            value *= Fraction(10) ** int(match[2])
        elif match[1].isdigit():
            tail = self.take(MIXED_TAIL) or self.take(MIXED_PLAIN)
            if tail is not None:
                value += self.proper_fraction([int(part) for part in tail.groups() if part])
        return self.node("num", value=value)

    @staticmethod
    def proper_fraction(parts: list[int]) -> Fraction:
        above, below = parts
        if above >= below:
            raise NotMathsError("not a mixed number")
        return Fraction(above, below)

    def name(self) -> Node:
        for word in WORDS:
            if self.text.startswith(word, self.position):
                self.position += len(word)
                return self.named(word)
        run = re.match(r"[A-Za-z]+", self.text[self.position :])
        if run is not None and _letters_before_word(run[0]) > MAX_LETTER_RUN:
            raise NotMathsError("a word, not a product of symbols")
        letter = self.text[self.position]
        self.position += 1
        return self.symbol(letter)

    def symbol(self, name: str) -> Node:
        subscript = self.take(SUBSCRIPT)
        if subscript is not None:
            name += "_" + (subscript[1] or subscript[2]).replace(" ", "")
        while self.text[self.position : self.position + 1] == "'":
            name += "'"
            self.position += 1
        return self.node("sym", value=name)

    def named(self, word: str) -> Node:
        if word == "pi":
            return self.symbol("pi")
        if word in ("infty", "infinity"):
            return self.node("inf")
        if word in FUNCTIONS:
            return self.function(word)
        return self.symbol(word)

    # -- commands and functions ------------------------------------------------------------------

    def command(self) -> Node:
        match = self.take(COMMAND)
        if match is None:
            raise NotMathsError("an unknown command")
        name = match[1]
        if name == "frac":
            if DERIVATIVE.match(self.text, self.position):
                raise NotMathsError("a derivative")
            return self.node("div", self.argument(), self.argument())
        if name == "binom":
            return self.node("binom", self.argument(), self.argument())
        if name in ("sum", "prod"):
            return self.ranged(name)
        if name in ("lfloor", "lceil"):
            inner = self.expression(0)
            if self.take(re.compile(rf"\s*\\r{name[1:]}(?![A-Za-z])")) is None:
                raise NotMathsError("an open floor or ceiling")
            return self.node(name[1:], inner)
        if name in FUNCTIONS or name in GREEK or name in ("pi", "infty"):
            return self.named(name)
        raise NotMathsError(f"command {name}")

    def argument(self) -> Node:
        """Read one LaTeX argument: a group, a command, or a single character."""
        following = self.peek()
        if following.isascii() and following.isdigit():
            self.position += 1
            return self.node("num", value=Fraction(following))
        if following.isascii() and following.isalpha():
            self.position += 1
            return self.node("sym", value=following)
        if following == "{":
            return self.group()
        if following == "\\":
            return self.command()
        raise NotMathsError("a missing argument")

    def ranged(self, name: str) -> Node:
        match = self.take(re.compile(r"\s*_\s*\{\s*([A-Za-z])\s*=\s*"))
        if match is None:
            raise NotMathsError("a sum without a range")
        low = self.expression(0)
        self.expect("}")
        self.expect("^")
        high = self.argument()
        body = self.expression(_ADD)
        return self.node(name, low, high, body, value=match[1])

    def function(self, name: str) -> Node:
        name = RENAMED.get(name, name)
        if name == "sqrt":
            return self.root()
        base = None
        power = None
        if name == "log" and self.peek() == "_":
            self.position += 1
            base = self.argument()
        if name in POWERED and self.peek() == "^":
            self.position += 1
            power = self.expression(_POW)
        if power is not None and power.op == "neg" and name in ("sin", "cos", "tan"):
            name, power = "a" + name, None
        args = self.call_arguments(name)
        node = self.node(name, *args) if base is None else self.node("log", *args, base)
        return node if power is None else self.node("pow", node, power)

    def root(self) -> Node:
        index = None
        if self.peek() == "[":
            self.position += 1
            index = self.expression(0)
            self.expect("]")
        following = self.peek()
        latex = self.text[: self.position].rstrip().endswith(("\\sqrt", "]"))
        operand = self.argument() if latex and following not in ("(", "[") else self.plain_operand()
        return self.node("root", operand, index or self.node("num", value=Fraction(2)))

    def plain_operand(self) -> Node:
        return self.group() if self.peek() in ("(", "{") else self.atom()

    def call_arguments(self, name: str) -> list[Node]:
        if self.peek() not in ("(", "{", "["):
            return [self.bare_argument()]
        if name not in ("gcd", "lcm", "max", "min"):
            return [self.group()]
        self.position += 1
        args = [self.expression(0)]
        while self.peek() == ",":
            self.position += 1
            args.append(self.expression(0))
        self.expect(")")
        return args

    def bare_argument(self) -> Node:
        """Read the argument of ``sin 2x cos x``: factors up to the next function or bracket."""
        if self.peek() in ("-", "+"):
            return self.prefix()
        argument = self.expression(_PREFIX + 1)
        while self.starts_atom() and self.peek() not in ("(", "{", "[", "|"):
            rest = self.text[self.position :].lstrip("\\")
            if any(rest.startswith(word) for word in FUNCTIONS):
                break
            argument = self.node("mul", argument, self.expression(_PREFIX + 1))
        return argument


def _letters_before_word(run: str) -> int:
    """Return how many single letters stand before the first known word in `run`."""
    for index in range(len(run)):
        if any(run.startswith(word, index) for word in WORDS):
            return index
    return len(run)
