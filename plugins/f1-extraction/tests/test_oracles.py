"""The same F1 as seqeval and nervaluate say, where they are installed and mean the same."""

from __future__ import annotations

import json
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

WORDS = 8
TYPES = ("PER", "LOC", "ORG")


@st.composite
def mentions(draw) -> list[tuple[int, int, str]]:
    """Return mentions in a text of eight words, as (first word, word after the last, type)."""
    found, position = [], 0
    while position < WORDS:
        position += draw(st.integers(0, 3))
        end = position + draw(st.integers(1, 3))
        if end > WORDS:
            break
        found.append((position, end, draw(st.sampled_from(TYPES))))
        position = end
    return found


def entities(spans: list[tuple[int, int, str]]) -> list[dict]:
    """Return the entities of a text in which every word is three characters long."""
    text = " ".join(f"w{number}w" for number in range(WORDS))
    return [
        {"text": text[a * 4 : b * 4 - 1], "type": kind, "start": a * 4, "end": b * 4 - 1}
        for a, b, kind in spans
    ]


def tags(spans: list[tuple[int, int, str]]) -> list[str]:
    found = ["O"] * WORDS
    for start, end, kind in spans:
        found[start:end] = [f"I-{kind}"] * (end - start)
        found[start] = f"B-{kind}"
    return found


def f1(judge, claimed, wanted, **config: object) -> float:
    return judge(json.dumps(entities(claimed)), {"entities": entities(wanted)}, **config).score


@settings(
    max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(claimed=mentions(), wanted=mentions())
def test_exact_f1_is_that_of_seqeval(judge, claimed, wanted):
    metrics = pytest.importorskip("seqeval.metrics", reason="seqeval is not installed")
    if not claimed and not wanted:
        assert f1(judge, claimed, wanted, offsets=True) == 1
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = metrics.f1_score([tags(wanted)], [tags(claimed)])
    assert f1(judge, claimed, wanted, offsets=True) == pytest.approx(theirs)


@settings(
    max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(claimed=mentions(), wanted=mentions())
def test_exact_f1_is_the_strict_one_of_nervaluate(judge, claimed, wanted):
    nervaluate = pytest.importorskip("nervaluate", reason="nervaluate is not installed")
    if not wanted:
        # It fails on a text without entities.
        assert f1(judge, claimed, wanted, offsets=True) == float(not claimed)
        return
    evaluator = nervaluate.Evaluator([tags(wanted)], [tags(claimed)], list(TYPES), loader="list")
    theirs = evaluator.evaluate()["overall"]["strict"].f1
    assert f1(judge, claimed, wanted, offsets=True) == pytest.approx(theirs)
