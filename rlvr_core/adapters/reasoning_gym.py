"""The verifier ``reasoning-gym``: the library's own scorer of a task, behind a guard.

Some scorers of the library hand the model's text to `eval`, or to sympy's parser, which runs it as
Python too. For their tasks only an answer that is plainly a literal or a formula gets that far.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.metadata
import inspect
import json
import re
import sys
from collections.abc import Callable
from typing import Any

from pydantic import Field

from rlvr_core.api.errors import EnvironmentFault
from rlvr_core.api.plugin import RowVerifier, Strict, VerifyRow
from rlvr_core.api.rollouts import FinishReason
from rlvr_core.api.text import after_reasoning
from rlvr_core.api.verdicts import FailureCategory, Json, Stage, Verdict

ANSWER_TAG = "answer"
"""Where rows that rlvr makes ask for the answer."""

_PARSES = re.compile(r"\bparse_expr\s*\(|\bsympify\s*\(")
_HAS_ITS_OWN_PARSER = re.compile(r"^\s*def parse_expr\b", re.MULTILINE)
_EVALUATES = re.compile(r"(?<!literal_)\b(?:eval|exec)\s*\(")

_FORMULA = re.compile(r"[\w\s.,+\-*/^=<>()√π×÷·−]*")
_MEMBER = re.compile(r"[^\W\d]\w*\s*\.|\.\s*[^\W\d]|__")
_WORD = re.compile(r"\b[^\W\d]{2}\w*")
_FUNCTIONS = frozenset(
    {"sin", "cos", "tan", "sec", "csc", "cot", "asin", "acos", "atan", "sinh", "cosh", "tanh"}
    | {"exp", "log", "ln", "sqrt", "Abs", "abs", "pi", "Integral"}
)
"""The words of more than one letter that a formula may hold."""
_PLAIN = re.compile(r"[\w\s,.+-]*")
_LONGEST_LITERAL = 10_000


class ReasoningGym(RowVerifier):
    """Scores the answer of a task of reasoning-gym as the library does."""

    api_version = "1.0"

    class Config(Strict):
        """Where the answer stands."""

        tag: str | None = Field(
            default=ANSWER_TAG,
            pattern=r"^[A-Za-z][A-Za-z0-9_-]*$",
            description="The answer is what the last <tag>…</tag> holds; null: everything after "
            "the reasoning.",
        )
        pass_mark: float = Field(
            default=1.0, gt=0, le=1, description="A score at or above it passes."
        )

    class GroundTruth(Strict):
        """The task and its entry, as the library made them."""

        task: str = Field(description="Name of the task, such as chain_sum.")
        entry: dict[str, Json] = Field(description="What the library made: question, answer, …")

    config: Config

    def __init__(self, config: Config, *, name: str = "") -> None:
        super().__init__(config, name=name)
        load_library()
        self.pass_mark = config.pass_mark
        self._scorers: dict[str, Scorer] = {}

    @classmethod
    def version_parts(cls, config: Any) -> Json:
        """Return the version of the library, whose scorers decide."""
        load_library()
        return importlib.metadata.version("reasoning-gym")

    def verify_row(self, row: VerifyRow) -> Verdict:
        """Judge one completion."""
        task = row.ground_truth.task
        try:
            scorer = self._scorers.get(task) or Scorer(task)
        except ValueError as exc:
            return self.abstain(FailureCategory.BAD_GROUND_TRUTH, message=str(exc))
        self._scorers[task] = scorer
        answer = self._answer(row.completion)
        if answer is None:
            is_cut = row.finish_reason is FinishReason.LENGTH
            failure = FailureCategory.TRUNCATED if is_cut else FailureCategory.NO_ANSWER
            return self.judge(0.0, failure, Stage.EXTRACT)
        if not scorer.is_safe(answer):
            return self.judge(0.0, FailureCategory.UNSAFE, Stage.PARSE)
        return self.judge(scorer(answer, row.ground_truth.entry))

    def _answer(self, completion: str) -> str | None:
        text = after_reasoning(completion)
        if text is None or self.config.tag is None:
            return text.strip() if text else None
        opening, closing = f"<{self.config.tag}>", f"</{self.config.tag}>"
        before, closed, _ = text.rpartition(closing)
        _, opened, answer = before.rpartition(opening)
        return answer.strip() if closed and opened else None


class Scorer:
    """The library's scorer of one task.

    Raises:
        ValueError: The library has no task of that name.
    """

    def __init__(self, task: str) -> None:
        library = load_library()
        self._score: Callable[[str, dict[str, Json]], Any] = library.get_score_answer_fn(task)
        owner = getattr(self._score, "__self__", None)
        modules = {cls.__module__ for cls in type(owner).__mro__} - {"builtins"}
        sources = [inspect.getsource(sys.modules[name]) for name in sorted(modules)]
        self.is_safe = guard_of("\n".join(sources))
        """Tells whether the scorer can be shown an answer."""

    def __call__(self, answer: str, entry: dict[str, Json]) -> float:
        """Return the score of an answer."""
        return float(self._score(answer, entry))


def guard_of(source: str) -> Callable[[str], bool]:
    """Return the guard for a scorer with this source: whether an answer runs nothing there."""
    if _PARSES.search(source) and not _HAS_ITS_OWN_PARSER.search(source):
        return is_formula
    return is_literal if _EVALUATES.search(source) else lambda answer: True


def is_formula(text: str) -> bool:
    """Return whether sympy's parser, which runs what it reads, would find mathematics only."""
    return (
        _FORMULA.fullmatch(text) is not None
        and _MEMBER.search(text) is None
        and _FUNCTIONS.issuperset(_WORD.findall(text))
    )


def is_literal(text: str) -> bool:
    """Return whether `eval` of a text would give a value and call nothing."""
    if _PLAIN.fullmatch(text) is not None:
        return _MEMBER.search(text) is None
    if len(text) > _LONGEST_LITERAL:
        return False
    for read in (ast.literal_eval, json.loads):
        with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            read(text)
            return True
    return False


def load_library() -> Any:
    """Import reasoning-gym.

    Raises:
        EnvironmentFault: RLVR-E101, it is not installed.
    """
    try:
        import reasoning_gym
    except ImportError as error:
        raise EnvironmentFault(
            "RLVR-E101",
            "tasks of reasoning-gym need the library of that name",
            cause=str(error),
            fix='pip install "rlvr-core[reasoning-gym]"',
        ) from error
    return reasoning_gym
