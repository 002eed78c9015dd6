"""One judge, two that must agree, or the median of three."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import median

from rlvr_plugin_llm_judge.chat import Endpoint, Reply, UnansweredError, complete
from rlvr_plugin_llm_judge.prompt import Question, asked_again
from rlvr_plugin_llm_judge.reading import UnreadableError, read_marks
from rlvr_plugin_llm_judge.rubric import Criterion, Marks, combined, score


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one judge said."""

    marks: Marks
    model: str
    """As the endpoint calls it."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a panel said."""

    score: float | None
    """None: two judges differ about passing."""
    marks: dict[str, int | None]
    """None where two judges differ."""
    opinions: Sequence[Opinion]


@dataclass(frozen=True, slots=True)
class Panel:
    """The judges and what they judge by."""

    judges: Sequence[Endpoint]
    rubric: Sequence[Criterion]
    pass_mark: float

    def decide(self, asked: Question, deadline_s: float) -> Decision:
        """Ask every judge, and return what they say together.

        Args:
            asked: The question.
            deadline_s: For all of them, by `time.monotonic`.

        Raises:
            UnansweredError: One of them gave no verdict. The others alone are not the panel.
        """
        opinions = [self._opinion(judge, asked, deadline_s) for judge in self.judges]
        marks = [opinion.marks for opinion in opinions]
        return Decision(self._score(marks), combined(marks, self.rubric), opinions)

    def _score(self, marks: Sequence[Marks]) -> float | None:
        scores = [score(one, self.rubric) for one in marks]
        passing = [float(one) >= self.pass_mark for one in scores]
        if len(scores) == 2 and passing[0] != passing[1]:
            return None
        # Of one score itself, of two that agree their mean, of three the one in the middle.
        return float(Fraction(median(scores)))

    def _opinion(self, judge: Endpoint, asked: Question, deadline_s: float) -> Opinion:
        reply = complete(judge, asked.messages, deadline_s)
        try:
            return self._read(reply, asked)
        except UnreadableError as unreadable:
            messages = asked_again(asked, reply.text, str(unreadable))
            reply = complete(judge, messages, deadline_s)
        try:
            return self._read(reply, asked)
        except UnreadableError as unreadable:
            raise UnansweredError(
                f"{judge.model} gave no verdict, asked twice: {unreadable}"
            ) from None

    def _read(self, reply: Reply, asked: Question) -> Opinion:
        if reply.is_cut:
            raise UnreadableError("it was cut off at max_tokens")
        return Opinion(read_marks(reply.text, asked.tag, self.rubric), reply.model)
