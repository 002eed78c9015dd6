"""The parts that need no sandbox: tests taken apart, values read, output compared."""

from __future__ import annotations

import ast
import contextlib
import time
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from rlvr_plugin_code_docker import CodeDocker
from rlvr_plugin_code_docker.guest.values import TooLarge, Writer
from rlvr_plugin_code_docker.output import is_same_output
from rlvr_plugin_code_docker.session import _as_sent
from rlvr_plugin_code_docker.split import InsideTest, ValueTest, split
from rlvr_plugin_code_docker.values import (
    Items,
    MalformedValueError,
    Opaque,
    TooCostlyError,
    read_value,
)


def sent(value):
    writer = Writer()
    writer.write(value)
    return bytes(writer.out)


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.fractions(),
    st.complex_numbers(allow_nan=False), st.binary(), st.text(st.characters(exclude_categories=())),
    st.decimals(allow_nan=False),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(SCALARS, inner)
        | st.frozensets(SCALARS)
    ),
    max_leaves=20,
)


@settings(deadline=None)
@given(VALUES)
def test_a_value_comes_out_as_it_went_in(value):
    found = read_value(sent(value))
    assert found == value
    assert type(found) is type(value)


def test_a_subclass_comes_out_as_what_it_holds():
    class Seven(int):
        def __eq__(self, other):
            return True

        __hash__ = int.__hash__

    found = read_value(sent([Seven(7), type("Text", (str,), {})("a")]))
    assert [type(one) for one in found] == [int, str]
    assert found == [7, "a"]


@pytest.mark.parametrize("value", [object(), len, int, Opaque, ast])
def test_an_object_equals_nothing(value):
    found = read_value(sent(value))
    assert type(found) is Opaque
    assert found != value
    with pytest.raises(TypeError):
        bool(found)


def test_what_an_iterator_gave_is_no_list_but_makes_one():
    found = read_value(sent(iter([1, 2])))
    assert type(found) is Items
    assert found != [1, 2]
    assert list(found) == [1, 2]


def test_endless_values_are_refused():
    itself: list = []
    itself.append(itself)
    with pytest.raises(TooLarge):
        sent(itself)
    with pytest.raises(TooLarge):
        sent(b"x" * (2 << 20))


@settings(deadline=None)
@given(st.binary() | st.text("NTFifcsbltedgvqmo]0123456789;").map(str.encode))
def test_any_bytes_are_a_value_or_malformed(data):
    with contextlib.suppress(MalformedValueError, TooCostlyError):
        read_value(data)


@pytest.mark.parametrize(
    "data", [b"[" * 9, b"l" * 10**6, b"s99999999;a", b"s-1;", b"i;", b"qi1;i0;"]
)
def test_forged_bytes_are_malformed(data):
    with pytest.raises(MalformedValueError):
        read_value(data)


def test_keys_with_one_hash_are_given_up_soon():
    keys = b"".join(b"i%x;" % (number * (2**61 - 1)) for number in range(60_000))
    start = time.monotonic()
    with pytest.raises(TooCostlyError):
        read_value(b"e" + keys + b"]")
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    ("text", "holes", "values", "holds"),
    [
        ("assert f(2) == 4", ["f(2)"], [4], True),
        ("assert 4 == f(2)", ["f(2)"], [5], False),
        ("assert f(2) == 2 ** 2 and f(3) > 1", ["f(2)", "f(3)"], [4, 2], True),
        ("assert not f('(')", ["f('(')"], [0], True),
        ("assert abs(f(1) - 0.5) < 1e-6", ["f(1)"], [Decimal(1)], None),
        ("assert abs(f(1) - 0.5) < 1e-6", ["f(1)"], [Fraction(1, 2)], True),
        ("assert 'abc' in f()", ["f()"], ["xabcx"], True),
        ("assert sorted(f(3))[-1] == 2", ["f(3)"], [[2, 0, 1]], True),
        ("assert set(f()) == {1, 2}", ["f()"], [[1, 2, 1]], True),
        ("assert isinstance(f(), int)", ["f()"], [True], True),
        ("import math\nassert math.isclose(f(), 1.5)", ["f()"], [1.5], True),
        ("assert f() is None", ["f()"], [None], True),
        ("assert A(1).b().c(2) == (1,)", ["A(1).b().c(2)"], [[1]], False),
        ("assert str(f(1)) == '1'", ["str(f(1))"], ["1"], True),
    ],
)  # fmt: skip
def test_an_assert_is_split_into_calls_and_a_comparison(text, holes, values, holds):
    (test,) = split(text, None)
    assert isinstance(test, ValueTest)
    assert list(test.holes) == holes
    if holds is None:
        with pytest.raises(TypeError):
            test.holds(values)
    else:
        assert test.holds(values) is holds


