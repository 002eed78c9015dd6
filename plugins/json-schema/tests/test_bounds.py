"""Patterns and formats: their meaning, and that no text makes them slow."""

from __future__ import annotations

import json
import re
import time

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlvr_plugin_json_schema.formats import CHECKS
from rlvr_plugin_json_schema.keywords import DIALECTS, TooCostlyError, canonical, errors_of
from rlvr_plugin_json_schema.patterns import matches
from rlvr_plugin_json_schema.schema import read_schema

LIMIT_S = 10.0  # the deadline a stack gives by default


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("b", "abc", True),
        ("^a$", "a\n", False),
        ("^.$", "\n", False),
        ("^.$", "\u2028", False),
        ("^[^x]$", "\n", True),
        (r"^\d$", "٣", False),
        (r"^\w$", "é", False),
        (r"^\s$", "\u00a0", True),
        (r"^\s$", "\ufeff", True),
        (r"^\S$", "\u3000", False),
        (r"^[\S]$", "a", True),
        (r"^[\S]$", "\u2003", False),
        (r"^[^\s]$", "\u2003", False),
        (r"^\u65e5$", "日", True),
        (r"^\ud83d\ude00$", "😀", True),
        (r"^\u{1F600}$", "😀", True),
        (r"^\x41\cJ$", "A\n", True),
        (r"^\0$", "\0", True),
        (r"^[\b]$", "\b", True),
        (r"\bfoo\b", "a foo b", True),
        (r"^\p{L}+$", "日é", True),
        (r"^\p{Letter}+$", "日1", False),
        (r"^\p{Script=Greek}$", "λ", True),
        (r"^\P{Nd}$", "5", False),
        (r"^\/\-\.$", "/-.", True),
        (r"^[[]$", "[", True),
        (r"^[[:alpha:]]$", "a]", True),
        (r"^[^]$", "\n", True),
        (r"[]", "a", False),
        (r"^(?<year>\d{4})$", "2024", True),
        (r"^(?:a|b){2,3}?$", "aba", True),
        ("^😀$", "😀", True),
        ("^.$", "\ud800", True),
    ],
)
def test_patterns_mean_what_ecma_262_says(pattern, text, found):
    assert matches(pattern, text) is found


SIMPLE = st.recursive(
    st.sampled_from(["a", "b", "0", "[ab]", "[^a]", r"\d", r"\w", "^", "$", r"\."]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from("*+?")).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
    ),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(pattern=SIMPLE, text=st.text("ab0_.", max_size=8))
def test_patterns_that_mean_the_same_in_python_agree_with_it(pattern, text):
    assert matches(pattern, text) == (re.search(pattern, text) is not None)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^(a+)+$", "a" * 150_000 + "b"),
        (r"^(a|a)*$", "a" * 150_000 + "b"),
        (r"^(\w+\s?)*$", "word " * 30_000 + "!"),
        (r"(x+x+)+y", "x" * 150_000),
        (r"^([a-zA-Z0-9]+[._-]?)+@", "a." * 75_000),
        (r"(.*)*(.*)*z", "a" * 150_000),
    ],
)
def test_no_text_makes_a_pattern_slow(judge, pattern, text):
    start = time.process_time()
    for schema, value in (
        ({"type": "string", "pattern": pattern}, text),
        ({"type": "object", "propertyNames": {"pattern": pattern}}, {text: 1}),
        ({"patternProperties": {pattern: False}, "additionalProperties": False}, {text: 1}),
        ({"format": "regex"}, "(" + pattern),
    ):
        assert judge(json.dumps(value), {"schema": schema}).score == 0
    assert time.process_time() - start < LIMIT_S


