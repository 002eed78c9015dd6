"""What the right query returns, on each database that an answer is tried on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rlvr_plugin_sql_exec.compare import same_rows, tied_runs
from rlvr_plugin_sql_exec.failures import BadTruthError, QueryError
from rlvr_plugin_sql_exec.perturb import as_image, perturbed
from rlvr_plugin_sql_exec.sandbox import Budget, Row, Source, run_query
from rlvr_plugin_sql_exec.statement import Statement, read_statement

MAX_TRIES = 16
"""How many perturbed copies are looked at beyond those that are taken."""

RUNS_A_DATABASE = 3
"""How often the right query is run on one: as it is, and to find what its order leaves open."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Settings that decide what is right.

    Attributes:
        copies: Perturbed copies of each database.
        seed: What they depend on beside the database.
        allow_empty: Whether no rows can be the right answer.
        max_rows: How many rows a right result may have.
        max_steps: How many steps a query may take.
        max_cpu_s: How much processor time it may take, in seconds.
    """

    copies: int
    seed: int
    allow_empty: bool
    max_rows: int
    max_steps: int
    max_cpu_s: float

    def budget(self, runs: int = 1) -> Budget:
        """Return the work that a query may do in so many runs; the time is for all of them."""
        return Budget(self.max_steps * runs, self.max_cpu_s)


@dataclass(frozen=True, slots=True)
class Expected:
    """What is right on one database.

    Attributes:
        source: The database.
        width: Number of columns.
        runs: The rows, in runs whose inner order does not count.
        reads: Whether an answer has to read a table.
        steps: How many steps the right query took.
    """

    source: Source
    width: int
    runs: tuple[tuple[Row, ...], ...]
    reads: bool
    steps: int = 0

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(map(len, self.runs))


@dataclass(frozen=True, slots=True)
class RightAnswer:
    """What is right, and whether the order of rows counts."""

    expected: tuple[Expected, ...]
    ordered: bool


def from_rows(source: Source, rows: Sequence[Row], rules: Rules, *, ordered: bool) -> RightAnswer:
    """Return the right answer where a data row gives the rows themselves.

    Raises:
        BadTruthError: They cannot judge an answer under the rules.
    """
    if rules.copies:
        raise BadTruthError("the setting `perturb` needs `query` in the ground truth")
    if not rows:
        raise BadTruthError("the right answer has no rows, so it says nothing about columns")
    if len(rows) > rules.max_rows:
        raise BadTruthError(f"the right answer has more than {rules.max_rows:,} rows")
    runs = tuple((row,) for row in rows) if ordered else (tuple(rows),)
    expected = Expected(source, len(rows[0]), runs, reads=True)
    return RightAnswer((expected,), ordered)


@lru_cache(maxsize=8)
def from_query(sources: tuple[Source, ...], sql: str, rules: Rules) -> RightAnswer:
    """Return what the right query says on each database and on perturbed copies of it.

    Raises:
        BadTruthError: The query does not run, depends on more than the data, returns nothing
            anywhere, or says the same on every perturbed copy.
        OSError: A database file cannot be read.
    """
    try:
        statement = read_statement(sql)
        budget = rules.budget(RUNS_A_DATABASE * len(sources))
        found = [_expected(source, statement, budget, rules.max_rows) for source in sources]
    except QueryError as error:
        # What SQLite says would quote the right query.
        reason = f"{error.failure.value} at {error.stage.value}"
        raise BadTruthError(f"the right query fails: {reason}") from None
    if not rules.allow_empty and not any(each.rows for each in found):
        raise BadTruthError("the right query returns no rows")
    copies = [copy for each in found for copy in _copies(each, statement, rules)]
    # What is right must pass itself: an answer has this many steps for all databases together.
    if sum(each.steps for each in (*found, *copies)) > rules.max_steps:
        raise BadTruthError(f"the right query takes more than {rules.max_steps:,} steps")
    return RightAnswer((*found, *copies), statement.ordered)


def _expected(source: Source, statement: Statement, budget: Budget, max_rows: int) -> Expected:
    before = budget.steps
    result = run_query(source, statement.sql, budget, max_rows=max_rows)
    steps = before - budget.steps
    one, other = result, statement.sql
    if statement.ordered:
        # What the order leaves open is what changes when ties are broken this way and that way.
        upwards = statement.with_ties_broken(result.width, "ASC")
        one = run_query(source, upwards, budget, max_rows=max_rows)
        other = statement.with_ties_broken(result.width, "DESC")
    again = run_query(source, other, budget, max_rows=max_rows, reverse=True)
    if not (result.complete and again.complete):
        raise BadTruthError(f"the right query returns more than {max_rows:,} rows")
    if not same_rows([one.rows], again.rows):
        raise BadTruthError(
            "the rows of the right query depend on the order in which tables are read, "
            "or on how ties are broken"
        )
    runs = tied_runs(one.rows, again.rows) if statement.ordered else [one.rows]
    return Expected(source, result.width, tuple(map(tuple, runs)), result.reads, steps)


def _copies(original: Expected, statement: Statement, rules: Rules) -> list[Expected]:
    """Return perturbed copies on which the right query says something else.

    Raises:
        BadTruthError: There are none.
    """
    if not rules.copies:
        return []
    full: list[Expected] = []
    empty: list[Expected] = []
    for copy in _other_answers(original, statement, rules):
        # A copy with rows tells more than one without.
        (full if copy.rows else empty).append(copy)
        if len(full) == rules.copies:
            break
    if not full and not empty:
        raise BadTruthError("the right query says the same on every perturbed copy")
    return [*full, *empty][: rules.copies]


def _other_answers(original: Expected, statement: Statement, rules: Rules) -> Iterator[Expected]:
    image = as_image(original.source)
    tries = rules.copies + MAX_TRIES
    budget = rules.budget(RUNS_A_DATABASE * tries)
    for number in range(tries):
        source = Source(image=perturbed(image, f"{rules.seed}/{number}"))
        try:
            copy = _expected(source, statement, budget, rules.max_rows)
        except (QueryError, BadTruthError):
            continue  # On these rows the query cannot judge; on others it may.
        if not same_rows(original.runs, [row for run in copy.runs for row in run]):
            yield copy
