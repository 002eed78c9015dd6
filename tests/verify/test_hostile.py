"""Whatever a completion holds, every shipped verifier gives a verdict and loses no worker."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from supervision import entry

from rlvr_core.api.plugin import Family
from rlvr_core.config.models import VerificationSection
from rlvr_core.plugins.resolve import resolve_plugin
from rlvr_core.testing.hostile_texts import filled, hostile_texts
from rlvr_core.verification.engine import VerifyEngine
from rlvr_core.verification.rows import RawRow

BATCH = 50
TEXTS, TEXTS_SLOW, MEGABYTES_SLOW = 200, 10_000, 50
# Shrinking a batch takes minutes, and the message names the text.
QUIET = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "phases": [Phase.generate],
}
WANTED = {
    "exact-match": {"answer": "yes"},
    "math-sympy": {"answer": "x^2+1"},
    "ifeval": {
        "constraints": [
            {"type": "detectable_format:json_format", "kwargs": {}},
            {"type": "language:response_language", "kwargs": {"language": "en"}},
            {"type": "change_case:english_lowercase", "kwargs": {}},
        ]
    },
    "f1-extraction": {"entities": [{"text": "word", "type": "PER"}], "source": "one word"},
    "json-schema": {
        "schema": {
            "type": "object",
            "properties": {"a": {"type": "string", "pattern": "^(\\w+ ?)+$"}},
            "required": ["a"],
        }
    },
    "steps": {"steps": ["12 * 8 = 96", "96 / x = 24", "so words agree"], "answer": "x = 4"},
}
"""A ground truth for each verifier that judges text in its own process."""


class Judge:
    """One verifier in one worker process, with the deadline that a stack gives by default."""

    def __init__(self, engine: VerifyEngine, name: str) -> None:
        self.engine, self.name = engine, name

    def check(self, texts: Sequence[str]) -> None:
        rows = [
            RawRow(id=str(index), completion=text, ground_truth=WANTED[self.name])
            for index, text in enumerate(texts)
        ]
        for text, verdict in zip(texts, self.engine.judge(self.name, rows), strict=True):
            assert verdict.is_judgement, (text[:80], verdict)
            assert 0 <= verdict.score <= 1
        assert self.engine.health()[self.name].restarts == 0, texts


@pytest.fixture(scope="module", params=WANTED)
def judge(request):
    """Start a worker for one verifier; skip those that are not installed."""
    name = request.param
    if not any(one.name == name for one in entry_points(group="rlvr.verifiers")):
        pytest.skip(f"{name} is not installed")
    ref = resolve_plugin(Family.VERIFIERS, name, {})
    with VerifyEngine([(ref, entry(ref))], VerificationSection(workers=1)) as engine:
        yield Judge(engine, name)


BATCHES = st.lists(hostile_texts(), min_size=BATCH, max_size=BATCH)


@settings(max_examples=TEXTS // BATCH, derandomize=True, **QUIET)
@given(texts=BATCHES)
def test_hostile_texts_get_a_verdict_and_cost_no_worker(judge, texts):
    judge.check(texts)


@pytest.mark.slow
@settings(max_examples=TEXTS_SLOW // BATCH, **QUIET)
@given(texts=BATCHES)
def test_ten_thousand_hostile_texts_get_a_verdict_and_cost_no_worker(judge, texts):
    judge.check(texts)


@pytest.mark.slow
@settings(max_examples=MEGABYTES_SLOW, **QUIET)
@given(unit=hostile_texts().filter(bool))
def test_fifty_hostile_megabytes_get_a_verdict_and_cost_no_worker(judge, unit):
    judge.check([filled(unit)])
