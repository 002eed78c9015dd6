"""The plugin: finds the SQL, runs it, compares its rows."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from rlvr_core.api import (
    FailureCategory,
    FinishReason,
    Json,
    Resource,
    RowVerifier,
    Stage,
    Strict,
    Verdict,
    VerifyRow,
    after_reasoning,
)
from rlvr_plugin_sql_exec.answers import Expected, RightAnswer, Rules, from_query, from_rows
from rlvr_plugin_sql_exec.compare import same_rows, same_rows_in_any_column_order
from rlvr_plugin_sql_exec.extract import Found, find_sql
from rlvr_plugin_sql_exec.failures import BadTruthError, QueryError
from rlvr_plugin_sql_exec.sandbox import Budget, Result, Source, run_query
from rlvr_plugin_sql_exec.statement import Statement, read_statement
from rlvr_plugin_sql_exec.truth import Truth, result_rows

MAX_CHARACTERS = 200_000
"""How long what follows the reasoning may be; no honest answer comes near."""

PARSED, EXECUTED, RIGHT_COLUMNS = 0.1, 0.2, 0.3
"""Scores of the layers below the right result."""


class SqlExec(RowVerifier):
    """Judges a query by the rows that it returns."""

    api_version: ClassVar[str] = "1.0"
    resource: ClassVar[Resource] = Resource.CPU

    class Config(Strict):
        """Settings of the verifier."""

        folder: Path | None = Field(
            default=None,
            description="Where the database files of rows lie. Relative to the working directory.",
        )
        column_order: Literal["exact", "any"] = Field(
            default="exact",
            description="exact: columns stand as in the right result. any: they may be moved.",
        )
        score: Literal["result", "layers"] = Field(
            default="result",
            description="result: 1 for the right rows, otherwise 0. layers: a query that is read "
            "scores 0.1, one that runs 0.2, one with the right number of columns 0.3.",
        )
        perturb: int = Field(
            default=0,
            ge=0,
            le=8,
            description="On how many copies with other rows the answer must be right too.",
        )
        seed: int = Field(default=0, description="What the perturbed copies depend on.")
        allow_empty: bool = Field(
            default=False, description="No rows can be right; otherwise such a row is abstained."
        )
        max_rows: int = Field(
            default=10_000, ge=1, le=100_000, description="How many rows a right result may have."
        )
        max_steps: int = Field(
            default=20_000_000,
            ge=1_000,
            description="How many steps of SQLite's machine a query may take, over all databases.",
        )
        max_cpu_s: float = Field(
            default=2.0,
            gt=0,
            le=3600,
            description="How many seconds of processor time it may take, over all databases.",
        )

    GroundTruth = Truth
    config: Config

    def verify_row(self, row: VerifyRow) -> Verdict:
        """Judge one completion."""
        try:
            right = self._right_answer(row.ground_truth)
        except BadTruthError as fault:
            return self.abstain(FailureCategory.BAD_GROUND_TRUTH, message=str(fault))
        text = after_reasoning(row.completion)
        if text is not None and len(text) > MAX_CHARACTERS:
            message = f"the answer has more than {MAX_CHARACTERS:,} characters"
            return self.judge(0.0, FailureCategory.RESOURCE_LIMIT, Stage.EXTRACT, message=message)
        found = None if text is None else find_sql(text)
        cut_off = row.finish_reason is FinishReason.LENGTH
        if found is None:
            failure = FailureCategory.TRUNCATED if cut_off else FailureCategory.NO_ANSWER
            return self.judge(0.0, failure, Stage.EXTRACT)
        if cut_off and not found.closed:
            return self.judge(0.0, FailureCategory.TRUNCATED, Stage.EXTRACT)
        return self._judged(right, found)

    def reference_completion(self, ground_truth: Truth) -> str | None:
        """Return a completion that passes: the right query, where there is one."""
        if ground_truth.query is None:
            return None
        return f"```sql\n{ground_truth.query}\n```"

    def _right_answer(self, truth: Truth) -> RightAnswer:
        rules = Rules(
            copies=self.config.perturb,
            seed=self.config.seed,
            allow_empty=self.config.allow_empty,
            max_rows=self.config.max_rows,
            max_steps=self.config.max_steps,
            max_cpu_s=self.config.max_cpu_s,
        )
        sources = self._sources(truth)
        try:
            if truth.query is not None:
                return from_query(sources, truth.query, rules)
            rows = result_rows(truth.result or [])
            return from_rows(sources[0], rows, rules, ordered=truth.ordered)
        except OSError as error:
            raise BadTruthError(f"a database cannot be read: {error}") from None

    def _sources(self, truth: Truth) -> tuple[Source, ...]:
        if truth.script is not None:
            return tuple(Source(image=image) for image in truth.images())
        if self.config.folder is None:
            raise BadTruthError("the row names a database, and the setting `folder` is missing")
        folder = self.config.folder.resolve()
        paths = [(folder / name).resolve() for name in truth.files]
        for name, path in zip(truth.files, paths, strict=True):
            if not path.is_relative_to(folder) or not path.is_file():
                raise BadTruthError(f"there is no database {name!r} below the verifier's folder")
        return tuple(Source(path=path) for path in paths)

    def _judged(self, right: RightAnswer, found: Found) -> Verdict:
        reached = 0.0
        budget = Budget(self.config.max_steps, self.config.max_cpu_s)
        try:
            statement = read_statement(found.sql)
            for expected in right.expected:
                result = run_query(
                    expected.source, statement.sql, budget, max_rows=expected.rows + 1
                )
                verdict = self._compared(expected, result, statement, ordered=right.ordered)
                if verdict is not None:
                    return verdict
        except QueryError as error:
            if error.stage is Stage.EXECUTE:
                reached = PARSED
            return self._failed(reached, error.failure, error.stage, message=error.message)
        return self.judge(1.0, databases=len(right.expected))

    def _compared(
        self, expected: Expected, result: Result, statement: Statement, *, ordered: bool
    ) -> Verdict | None:
        """Return the verdict on a result that is not right, or None where it is."""
        if result.width != expected.width:
            message = f"it returns {result.width} columns, which is not right"
            return self._failed(EXECUTED, message=message)
        if expected.reads and not result.reads:
            return self._failed(
                EXECUTED, FailureCategory.CONSTRAINT, message="it reads no table: a constant"
            )
        if ordered and expected.rows > 1 and not statement.ordered:
            return self._failed(RIGHT_COLUMNS, message="its rows have to be in order")
        if not result.complete or not self._same(expected, result):
            return self._failed(RIGHT_COLUMNS, message="its rows are not right")
        return None

    def _same(self, expected: Expected, result: Result) -> bool:
        if self.config.column_order == "any":
            return same_rows_in_any_column_order(expected.runs, result.rows, result.width)
        return same_rows(expected.runs, result.rows)

    def _failed(
        self,
        layer: float,
        failure: FailureCategory = FailureCategory.WRONG_ANSWER,
        stage: Stage = Stage.COMPARE,
        **diagnostics: Json,
    ) -> Verdict:
        score = layer if self.config.score == "layers" else 0.0
        return self.judge(score, failure, stage, **diagnostics)
