"""The monitor verifier-health: one warning for each verifier and cause, also over a resume."""

from __future__ import annotations

import json
from pathlib import Path

from rlvr_core.api import (
    FailureCategory,
    FinishReason,
    Group,
    Rollout,
    Row,
    RunInfo,
    Segment,
    Status,
    StepEvent,
    Verdict,
)
from rlvr_core.monitors.verifier_health import VerifierHealth, VerifierHealthConfig

ROW = Row(id="a", prompt="?", verifier="judge", ground_truth={})
RUN = RunInfo(folder=Path("run"), total_steps=9, seed=0, manifest={})
WHY = {
    Status.PASSED: None,
    Status.ABSTAINED: FailureCategory.NOT_APPLICABLE,
    Status.ERROR: FailureCategory.VERIFIER_CRASH,
}


def event(*statuses: Status) -> StepEvent:
    rollouts = [
        Rollout(
            row=ROW,
            sample_index=index,
            completion="",
            segments=[Segment(token_ids=[1], logps=[0.0])],
            finish_reason=FinishReason.STOP,
            weights_version=0,
            sampled_under="?",
            trained_under="?",
            verdict=Verdict(status=status, failure=WHY[status], verifier="judge"),
        )
        for index, status in enumerate(statuses)
    ]
    return StepEvent(run=RUN, step=1, groups=[Group(row=ROW, rollouts=rollouts)], metrics={})


def monitor() -> VerifierHealth:
    return VerifierHealth(VerifierHealthConfig(window_steps=2, warn_error_share=0.3))


def resumed(before: VerifierHealth) -> VerifierHealth:
    after = monitor()
    after.load_state(json.loads(json.dumps(before.state())))
    return after


def test_a_share_that_is_passed_over_a_window_is_warned_of_once():
    watching = monitor()
    assert not watching.rlvr_step_end(event(*[Status.PASSED] * 3, Status.ERROR))
    [action] = watching.rlvr_step_end(event(*[Status.PASSED] * 2, *[Status.ERROR] * 2))
    assert "'judge': 3 of the last 8 verdicts have status error" in action.reason
    assert not watching.rlvr_step_end(event(*[Status.ERROR] * 4))
    [action] = watching.rlvr_step_end(event(*[Status.ABSTAINED] * 4))
    assert "4 of the last 8 verdicts have status abstained" in action.reason


def test_a_resume_goes_on_with_the_window_and_warns_of_nothing_twice():
    watching = monitor()
    watching.rlvr_step_end(event(*[Status.PASSED] * 3, Status.ERROR))
    again = resumed(watching)
    [action] = again.rlvr_step_end(event(*[Status.PASSED] * 2, *[Status.ERROR] * 2))
    assert "3 of the last 8 verdicts" in action.reason
    last = resumed(again)
    assert last.state() == again.state()
    assert not last.rlvr_step_end(event(*[Status.ERROR] * 4))
