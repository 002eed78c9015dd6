"""Which row stopped a worker, what it had finished before, who goes free, and the last word."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace

from rlvr_core.api.verdicts import FailureCategory, Status, Verdict
from rlvr_core.verification.board import Progress
from rlvr_core.verification.contract import ContractError
from rlvr_core.verification.grading import error_verdict
from rlvr_core.verification.plan import Instance
from rlvr_core.verification.tasks import Chunk, Task


@dataclass(slots=True)
class Findings:
    """What is known about a chunk whose worker was stopped."""

    finished: list[tuple[Task, Verdict]] = field(default_factory=list)
    suspect: Task | None = None
    bystanders: list[Task] = field(default_factory=list)
    """Tasks that are to be judged again as if nothing had happened."""


def investigate(chunk: Chunk, progress: Progress, records: bytes, *, was_at_work: bool) -> Findings:
    """Sort the tasks of a chunk that its worker did not finish.

    Args:
        chunk: Handed to the worker and not answered.
        progress: What the worker last said about the chunk's lane.
        records: Verdicts in that lane.
        was_at_work: The worker was stopped while working on this chunk, not on one before it.
    """
    findings = Findings()
    if not was_at_work:
        findings.bystanders = list(chunk.tasks)
        return findings
    begun = progress.chunk == chunk.serial
    if begun:
        with suppress(ContractError):  # memory that something else wrote to says nothing
            findings.finished = chunk.decoded(records)
    finished = {id(task) for task, _ in findings.finished}
    remaining = {index: task for index, task in enumerate(chunk.tasks) if id(task) not in finished}
    announced = progress.index if begun else None
    if announced is not None:
        findings.suspect = remaining.pop(announced, None)
    elif len(remaining) == 1:
        _, findings.suspect = remaining.popitem()
    else:
        # Nobody was announced: each goes on its own, and the one at fault gives itself away.
        for task in remaining.values():
            task.is_alone = True
    findings.bystanders = list(remaining.values())
    return findings


def last_word(instance: Instance, cause: FailureCategory, ending: str, printed: str) -> Verdict:
    """Return the verdict on a row that stopped its worker twice, the second time alone.

    Args:
        instance: Its verifier, which says what a passed deadline means.
        cause: ``verifier_timeout`` or ``verifier_crash``.
        ending: How the worker ended.
        printed: The end of what the worker printed.
    """
    if cause is FailureCategory.VERIFIER_CRASH:
        message, latency_s = f"{ending}, twice, the second time alone with this row", 0.0
    else:
        latency_s = instance.timeout_s
        message = f"not finished within {latency_s:g} s, twice, the second time alone"
    verdict = error_verdict(cause, message, printed, latency_s)
    is_punished = cause is FailureCategory.VERIFIER_TIMEOUT and instance.fails_on_timeout
    return replace(
        verdict,
        status=Status.FAILED if is_punished else Status.ERROR,
        score=instance.lowest_score if is_punished else None,
        failure=FailureCategory.RESOURCE_LIMIT if is_punished else cause,
        verifier=instance.name,
        version=instance.version,
    )
