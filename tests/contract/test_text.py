"""What every verifier of structured answers reads: the text after the reasoning, and its JSON."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvr_core.api import after_reasoning, find_json, read_json
from rlvr_core.api.text import MAX_JSON_DEPTH


@pytest.mark.parametrize(
    ("completion", "rest"),
    [
        ("42", "42"),
        ("<think>a</think>42", "42"),
        ("<think>a</think>b<reasoning>c</reasoning>42", "42"),
        ("[THINK]a[/THINK]42", "42"),
        ("◁think▷a◁/think▷42", "42"),
        ("no opening</think>42", "42"),
        ("<think>a", None),
        ("<think>a</think>b<THINK>c", None),
        ("a < b [c]", "a < b [c]"),
        ("", ""),
    ],
)
def test_only_what_follows_the_last_closed_block_is_left(completion, rest):
    assert after_reasoning(completion) == rest


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1,]", "{'a': 1}", "[NaN]", "[-Infinity]", "[1e999]", "[1] 2", '"\n"', "[01]",
     "[" * 65 + "]" * 65, "9" * 5000, '{"a": 1, "a": 1}', "\ufeff[1]"],
)  # fmt: skip
def test_what_is_not_strict_json_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        read_json(text)


def test_a_repeated_key_is_an_error_or_as_it_stands_last():
    with pytest.raises(ValueError, match="repeats a key"):
        read_json('{"a": {"b": 1, "b": 2}}')
    assert read_json('{"a": {"b": 1, "b": 2}}', duplicate_keys="last") == {"a": {"b": 2}}


def test_brackets_in_strings_are_no_levels():
    text = json.dumps(["[" * 1000, "\\" * 99, '"['])
    assert read_json(text) == json.loads(text)
    assert read_json("[" * MAX_JSON_DEPTH + "]" * MAX_JSON_DEPTH)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('{"a": 1}', [{"a": 1}]),
        ('So {"a": 1}, then [2].', [{"a": 1}, [2]]),
        ('x\n```json\n{"a": 1}\n```\ny', [{"a": 1}]),
        ("```\n42\n```", [42]),
        ("~~~\n null \n~~~", [None]),
        ("```json [1]```", [[1]]),
        (' "text" ', ["text"]),
        ("42", [42]),
        ("it is 42", []),
        ('{"a": 1}\n{"b": 2}', [{"a": 1}, {"b": 2}]),
        ('{"code": "```python\\nx\\n```"}', [{"code": "```python\nx\n```"}]),
        ("the set {x} and the link [see] and \\frac{1}{2}", []),
        ('[open\n```\n{"a": 1}\n```', [{"a": 1}]),
        ('["open\n```\n{"a": 1}\n```', [{"a": 1}]),
        ("", []),
    ],
)
def test_json_is_found_in_prose_and_fences(text, values):
    assert [piece.value for piece in find_json(text) if piece.error is None] == values


@pytest.mark.parametrize(
    "text",
    ['[{"a": 1}, {"b"', '[{"a": 1},]', "[{'a': [1]}]", "{a: [1]}", "[{“a”：[1]}]", '{"a": [1]}}',
     '{"a": NaN, "b": [1]}', '{"a": [1], "a": [2]}', '[[1] [2]]', "[" * 99 + "1" + "]" * 99],
)  # fmt: skip
def test_nothing_is_taken_out_of_broken_json(text):
    pieces = find_json(text)
    assert pieces
    assert all(piece.error for piece in pieces)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=())),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    ),
    indent=st.sampled_from([None, 2]),
)  # fmt: skip
def test_whatever_json_writes_is_found_again(value, indent):
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    assert read_json(text) == value
    for around in ("{}", "```json\n{}\n```", "Here:\n```\n{}\n```\nDone."):
        [piece] = find_json(around.replace("{}", text))
        assert (piece.value, piece.error) == (value, None)


@pytest.mark.parametrize(
    "unit",
    [
        "[",
        "{",
        '{"',
        '"',
        '"\\"',
        "\\",
        "[1]",
        "{}",
        "```\n",
        "```\n[",
        '["',
        "{ ",
        "{a",
        "<think>",
    ],
)
def test_time_grows_with_the_length_only(unit):
    text = (unit * 200_000)[:200_000]
    start = time.process_time()
    find_json(text)
    after_reasoning(text)
    assert time.process_time() - start < 2
