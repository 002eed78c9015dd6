"""Plugins look at all prompts before step 0, and may refuse them."""

from __future__ import annotations

from rlvr_core.api.errors import StackError
from rlvr_core.api.events import Finding, Severity
from rlvr_core.api.verdicts import Json
from rlvr_core.train.loop import Run
from rlvr_core.train.session import StepSession


def audit(run: Run) -> None:
    """Let plugins look at every prompt before step 0.

    Raises:
        StackError: RLVR-S107, one of them refuses the prompts.
    """
    runtime = run.runtime
    session = StepSession(runtime=runtime, step=0, weights_version=0, prompts_drawn=0)
    findings = runtime.dispatcher.audit_prompts(runtime.train_rows, session)
    for name, finding in findings:
        event = {"step": 0, "kind": "prompt-audit", "monitor": name}
        run.log_event({**event, **_described(finding)})
    refusals = [finding for _, finding in findings if finding.severity is Severity.REFUSE]
    if refusals:
        raise StackError(
            "RLVR-S107",
            "the prompts were refused before the first step",
            cause="\n".join(finding.message for finding in refusals),
            fix="change the training data, or take the plugin that refuses out of the stack",
        )


def _described(finding: Finding) -> dict[str, Json]:
    rows = [row.id for row in finding.rows]
    return {"severity": finding.severity.value, "reason": finding.message, "rows": rows[:20]}
