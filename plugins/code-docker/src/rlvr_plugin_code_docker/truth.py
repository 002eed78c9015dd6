"""What a data row must say, and the tests that come of it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Self

from pydantic import Field, model_validator

from rlvr_core.api import Strict
from rlvr_plugin_code_docker.split import InsideTest, ValueTest, split, wanted_names


class Program(Strict):
    """One run of the answer as a program."""

    stdin: str = Field(default="", description="What the program reads.")
    stdout: str = Field(description="What it must print.")


@dataclass(frozen=True, slots=True)
class ProgramTest:
    """A run of the whole program: what it reads and what it must print."""

    stdin: str
    stdout: str
    in_process: bool = False


Test = ValueTest | InsideTest | ProgramTest


class Truth(Strict):
    """Tests of one kind, and the code around the answer."""

    tests: list[str | Program] = Field(
        min_length=1,
        description="Test code (asserts, a function `check(candidate)`, or statements that raise "
        "when the answer is wrong), or programs' input and output.",
    )
    test_type: Literal["assert", "stdio"] | None = Field(
        default=None, description="Which of the two; needed nowhere, checked where it is given."
    )
    entry_point: str | None = Field(
        default=None,
        description="Name of the function or class that the answer must define; handed to `check`.",
    )
    context: str = Field(
        default="",
        description="Code that runs before the answer: imports and helpers that the prompt gave. "
        "An answer may also go on where it ends.",
    )
    setup: str = Field(default="", description="Code that runs after the answer, before each test.")

    @model_validator(mode="after")
    def _can_judge(self) -> Self:
        kinds = {"assert" if isinstance(one, str) else "stdio" for one in self.tests}
        if len(kinds) > 1 or (self.test_type and kinds != {self.test_type}):
            raise ValueError("`tests` must be all test code or all programs, as `test_type` says")
        if self.entry_point is not None and not self.entry_point.isidentifier():
            raise ValueError("`entry_point` is no Python name")
        for name in ("context", "setup"):
            _check_syntax(f"`{name}`", getattr(self, name))
        if not self.plan():
            raise ValueError("`tests` test nothing: no assert calls the answer")
        return self

    def plan(self) -> tuple[Test, ...]:
        """Return the tests, one an assert where that can be.

        Raises:
            ValueError: A test is no Python, or has a function `check` without an entry point.
        """
        programs = [
            ProgramTest(one.stdin, one.stdout) for one in self.tests if isinstance(one, Program)
        ]
        return (*programs, *_plan(self._texts(), self.entry_point))

    def wanted(self) -> frozenset[str]:
        """Return names of which an answer should define one."""
        return wanted_names(self._texts(), self.entry_point)

    def _texts(self) -> tuple[str, ...]:
        texts = [one for one in self.tests if isinstance(one, str)]
        return tuple(f"{self.setup}\n{text}" if self.setup.strip() else text for text in texts)


@lru_cache(maxsize=4096)
def _plan(texts: tuple[str, ...], entry_point: str | None) -> tuple[Test, ...]:
    tests: list[Test] = []
    for number, text in enumerate(texts):
        _check_syntax(f"test {number + 1}", text)
        tests += split(text, entry_point)
    return tuple(tests)


def _check_syntax(what: str, text: str) -> None:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{what} is no Python: {error}") from None
