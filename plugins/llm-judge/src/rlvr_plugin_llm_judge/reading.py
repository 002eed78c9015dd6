"""The verdict in a judge's reply: the last line, and nothing but the last line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rlvr_core.api import Json, after_reasoning, read_json
from rlvr_plugin_llm_judge.rubric import TAG_KEY, Criterion

_FENCE = re.compile(r"`{3,}\w*")


class UnreadableError(ValueError):
    """A reply does not end with a verdict; the text says why."""


def read_marks(reply: str, tag: str, rubric: Sequence[Criterion]) -> dict[str, int]:
    """Return the mark of each criterion.

    The last line that is not blank and no code fence must be the verdict: the tag, every criterion
    and nothing else. Lines before it are ignored, for that is where a judge thinks and quotes the
    answer; but another whole verdict with the tag is the judge's own, and must say the same.

    Args:
        reply: Of the judge, reasoning included.
        tag: Of the question. The answer cannot know it, so no quotation of it is a verdict.
        rubric: The criteria.

    Raises:
        UnreadableError: It is no verdict.
    """
    text = after_reasoning(reply)
    if text is None:
        raise UnreadableError("it ends inside the reasoning")
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not _FENCE.fullmatch(line)]
    if not lines:
        raise UnreadableError("it is empty")
    marks = _marks(_read(lines[-1]), tag, rubric)
    for line in lines[:-1]:
        if line.startswith("{") and tag in line and _contradicts(line, marks, tag, rubric):
            raise UnreadableError("it holds two verdicts that differ")
    return marks


def _read(line: str) -> Json:
    try:
        return read_json(line)
    except ValueError as error:
        raise UnreadableError(f"its last line is not JSON ({error})") from None


def _marks(said: Json, tag: str, rubric: Sequence[Criterion]) -> dict[str, int]:
    names = {TAG_KEY, *(criterion.name for criterion in rubric)}
    if not isinstance(said, dict) or said.keys() != names:
        raise UnreadableError(
            f"its last line must have exactly the keys {', '.join(sorted(names))}"
        )
    if said[TAG_KEY] != tag:
        raise UnreadableError("its last line has another tag")
    return {criterion.name: _mark(said[criterion.name], criterion) for criterion in rubric}


def _mark(value: Json, criterion: Criterion) -> int:
    if criterion.levels == 1:
        if not isinstance(value, bool):
            raise UnreadableError(f"{criterion.name} must be true or false")
        return int(value)
    if type(value) is not int or not 0 <= value <= criterion.levels:
        raise UnreadableError(
            f"{criterion.name} must be a whole number from 0 to {criterion.levels}"
        )
    return value


def _contradicts(line: str, marks: dict[str, int], tag: str, rubric: Sequence[Criterion]) -> bool:
    """Return whether a line is a verdict, and another one. The form that was asked for is none."""
    try:
        return _marks(_read(line), tag, rubric) != marks
    except UnreadableError:
        return False
