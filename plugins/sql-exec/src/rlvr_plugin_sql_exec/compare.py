"""Whether two results are the same.

Integers, texts and bytes are compared exactly, other numbers at a relative tolerance, and NULL
equals NULL. Rows form a multiset; where the right query orders, a list of multisets, one for each
run of rows that its order leaves open.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from rlvr_plugin_sql_exec.sandbox import Cell, Row

RELATIVE_TOLERANCE = 1e-6
ABSOLUTE_TOLERANCE = 1e-12
"""For sums that should be 0, which a relative tolerance never calls equal."""

MAX_LOOSE_ROWS = 100
"""How many rows that equal others only within the tolerance are paired off one by one."""

MAX_COLUMN_TRIALS = 300
"""How many beginnings of column orders are tried."""

Runs = Sequence[Sequence[Row]]


def tied_runs(rows: Sequence[Row], again: Sequence[Row]) -> list[list[Row]]:
    """Cut ordered rows into the shortest runs that hold the same rows both times.

    Args:
        rows: The rows of a query that orders them.
        again: The same rows, as they come when tables are read in another order: what the ORDER
            BY does not tell apart stands in another order then.
    """
    runs: list[list[Row]] = []
    open_rows: list[Row] = []
    difference: Counter[Row] = Counter()
    for row, other in zip(rows, again, strict=True):
        open_rows.append(row)
        for each, sign in ((_rounded(row), 1), (_rounded(other), -1)):
            difference[each] += sign
            if difference[each] == 0:
                del difference[each]
        if not difference:
            runs.append(open_rows)
            open_rows = []
    return [*runs, open_rows] if open_rows else runs


def _rounded(row: Row) -> Row:
    """Return a row without the last digits, which change with the order of a sum."""
    return tuple(float(f"{cell:.9g}") if isinstance(cell, float) else cell for cell in row)


def same_rows(wanted: Runs, found: Sequence[Row]) -> bool:
    """Return whether rows are the wanted ones, with columns in the same order."""
    if len(found) != sum(map(len, wanted)):
        return False
    start = 0
    for run in wanted:
        if not _same_multiset(run, found[start : start + len(run)]):
            return False
        start += len(run)
    return True


def same_rows_in_any_column_order(wanted: Runs, found: Sequence[Row], width: int) -> bool:
    """Return whether rows of `width` columns are the wanted ones after moving whole columns."""
    trials = iter(range(MAX_COLUMN_TRIALS))
    columns = list(zip(*found, strict=True)) if found else [()] * width

    def completed(chosen: tuple[int, ...]) -> bool:
        if len(chosen) == width:
            return True
        tried: set[tuple[Cell, ...]] = set()
        for column in range(width):
            # Equal columns can stand for one another.
            if column in chosen or columns[column] in tried:
                continue
            tried.add(columns[column])
            if next(trials, None) is None:
                return False
            longer = (*chosen, column)
            fits = same_rows(_first_columns(wanted, len(longer)), _picked(found, longer))
            if fits and completed(longer):
                return True
        return False

    return completed(())


def _first_columns(runs: Runs, count: int) -> list[list[Row]]:
    return [[row[:count] for row in run] for run in runs]


def _picked(rows: Sequence[Row], columns: Sequence[int]) -> list[Row]:
    return [tuple(row[column] for column in columns) for row in rows]


def _same_multiset(one: Sequence[Row], other: Sequence[Row]) -> bool:
    """Return whether two collections of as many rows can be paired off."""
    # In Python 1 == 1.0 and b"a" != "a", which is what is wanted here.
    left, right = Counter(one), Counter(other)
    only_left = list((left - right).elements())
    only_right = list((right - left).elements())
    if not only_left:
        return True
    whole = _whole_number_columns([*only_left, *only_right])
    groups: dict[Row, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((only_left, only_right)):
        for row in rows:
            groups[_without_fractions(row, whole)][side].append(row)
    return all(_can_be_paired(*group) for group in groups.values())


def _whole_number_columns(rows: Sequence[Row]) -> frozenset[int]:
    """Return the columns that hold no floating-point number, where nothing is rounded."""
    return frozenset(
        column
        for column in range(len(rows[0]))
        if not any(isinstance(row[column], float) for row in rows)
    )


def _without_fractions(row: Row, whole: frozenset[int]) -> Row:
    return tuple(
        "number" if column not in whole and isinstance(cell, int | float) else _tagged(cell)
        for column, cell in enumerate(row)
    )


def _tagged(cell: Cell) -> Cell:
    return f"text {cell}" if isinstance(cell, str) else cell


def _can_be_paired(one: Sequence[Row], other: Sequence[Row]) -> bool:
    if len(one) != len(other):
        return False
    pairs = zip(sorted(one, key=_numbers), sorted(other, key=_numbers), strict=True)
    if all(_close(left, right) for left, right in pairs):
        return True
    return len(one) <= MAX_LOOSE_ROWS and _has_perfect_matching(one, other)


def _numbers(row: Row) -> list[float]:
    return [cell for cell in row if isinstance(cell, int | float)]


def _close(one: Row, other: Row) -> bool:
    return all(_close_cells(left, right) for left, right in zip(one, other, strict=True))


def _close_cells(one: Cell, other: Cell) -> bool:
    if isinstance(one, float) and isinstance(other, int | float):
        return _close_numbers(one, other)
    if isinstance(one, int) and isinstance(other, float):
        return _close_numbers(one, other)
    return one == other


def _close_numbers(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=RELATIVE_TOLERANCE, abs_tol=ABSOLUTE_TOLERANCE)


def _has_perfect_matching(one: Sequence[Row], other: Sequence[Row]) -> bool:
    """Return whether each row can have a close one of its own (Kuhn's augmenting paths)."""
    close = [[index for index, right in enumerate(other) if _close(left, right)] for left in one]
    owner: dict[int, int] = {}

    def placed(left: int, seen: set[int]) -> bool:
        for right in close[left]:
            if right not in seen:
                seen.add(right)
                if right not in owner or placed(owner[right], seen):
                    owner[right] = left
                    return True
        return False

    return all(placed(left, set()) for left in range(len(one)))
