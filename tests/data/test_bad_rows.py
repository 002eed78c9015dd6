from __future__ import annotations

import json
import re
from typing import Any

import pytest

from rlvr_core.api.errors import DataError

from .conftest import Lines, good, load


def messages(error: DataError) -> list[str]:
    assert error.code == "RLVR-D102"
    assert error.cause is not None
    return error.cause.splitlines()


def truth(**verifier: Any) -> dict[str, Any]:
    return good(verifier={"type": "math-sympy", **verifier})


BAD: list[tuple[Any, str]] = [
    ('{"prompt": ', "not JSON: Expecting value at character"),
    (b'{"prompt": "\xff"}', "not UTF-8: byte 0xff at position 13"),
    ('{"prompt": NaN}', "NaN is not JSON"),
    ('{"prompt": -Infinity}', "-Infinity is not JSON"),
    (json.dumps(good())[:-1] + ', "id": "a", "id": "b"}', "the key 'id' stands twice"),
    ('{"a": ' + "[" * 5000 + "]" * 5000 + "}", "is nested too deep"),
    ('{"a": ' + "[" * 200 + "]" * 200 + "}", "is nested too deep"),
    (
        json.dumps([good()]),
        "must be an object with a prompt and a verifier; write one object a line",
    ),
    ("17", "must be an object with a prompt and a verifier"),
    ({"verifier": {"type": "math-sympy", "answer": "7"}}, "has no prompt"),
    (good(prompt=None), "has no prompt"),
    (good(prompt=""), "prompt is empty"),
    (good(prompt=" \n"), "prompt is empty"),
    (good(prompt=[]), "prompt is an empty list"),
    (good(prompt=7), "prompt must be a string, or a list of {role, content} messages"),
    (good(prompt=["Hi"]), "prompt[0] must be an object {role, content}"),
    (
        good(prompt=[{"role": "human", "content": "Hi"}]),
        "prompt[0] has role 'human'; known: system",
    ),
    (good(prompt=[{"role": "user"}]), "prompt[0] content must be a string"),
    (good(prompt=[{"role": "user", "content": ""}]), "prompt[0] content is empty"),
    (
        good(prompt=[{"role": "user", "content": "Hi", "name": "x"}]),
        "prompt[0] holds unknown keys: name",
    ),
    (
        good(prompt=[{"role": "assistant", "content": "Hi"}]),
        "prompt ends with a turn of the assistant; the last must be the user's",
    ),
    (good(metdata={}), "unknown key 'metdata'; did you mean 'metadata'?"),
    (good(answer="7"), "unknown key 'answer'; what is known about a row goes into metadata"),
    (good(metadata=["easy"]), "metadata must be an object"),
    (good(verifier=None), "has no verifier"),
    (good(verifier="math-sympy"), "verifier must be an object"),
    (good(verifier={"answer": "7"}), "verifier.type must name a verifier"),
    (
        good(verifier={"type": "math-simpy", "answer": "7"}),
        "no verifier 'math-simpy' in the stack; did you mean 'math-sympy'? "
        "(known: code-docker, math-sympy)",
    ),
    (truth(), "verifier.answer is required, and missing"),
    (truth(answer=7), "verifier.answer must be a string, got 7; put it in quotes"),
    (truth(answer="7", tolerence=0.1), "verifier.tolerence unknown key; did you mean 'tolerance'?"),
    (
        good(verifier={"type": "code-docker", "tests": ["a", 3]}),
        "verifier.tests[1] must be a string, got 3",
    ),
    (
        truth(answer="7", check_fn="lambda s: s == '7'"),
        "verifier.check_fn holds source text, which rlvr never executes from data",
    ),
    (truth(answer="7", code_fn="len(x) > 3"), "verifier.code_fn holds source text"),
    (truth(answer="7", check="def check(x):\n  return 1"), "verifier.check holds source text"),
    (truth(answer="7", more=[{"check_fn": "lambda: 0"}]), "verifier.more[0].check_fn holds source"),
    (
        '{"prompt": "a \\ud83d b", "verifier": {"type": "math-sympy", "answer": "1"}}',
        "prompt holds",
    ),
    (
        '{"prompt": "a", "verifier": {"type": "math-sympy", "answer": "\\udc00"}}',
        "verifier.answer holds half a surrogate pair, which is not text",
    ),
    ('{"prompt": "a", "metadata": {"x": [1e999]}}', "metadata.x[0] is inf, which is not a JSON"),
    (good(id=""), "id must be a string that is not empty"),
    (good(id=True), "id must be a string that is not empty"),
    (good(id="first"), "the id 'first' already stands in"),
    ('{"prompt": ' + "9" * 5000 + "}", "not usable: Exceeds the limit"),
]


