"""What the tests of this plugin share: the plugin class itself, called as core calls it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rlvr_plugin_steps import Steps

from rlvr_core.api import FinishReason, Verdict, VerifyBatch, VerifyRow

Judge = Callable[..., Verdict]


@pytest.fixture(scope="session")
def judge() -> Judge:
    """Return a function that judges one completion against one ground truth."""

    def judged(
        completion: str,
        ground_truth: dict,
        finish_reason: FinishReason = FinishReason.STOP,
        **config: object,
    ) -> Verdict:
        verifier = Steps(Steps.Config(**config))
        truth = Steps.GroundTruth.model_validate(ground_truth)
        row = VerifyRow(
            id="row",
            prompt="",
            completion=completion,
            ground_truth=truth,
            finish_reason=finish_reason,
        )
        (verdict,) = verifier.rlvr_verify(VerifyBatch(rows=[row]))
        return verdict

    return judged
