"""What an answer is judged by: criteria with weights, and the score that they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from operator import mul
from statistics import median_low
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

from rlvr_core.api import Strict

Marks: TypeAlias = Mapping[str, int]
"""Criterion name to its mark, 0 to its `levels`."""

TAG_KEY = "tag"
"""Stands in the verdict line beside the criteria, so that none may be called so."""


def _not_the_tag(name: str) -> str:
    if name == TAG_KEY:
        raise ValueError(f"{TAG_KEY!r} stands in the verdict line already")
    return name


class Criterion(Strict):
    """One thing that an answer must do."""

    name: Annotated[str, AfterValidator(_not_the_tag)] = Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")
    text: str = Field(
        min_length=1, max_length=2000, description="What must be so, as the judge reads it."
    )
    weight: float = Field(default=1.0, gt=0, le=1e6, description="Share of the score, relative.")
    levels: int = Field(
        default=1, ge=1, le=10, description="1: judged true or false. n: judged from 0 to n."
    )


CORRECT = Criterion(
    name="correct",
    text="The final answer says the same as the reference. Other wording or another form of the "
    "same thing is fine. Another value, a missing part, or several answers to choose from is not.",
)
"""The rubric of a stack that names none. It needs a reference in every row."""


def score(marks: Marks, criteria: Sequence[Criterion]) -> Fraction:
    """Return the weighted share of the marks, exactly: all of them make 1 whatever the weights."""
    # The shortest text of a float is the number that somebody wrote: 0.1 is one tenth.
    weights = [Fraction(str(criterion.weight)) for criterion in criteria]
    shares = [Fraction(marks[criterion.name], criterion.levels) for criterion in criteria]
    got = sum(map(mul, weights, shares), Fraction())
    return got / sum(weights, Fraction())


def combined(marks: Sequence[Marks], criteria: Sequence[Criterion]) -> dict[str, int | None]:
    """Return one mark a criterion for a panel.

    One judge's mark as it is, two judges' where they are equal (else None), the median of three.
    """
    found: dict[str, int | None] = {}
    for criterion in criteria:
        given = [one[criterion.name] for one in marks]
        differ = len(given) == 2 and given[0] != given[1]
        found[criterion.name] = None if differ else median_low(given)
    return found
