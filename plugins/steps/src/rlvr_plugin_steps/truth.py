"""What a data row says: the steps of a right solution, and its answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from pydantic import Field, field_validator, model_validator

from rlvr_core.api import Strict
from rlvr_plugin_steps.answers import find_claim, is_same_answer, without_bare_claims
from rlvr_plugin_steps.equations import Equation
from rlvr_plugin_steps.features import Step, read_step
from rlvr_plugin_steps.plain import plain
from rlvr_plugin_steps.splitting import is_content, split_steps, told_by

MAX_STEPS = 64
MAX_SOLUTION_CHARACTERS = 50_000


@dataclass(frozen=True, slots=True)
class Reference:
    """The steps of a right solution, read.

    Attributes:
        steps: In order.
        forgiven: Equations in them that are false, such as 100/3 = 33.
    """

    steps: tuple[Step, ...]
    forgiven: frozenset[Equation]


class Truth(Strict):
    """What a data row must say."""

    steps: str | list[str] = Field(
        description="A right solution: a list of steps, or one text, split as a completion is.",
    )
    answer: str | int | float | list[str] = Field(
        description="The final answer as text, LaTeX or a number; a list means any of these."
    )
    weights: list[float] | None = Field(
        default=None, description="How much each step counts; by default all count the same."
    )

    @field_validator("answer", mode="before")
    @classmethod
    def _is_no_truth_value(cls, answer: object) -> object:
        if isinstance(answer, bool):
            raise ValueError("true and false are no answers; write the text or the number meant")
        return answer

    @model_validator(mode="after")
    def _can_judge(self) -> Self:
        answers = self.answers
        if not answers or not all(is_content(plain(one)) and "\n" not in one for one in answers):
            raise ValueError("an answer must be one line that is not blank")
        self._steps_say_something()
        count = len(self.reference.steps)
        if not 1 <= count <= MAX_STEPS:
            raise ValueError(f"there are {count} steps; 1 to {MAX_STEPS} can be aligned")
        if self.weights is not None:
            if len(self.weights) != count:
                raise ValueError(f"there are {len(self.weights)} weights for {count} steps")
            if min(self.weights) < 0 or not 0 < sum(self.weights) < math.inf:
                raise ValueError("weights are 0 or more, and some must be more")
        return self

    def _steps_say_something(self) -> None:
        if isinstance(self.steps, str):
            if len(self.steps) > MAX_SOLUTION_CHARACTERS:
                raise ValueError(f"`steps` has more than {MAX_SOLUTION_CHARACTERS:,} characters")
            claim = find_claim(self.steps)
            if claim is not None and not self.accepts(claim):
                raise ValueError(f"`steps` ends in the answer {claim[:60]!r}, and `answer` differs")
            return
        if sum(map(len, self.steps)) > MAX_SOLUTION_CHARACTERS:
            raise ValueError(f"`steps` has more than {MAX_SOLUTION_CHARACTERS:,} characters")
        for number, step in enumerate(self.steps, 1):
            if not is_content(plain(step)):
                raise ValueError(f"step {number} says nothing")
            if not is_content(told_by(plain(step))):
                raise ValueError(f"step {number} only states an answer; leave it out of `steps`")

    @property
    def answers(self) -> list[str]:
        """Every accepted answer, as text."""
        if isinstance(self.answer, list):
            return self.answer
        if isinstance(self.answer, float) and self.answer.is_integer():
            return [str(int(self.answer))]
        return [str(self.answer)]

    @property
    def reference(self) -> Reference:
        """The steps, read."""
        return _read(self.steps if isinstance(self.steps, str) else tuple(self.steps))

    @property
    def step_weights(self) -> Sequence[float]:
        """One weight a step."""
        return self.weights or [1.0] * len(self.reference.steps)

    def accepts(self, claim: str) -> bool:
        """Return whether a claimed answer is right."""
        return any(is_same_answer(claim, answer) for answer in self.answers)

    def solution(self) -> str:
        """Return the reference as a completion: its steps, then the answer."""
        if isinstance(self.steps, str):
            text = self.steps.rstrip()
            if find_claim(text) is not None:
                return text
        else:
            lines = [" ".join(step.split()) for step in self.steps]
            text = "\n".join(f"Step {number}: {line}" for number, line in enumerate(lines, 1))
        return f"{text}\n#### {self.answers[0]}"


@lru_cache(maxsize=512)
def _read(steps: str | tuple[str, ...]) -> Reference:
    if isinstance(steps, str):
        pieces = split_steps(plain(without_bare_claims(steps)))
    else:
        pieces = [told_by(plain(step)) for step in steps]
    read = tuple(read_step(piece) for piece in pieces)
    return Reference(read, frozenset[Equation]().union(*(step.wrong for step in read)))
