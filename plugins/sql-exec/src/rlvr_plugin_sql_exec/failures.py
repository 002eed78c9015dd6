"""Why there is no result to compare, whoever's query it was."""

from __future__ import annotations

from rlvr_core.api import FailureCategory, Stage


class QueryError(Exception):
    """A query was refused or did not finish.

    Attributes:
        failure: What it did wrong.
        stage: Where that showed.
        message: The same in words; it quotes the query at most, never the database.
    """

    def __init__(self, failure: FailureCategory, stage: Stage, message: str) -> None:
        super().__init__(message)
        self.failure = failure
        self.stage = stage
        self.message = message


class BadTruthError(Exception):
    """The ground truth cannot judge any answer; the text says why."""
