"""Run another project's tests, note what they ask its scorer, and ask f1-extraction the same."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rlvr_plugin_f1_extraction import F1Extraction

from rlvr_core.api import VerifyBatch, VerifyRow

MAX_ENTITIES = 1_000
"""As many as a ground truth may hold."""
SPAN_LIMIT = 10_000
"""Positions of a sentence, so that several stand one after the other in one text."""


@dataclass(frozen=True)
class Span:
    """One entity: its type, and from where to where it goes, the end left out."""

    type: str
    start: int
    end: int


Sentences = Sequence[Sequence[Span]]


@dataclass(frozen=True)
class Question:
    """What a test asked: the sentences, and the F1 that its scorer answered."""

    test: str
    wanted: Sentences
    claimed: Sentences
    f1: float


class Recorder:
    """A pytest plugin that knows which test is running, and notes the calls of functions."""

    def __init__(self) -> None:
        self.test = ""
        self.questions: list[Question] = []

    @pytest.hookimpl
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self.test = item.nodeid.rpartition("/")[2]

    def note(self, owner: Any, name: str, read: Callable[[tuple, dict, Any], tuple | None]) -> None:
        """Replace ``owner.name`` by a function that also notes what `read` returns of a call."""
        original = getattr(owner, name)

        @functools.wraps(original)
        def noted(*args: Any, **kwargs: Any) -> Any:
            answer = original(*args, **kwargs)
            found = read(args, kwargs, answer)
            if found is not None:
                self.questions.append(Question(self.test, *found))
            return answer

        setattr(owner, name, noted)


def run_and_compare(recorder: Recorder, tests: Sequence[Path], **config: Any) -> None:
    """Run `tests` under pytest, then print how far f1-extraction agrees with what was noted."""
    status = pytest.main(
        ["-q", "-o", "addopts=", "-p", "no:cacheprovider", *map(str, tests)], plugins=[recorder]
    )
    counts: Counter[str] = Counter()
    for question in recorder.questions:
        ours = f1_of(question, **config)
        kind = "same" if ours is not None and abs(ours - question.f1) < 1e-6 else "different"
        kind = "not usable" if ours is None else kind
        counts[kind] += 1
        if kind != "same":
            wanted, claimed = (
                str([list(one) for one in sentences])[:90]
                for sentences in (question.wanted, question.claimed)
            )
            print(f"{kind}  {question.test}: {ours} for {question.f1}: {claimed} against {wanted}")
    print(f"their own tests: exit status {int(status)}")
    print(", ".join(f"{name} {count}" for name, count in sorted(counts.items())))


def f1_of(question: Question, **config: Any) -> float | None:
    """Return the F1 that f1-extraction gives, or None where there are too many entities."""
    wanted, claimed = entities(question.wanted), entities(question.claimed)
    if len(wanted) > MAX_ENTITIES:
        return None
    verifier = F1Extraction(F1Extraction.Config(offsets=True, **config))
    truth = F1Extraction.GroundTruth.model_validate({"entities": wanted})
    row = VerifyRow(id="row", prompt="", completion=json.dumps(claimed), ground_truth=truth)
    return verifier.rlvr_verify(VerifyBatch(rows=[row]))[0].score


def entities(sentences: Sentences) -> list[dict[str, Any]]:
    """Return the entities of several sentences as those of one long text."""
    found = []
    for number, sentence in enumerate(sentences):
        for span in sentence:
            start, end = (number * SPAN_LIMIT + place for place in (span.start, span.end))
            found.append({"text": f"w{start}", "type": span.type, "start": start, "end": end})
    return found