ADDRESS = ".".join("1234")
TEXTS = {
    "date": (["2024-02-29", "0001-01-01"], ["2023-02-29", "2024-13-01", "24-01-01", "٢٠٢٤-01-01"]),
    "time": (["08:30:06Z", "23:59:60Z", "08:30:06.5+02:00"],
             ["24:00:00Z", "08:30:06", "22:59:60Z"]),
    "date-time": (["1990-12-31t23:59:60z", "1990-12-31T15:59:60-08:00"], ["1990-02-31T15:59:59Z",
                  "1990-12-31 15:59:59Z", "1990-12-31T15:59:59"]),
    "duration": (["P4DT12H30M5S", "P2W", "PT36H", "P1Y"], ["P", "P1D2H", "P2D1Y", "PT", "4DT"]),
    "email": (["a@b.example", '"a b"@c.example', f"a@[{ADDRESS}]", "a@[IPv6:::1]"],
              ["a", "a@", "@b", "a b@c.example", ".a@b.example", "a@b_c", "a@[1.2.3]"]),
    "idn-email": (["実例@実例.例", "a@b.example"], ["実例", "@例"]),
    "hostname": (["a.b", "xn--4gbwdl.xn--wgbh1c", "a" * 63], ["-a", "a_b", "a" * 64, "a..b", "",
                 "xn--X", "a.", "a" * 254]),
    "idn-hostname": (["実例.例", "a.b"], ["〮실례.테스트", "", "-a"]),
    "ipv4": ([ADDRESS],
             ["1.2.3", f"{ADDRESS}56", f"0{ADDRESS}", ADDRESS + "\n", ADDRESS.replace("1", "१")]),
    "ipv6": (["::1", "1:2:3:4:5:6:7:8"], ["12345::", "fe80::a%eth1", "1:2", ":::"]),
    "uri": (["http://a.example/b?c=d#e", "urn:a:b", "mailto:a@b.example", "http://[::1]:80/"],
            ["//a", "a/b", "http:// a", "http://a.example/\\", "http://[zz]/", "1a:b", ""]),
    "uri-reference": (["//a", "a/b", "#f", "", "?q"], ["\\a", "a b", "#a#b", "1a:b"]),
    "iri": (["http://ƒøø.example/∂"], ["/∂", "http://a.example b"]),
    "iri-reference": (["/∂é"], ["\\∂"]),
    "uri-template": (["http://a.example/{b}{?c,d*,e:3}"], ["http://a.example/{b", "{b c}", "}"]),
    "uuid": (["2EB8AA08-aa98-11ea-b4aa-73b441d16380"], ["2eb8aa08aa9811eab4aa73b441d16380", "x"]),
    "json-pointer": (["", "/a~0b/~1", "/\n"], ["a", "/~", "/~2", "#/a"]),
    "relative-json-pointer": (["0", "1/a", "2#", "0+1/a"], ["/a", "01", "-1", "0##"]),
    "regex": (["^a$", ""], ["(", "a**", "(?=a)"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKS)
def test_every_format_tells_right_from_wrong(name):
    right, wrong = TEXTS[name]
    assert [text for text in right if not CHECKS[name](text)] == []
    assert [text for text in wrong if CHECKS[name](text)] == []


@pytest.mark.parametrize("name", CHECKS)
def test_no_text_makes_a_format_slow_or_fail(judge, name):
    start = time.process_time()
    for unit in ("a", "a.", "1", ":", "/", "%41", "{a}", "~0", "é", "(", "[", "\ud800", "@", "-"):
        text = (unit * 150_000)[:150_000]
        assert judge(json.dumps(text), {"schema": {"format": name}}).is_judgement
    assert judge("5", {"schema": {"format": name}}).score == 1
    assert time.process_time() - start < LIMIT_S


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, 0.5, "", "1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "x-1"]), inner, max_size=3)
    ),
    max_leaves=8,
)
SCHEMAS = st.fixed_dictionaries(
    {},
    optional={
        "uniqueItems": st.booleans(),
        "multipleOf": st.sampled_from([0.5, 1, 2]),
        "properties": st.fixed_dictionaries({}, optional={"a": st.just({"type": "integer"})}),
        "patternProperties": st.dictionaries(
            st.sampled_from(["^x-", "b"]), st.sampled_from([{"type": "string"}, False]), max_size=2
        ),
        "additionalProperties": st.sampled_from([False, True, {"type": "null"}]),
        "pattern": st.sampled_from(["1", "^$"]),
    },
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(value=VALUES, schema=SCHEMAS, dialect=st.sampled_from(list(DIALECTS)))
def test_replaced_keywords_mean_what_jsonschema_says(value, schema, dialect):
    validator, _ = DIALECTS[dialect]
    theirs = jsonschema.validators.validator_for({"$schema": dialect})
    is_valid = not errors_of(validator(schema), value)
    assert is_valid is theirs(schema).is_valid(value)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(one=VALUES, other=VALUES)
def test_canonical_forms_are_equal_exactly_for_equal_values(one, other):
    same = jsonschema.Draft202012Validator({"const": one}).is_valid(other)
    assert (canonical(one) == canonical(other)) is same
    assert canonical(one) == canonical(json.loads(json.dumps(one)))


def test_an_answer_that_multiplies_the_work_is_cut_off(judge):
    branch = {"type": "object", "properties": {"c": {"$ref": "#/$defs/tree"}}, "required": ["k"]}
    schema = {"$ref": "#/$defs/tree", "$defs": {"tree": {"anyOf": [branch, branch]}}}
    start = time.process_time()
    verdict = judge('{"c":' * 60 + "{}" + "}" * 60, {"schema": schema})
    assert time.process_time() - start < 2 * LIMIT_S
    assert verdict.failure.value == "resource_limit"
    assert judge('{"k": 1, "c": {"k": 1}}', {"schema": schema}).score == 1


def test_thousands_of_different_items_are_compared_fast(judge):
    items = [{"a": number} for number in range(9_000)]
    start = time.process_time()
    assert judge(json.dumps(items), {"schema": {"uniqueItems": True}}).score == 1
    assert judge(json.dumps([*items, {"a": 7.0}]), {"schema": {"uniqueItems": True}}).score == 0
    assert time.process_time() - start < LIMIT_S


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_schema_that_names_its_dialect_and_itself_keeps_its_bounds(judge, dialect):
    schema = {
        "$schema": dialect,
        "type": "object",
        "properties": {"next": {"$ref": "#"}, "name": {"type": "string", "pattern": "^(a+)+$"}},
    }
    start = time.process_time()
    verdict = judge(json.dumps({"next": {"name": "a" * 999 + "b"}}), {"schema": schema})
    assert verdict.score == 0
    assert time.process_time() - start < LIMIT_S


def test_recursion_beyond_pythons_own_is_cut_off():
    schema: dict = {"type": "object"}
    for _ in range(9):
        schema = {"allOf": [{"anyOf": [schema]}]}
    schema = {"$defs": {"t": {**schema, "properties": {"c": {"$ref": "#/$defs/t"}}}},
              "$ref": "#/$defs/t"}  # fmt: skip
    value: dict = {}
    for _ in range(300):
        value = {"c": value}
    with pytest.raises(TooCostlyError):
        errors_of(read_schema(schema).validator, value)
