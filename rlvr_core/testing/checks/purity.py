"""Checks that a verdict depends on its row and on nothing else."""

from __future__ import annotations

from rlvr_core.testing.apart.parent import Finding
from rlvr_core.testing.check import LOADS, SHAPED, Check, apart, failed, passed
from rlvr_core.testing.report import Outcome
from rlvr_core.testing.subject import Subject

_COUNTED = (*LOADS, "R10")


def another_process(subject: Subject) -> Finding:
    """Compare two new processes under different hash seeds."""
    one, other = subject.experiment("R33"), subject.keys_under_another_hash_seed()
    for found in (one, other):
        if found.outcome is not Outcome.PASSED:
            return found
    for first, second in zip(one.data["keys"], other.data["keys"], strict=True):
        if first != second:
            return failed(f"two processes with other hash seeds say {first} and {second}")
    return passed(f"{len(one.data['keys'])} rows in two processes with other hash seeds")


def beside_another(subject: Subject) -> Finding:
    """Compare with verdicts of a worker that another verifier has used before."""
    cases = subject.bench_cases
    verdicts = subject.judging.judge_beside_another([case.row for case in cases])
    for case, verdict in zip(cases, verdicts, strict=True):
        alone = subject.golden_verdicts[case.id]
        if (alone.status, alone.score, alone.failure) != (
            verdict.status,
            verdict.score,
            verdict.failure,
        ):
            return failed(
                f"case {case.id} got {alone.status} alone, and {verdict.status} after exact-match"
            )
    return passed(f"{len(cases)} rows in a worker that exact-match had used")


CHECKS = (
    apart("R30", "The same row gets the same verdict twice.", _COUNTED),
    apart("R31", "Rows in another order get their own verdicts.", (*_COUNTED, "R30")),
    apart("R32", "Rows alone get the verdicts that they get in a batch.", (*_COUNTED, "R30")),
    Check("R33", "Two new processes with other hash seeds say the same.", another_process,
          (*_COUNTED, "R30")),
    Check("R34", "Another verifier that was used before changes nothing.", beside_another,
          (*SHAPED, "R30")),
)  # fmt: skip