@pytest.mark.parametrize(("bad", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_a_bad_row_is_named_with_its_line(lines: Lines, bad: Any, message: str) -> None:
    path = lines(good(id="first"), "", bad, good())
    with pytest.raises(DataError) as caught:
        load(path)
    found = messages(caught.value)
    assert all(line.startswith(f"{path}:3: ") for line in found)
    assert any(message in line for line in found), found


def test_all_bad_rows_are_reported_at_once(lines: Lines) -> None:
    path = lines(*(bad for bad, _ in BAD[:15]), good())
    with pytest.raises(DataError) as caught:
        load(path)
    places = [line.split(": ")[0] for line in messages(caught.value)]
    numbers = {int(number) for place in places for number in re.findall(r":(\d+)", place)}
    assert numbers == set(range(1, 16))
    assert "15 rows are not usable" in str(caught.value)


def test_one_row_with_several_faults_says_them_all(lines: Lines) -> None:
    path = lines({"prompt": "", "verifier": {"type": "nope"}, "metadata": 3, "extra": 1})
    with pytest.raises(DataError, match="1 row is not usable") as caught:
        load(path)
    assert len(messages(caught.value)) == 4


def test_many_bad_rows_are_cut_at_twenty_and_counted(lines: Lines) -> None:
    path = lines(*(f'{{"prompt": "a", "unknown{number}": 1}}' for number in range(33)))
    with pytest.raises(DataError, match="33 rows are not usable") as caught:
        load(path)
    found = messages(caught.value)
    assert len(found) == 21
    assert re.fullmatch(r"… and \d+ more", found[-1])


def test_rows_with_the_same_fault_are_one_line(lines: Lines) -> None:
    path = lines(*["{"] * 33)
    with pytest.raises(DataError, match="33 rows are not usable") as caught:
        load(path)
    [found] = messages(caught.value)
    assert "train.jsonl:1, :2, :3 and 30 more: not JSON: " in found


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("tests", ["def check(candidate):\n    assert candidate(1) == 2"]),
        ("entry_point", "import_data"),
    ],
)
def test_code_that_a_sandbox_is_meant_to_run_is_no_source_to_execute(
    lines: Lines, key: str, text: Any
) -> None:
    verifier = {"type": "code-docker", "tests": ["assert True"], key: text}
    [row] = load(lines(good(verifier=verifier)))
    assert row.ground_truth[key] == text


@pytest.mark.parametrize("text", ["[\n{0},\n{0}\n]\n", "[{0},\n{0}]\n", " [\n  {0}\n]"])
def test_a_file_that_is_one_array_is_said_once(tmp_path, text):
    file = tmp_path / "train.json"
    file.write_text(text.replace("{0}", json.dumps(good())))
    with pytest.raises(DataError) as caught:
        load(file)
    [message] = messages(caught.value)
    assert "is one JSON array; write one object a line" in message


def test_a_table_of_another_kind_is_not_read_as_json_lines(tmp_path):
    (tmp_path / "train.csv").write_text("prompt,answer\n1+1,2\n")
    with pytest.raises(DataError, match=r"\.csv files are not read") as caught:
        load(tmp_path / "train.csv")
    assert caught.value.code == "RLVR-D101"
