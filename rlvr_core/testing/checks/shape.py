"""Checks of the form of verdicts."""

from __future__ import annotations

from rlvr_core.testing.check import LOADS, apart

_COUNTED = (*LOADS, "R10")

CHECKS = (
    apart("R10", "A batch gets one verdict a row."),
    apart("R11", "A batch of no rows gets no verdicts."),
    apart("R12", "Batches of 1 and of 257 rows are judged alike.", _COUNTED),
    apart("R13", "Scores are finite and in score_range.", _COUNTED),
    apart("R14", "Status, score, failure and pass mark agree.", (*_COUNTED, "R13")),
    apart("R15", "Verdicts pickle; diagnostics are JSON of 4 KiB at most.", _COUNTED),
    apart("R16", "Judging a row does not change it.", _COUNTED),
)
