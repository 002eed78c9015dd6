from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_core.api.errors import StackError
from rlvr_core.config.yaml_source import (
    Mark,
    parse_scalar,
    parse_value,
    parse_yaml,
    render_yaml,
)

SCALARS = {
    "1e-6": 1e-6,
    "2.5E+3": 2500.0,
    "no": "no",
    "on": "on",
    "yes": "yes",
    "012": 12,
    "0o14": 12,
    "0x1F": 31,
    "-7": -7,
    ".5": 0.5,
    "1_000": "1_000",
    "1:30": "1:30",
    "2026-01-01": "2026-01-01",
    "true": True,
    "False": False,
    "tRue": "tRue",
    "~": None,
    "null": None,
    "": None,
    "nUll": "nUll",
    ".inf": math.inf,
    "-.INF": -math.inf,
    "0b11": "0b11",
}


@pytest.mark.parametrize("text", SCALARS)
def test_plain_scalars_follow_yaml_1_2(text: str) -> None:
    expected = SCALARS[text]

    read = parse_yaml(f"a: {text}", "stack.yaml").data["a"]

    assert (type(read), read) == (type(expected), expected)
    assert parse_scalar(text) == expected


def test_quoted_scalars_stay_strings() -> None:
    assert parse_yaml("a: '1e-6'\nb: \"no\"\nc: |\n  12\n", "f").data == {
        "a": "1e-6",
        "b": "no",
        "c": "12\n",
    }


def test_keys_are_strings_as_written() -> None:
    assert parse_yaml("{no: 1, 1e-6: 2, true: 3}", "f").data == {"no": 1, "1e-6": 2, "true": 3}


def test_every_key_and_value_has_its_position() -> None:
    document = parse_yaml("a:\n  - b: 1\n    c: {d: 2}\n", "f")

    assert document.values[("a", 0)] == Mark(2, 5)
    assert document.keys[("a", 0, "c")] == Mark(3, 5)
    assert document.values[("a", 0, "c", "d")] == Mark(3, 12)


def test_anchors_and_aliases_are_allowed() -> None:
    assert parse_yaml("a: &x [1, 2]\nb: *x\n", "f").data == {"a": [1, 2], "b": [1, 2]}


REFUSED = {
    "a: 1\nb: 2\na: 3\n": ("f:3:1", "given twice, first at f:1:1"),
    "a:\n\t- b\n": ("f:2:1", "tab"),
    "a: [1\nb: 2\n": ("f:2:2", "expected ',' or ']'"),
    "": ("f", "is empty"),
    "# nothing but a comment\n": ("f", "is empty"),
    "a: !!python/object/apply:os.system [ls]\n": ("f:1:4", "tags"),
    "a: !!str 3\n": ("f:1:4", "quote the value"),
    "--- {a: 1}\n--- {b: 2}\n": ("f:2:1", "another document"),
    "a: *nowhere\n": ("f:1:4", "undefined alias"),
    "? [a]\n: 1\n": ("f:1:3", "a key must be"),
    "a: &x {b: 1}\nc: {<<: *x}\n": ("f:2:5", "merge keys"),
    "&a [*a]": ("f:1:1", "nested deeper"),
    "[" * 5000: ("f", "nested too deeply"),
    "a: \x01": ("f", "not text that YAML allows"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_read_is_refused_with_its_place(text: str) -> None:
    place, what = REFUSED[text]

    with pytest.raises(StackError) as caught:
        parse_yaml(text, "f")

    assert caught.value.code == "RLVR-S101"
    assert caught.value.message.startswith(f"{place}: ")
    assert what in caught.value.message


def test_an_alias_bomb_is_stopped_before_it_grows() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]

    with pytest.raises(StackError, match="20,000 values"):
        parse_yaml("\n".join(lines), "f")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-6", 1e-6),
        ("no", "no"),
        ("", None),
        ("[dev, transfer]", ["dev", "transfer"]),
        ("{a: 1}", {"a": 1}),
        ("'12'", "12"),
        ("C: drive", "C: drive"),
    ],
)
def test_values_of_the_command_line(text: str, value: object) -> None:
    assert parse_value(text, "command line: x") == value


TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=12)
SCALAR = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False),
    TEXT,
    st.sampled_from([*SCALARS, "<<", "=", "- a", "a: b", "#", "x\ny\n"]),
)
DATA = st.dictionaries(
    TEXT.filter(lambda key: key != "<<"),
    st.recursive(SCALAR, lambda inner: st.lists(inner, max_size=3), max_leaves=6),
    min_size=1,
    max_size=5,
)


@given(DATA)
def test_rendered_data_reads_back_equal(data: dict[str, object]) -> None:
    assert parse_yaml(render_yaml(data), "f").data == data
