"""What the tests of this plugin share: the plugin class itself, called as core calls it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rlvr_plugin_math_sympy import MathSympy

from rlvr_core.api import Verdict, VerifyBatch, VerifyRow

Judge = Callable[..., Verdict]


@pytest.fixture(scope="session")
def judge() -> Judge:
    """Return a function that judges one completion against one answer."""

    def judged(completion: str, answer: object, **config: object) -> Verdict:
        verifier = MathSympy(MathSympy.Config(**config))
        truth = MathSympy.GroundTruth(answer=answer)
        row = VerifyRow(id="row", prompt="", completion=completion, ground_truth=truth)
        (verdict,) = verifier.rlvr_verify(VerifyBatch(rows=[row]))
        return verdict

    return judged


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker also where these tests run outside the repository."""
    config.addinivalue_line("markers", "slow: takes long; run by .ci/run")
