"""Comparing rows: against an oracle that tries every pairing."""

from __future__ import annotations

import math
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlvr_plugin_sql_exec.compare import (
    RELATIVE_TOLERANCE,
    same_rows,
    same_rows_in_any_column_order,
    tied_runs,
)

NEAR = [1.0, 1.0 + 0.6e-6, 1.0 + 1.2e-6, 1, 2, 2.0, 0.0, 1e-13, -1.0]
CELLS = st.sampled_from([*NEAR, None, "1", "a", b"a", "number", math.inf, 2**60, 2**60 + 1])
ROWS = st.integers(1, 3).flatmap(
    lambda width: st.tuples(*[st.lists(st.tuples(*[CELLS] * width), max_size=4)] * 2)
)


def equal_cells(one, other):
    if isinstance(one, int | float) and isinstance(other, int | float):
        if isinstance(one, int) and isinstance(other, int):
            return one == other
        return math.isclose(one, other, rel_tol=RELATIVE_TOLERANCE, abs_tol=1e-12)
    return type(one) is type(other) and one == other


def equal_lists(one, other):
    return len(one) == len(other) and all(
        all(map(equal_cells, left, right)) for left, right in zip(one, other, strict=True)
    )


def equal_multisets(one, other):
    return any(equal_lists(one, order) for order in permutations(other))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(ROWS)
def test_rows_are_the_same_exactly_when_some_pairing_makes_them_equal(pair):
    one, other = pair
    assert same_rows([one], other) is equal_multisets(one, other)
    assert same_rows([[row] for row in one], other) is equal_lists(one, other)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(ROWS)
def test_columns_may_be_moved_exactly_when_some_order_makes_rows_equal(pair):
    one, other = pair
    width = len([*one, *other, ()][0])
    found = any(
        equal_multisets(one, [tuple(row[column] for column in order) for row in other])
        for order in permutations(range(width))
    )
    assert same_rows_in_any_column_order([one], other, width) is found


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from("abc"), max_size=7), st.randoms(use_true_random=False))
def test_tied_runs_are_as_short_as_can_be(letters, chance):
    rows = [(letter,) for letter in letters]
    again = chance.sample(rows, len(rows))
    runs = tied_runs(rows, again)
    assert [row for run in runs for row in run] == rows
    assert same_rows(runs, again)
    for run in runs:
        assert not any(
            same_rows([run[:cut], run[cut:]], again[: len(run)]) for cut in range(1, len(run))
        )
        again = again[len(run) :]


def test_numbers_are_equal_up_to_a_millionth():
    assert same_rows([[(1e6,)]], [(1e6 + 0.9,)])
    assert not same_rows([[(1e6,)]], [(1e6 + 1.1,)])
    assert not same_rows([[(10**6,)]], [(10**6 + 1,)])
    assert same_rows([[(0.0,)]], [(1e-13,)])
    assert not same_rows([[(0.0,)]], [(1e-11,)])


def test_rows_are_paired_even_if_their_last_digits_sort_them_otherwise():
    one = [(1.0, 2.0), (1.0 + 0.5e-6, 1.0)]
    other = [(1.0 + 0.1e-6, 1.0), (1.0 + 0.4e-6, 2.0)]
    assert same_rows([one], other)
    assert not same_rows([one], [other[0], (1.0, 3.0)])


def test_the_last_digits_of_a_sum_do_not_end_an_order():
    rows, again = [("a", 0.1 + 0.2), ("b", 1.0)], [("a", 0.3), ("b", 1.0)]
    assert tied_runs(rows, again) == [[rows[0]], [rows[1]]]


@pytest.mark.parametrize("width", [2, 12])
def test_columns_that_look_alike_are_told_apart_by_their_rows(width):
    one = [tuple((row + column) % width for column in range(width)) for row in range(width)]
    moved = [tuple(reversed(row)) for row in one]
    assert same_rows_in_any_column_order([one], moved, width)
    wrong = [(*row[:-1], -1) for row in moved]
    assert not same_rows_in_any_column_order([one], wrong, width)


def test_many_columns_that_are_all_alike_end_the_search():
    one = [tuple(range(40)), tuple(range(40))]
    other = [tuple(0 for _ in range(40)), tuple(range(40))]
    assert not same_rows_in_any_column_order([one], other, 40)
    assert same_rows_in_any_column_order([[(1,) * 40]], [(1,) * 40], 40)


def test_many_rows_that_differ_in_their_last_digits_are_the_same():
    one = [(name, number / 7) for number in range(2000) for name in "ab"]
    other = [(name, number / 7 * (1 + 1e-9)) for number in reversed(range(2000)) for name in "ba"]
    assert same_rows([one], other)
    assert not same_rows([one], [*other[:-1], ("b", 1.0)])