@pytest.mark.parametrize(
    "text",
    [
        "import numpy\nassert numpy.allclose(f(2), 4)",
        "assert all(f(x) == x for x in range(3))",
        "for x in range(3):\n    assert f(x) == x",
        "def same(a, b):\n    return a == b\nassert same(f(1), 1)",
        "assert isinstance(f(), Shape)",
        "try:\n    f(1)\nexcept ValueError:\n    pass",
    ],
)
def test_any_other_test_runs_inside(text):
    (test,) = split(text, None)
    assert isinstance(test, InsideTest)
    assert test.in_process


def test_an_expected_value_does_not_enter_the_sandbox():
    truth = CodeDocker.GroundTruth.model_validate(
        {
            "tests": [
                "KNOWN = 987654321\ndef check(candidate):\n    assert candidate(1) == 987654321\n"
                "    assert abs(candidate(2) - 987654321.5) < 1\n"
                "    assert 987654321 in candidate(3)"
            ],
            "entry_point": "f",
        }
    )
    assert len(truth.plan()) == 3
    assert "987654321" not in repr([_as_sent(test, 1.0) for test in truth.plan()])
    program = CodeDocker.GroundTruth.model_validate({"tests": [{"stdin": "1", "stdout": "secret"}]})
    assert "secret" not in repr([_as_sent(test, 1.0) for test in program.plan()])


@pytest.mark.parametrize(
    ("printed", "expected", "is_same"),
    [
        ("3\n", "3", True), ("3 \r\n\n", "3\n", True), ("0.50", ".5", True), ("1e2", "100", True),
        ("Yes", "YES", False), ("3\n4", "3 4", False), ("a  b", "a b", True), ("\n3", "3", False),
        ("nan", "NaN", False), ("9" * 200, "9" * 200 + ".0", False), ("1e99999", "1e99999", True),
        ("٣", "3", False), ("", "", True), ("\n\n", "", True), ("0", "", False),
    ],
)  # fmt: skip
def test_output_is_compared_by_line_and_number(printed, expected, is_same):
    assert is_same_output(printed.encode(), expected) is is_same


@pytest.mark.parametrize(
    ("truth", "reason"),
    [
        ({"tests": []}, "at least 1"),
        ({"tests": ["assert True"]}, "test nothing"),
        ({"tests": ["assert f("]}, "test 1 is no Python"),
        ({"tests": ["def check(candidate):\n    assert candidate(1)"]}, "entry_point"),
        ({"tests": ["assert f(1)", {"stdout": "1"}]}, "all test code or all programs"),
        ({"tests": ["assert f(1)"], "test_type": "stdio"}, "all test code or all programs"),
        ({"tests": ["assert f(1)"], "entry_point": "f()"}, "no Python name"),
        ({"tests": ["assert f(1)"], "context": "def f(:"}, "`context` is no Python"),
    ],
)
def test_an_unusable_ground_truth_is_refused_with_the_reason(truth, reason):
    with pytest.raises(ValidationError, match=reason):
        CodeDocker.GroundTruth.model_validate(truth)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"backend": "docker"},
        {"backend": "docker", "image": "python:3.11"},
        {"backend": "bubblewrap", "image": "sha256:" + "0" * 64},
        {"backend": "bubblewrap", "unsafe_local": True},
        {"backend": "local"},
        {"unsafe_local": False},
    ],
)
def test_nothing_but_one_named_sandbox_is_accepted(config):
    with pytest.raises(ValidationError):
        CodeDocker.Config(**config)
