from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from rlvr_core.api.errors import DataError, EnvironmentFault, PluginError
from rlvr_core.api.plugin import Strict
from rlvr_core.api.rollouts import Message
from rlvr_core.config.models import DataSource
from rlvr_core.data.load import content_hash, describe_split, load_splits
from rlvr_core.data.read import file_sha256

from .conftest import MODELS, Lines, good, load, load_split


def test_a_row_becomes_a_row(lines: Lines) -> None:
    [row] = load(lines(good(id="a", metadata={"difficulty": "easy"})))
    assert (row.id, row.prompt, row.verifier) == ("a", "What is 3 + 4?", "math-sympy")
    assert row.ground_truth == {"answer": "7"}
    assert row.metadata == {"difficulty": "easy"}


def test_chat_messages_become_messages(lines: Lines) -> None:
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    [row] = load(lines(good(prompt=turns)))
    assert row.prompt == (Message("system", "Be brief."), Message("user", "Hello"))


def test_a_missing_id_is_the_split_and_the_line(lines: Lines) -> None:
    rows = load(lines(good(), "", good(id=12)), split="dev")
    assert [row.id for row in rows] == ["dev-1", "12"]
    rows = load(lines("", good()), split="dev")
    assert [row.id for row in rows] == ["dev-2"]


def test_limit_reads_only_the_first_rows(lines: Lines) -> None:
    path = lines(good(), "", good(), "broken")
    source = DataSource(path=path.name, limit=2)
    assert len(load_split(source, path.parent, MODELS, "train")) == 2


def test_byte_order_mark_windows_line_ends_and_odd_separators_are_read(lines: Lines) -> None:
    first = json.dumps(good(prompt="a\u2028b\u0085c"), ensure_ascii=False).encode()
    path = lines(b"\xef\xbb\xbf" + first + b"\r", json.dumps(good()).encode() + b"\r", b"\r")
    rows = load(path)
    assert [row.prompt for row in rows] == ["a\u2028b\u0085c", "What is 3 + 4?"]


@pytest.mark.parametrize("written", ["math-sympy", "math_sympy", "Math-Sympy", "MATH_SYMPY"])
def test_verifier_names_match_with_dashes_and_case_folded(lines: Lines, written: str) -> None:
    [row] = load(lines(good(verifier={"type": written, "answer": "7"})))
    assert row.verifier == "math-sympy"


def test_rows_may_name_the_plugin_instead_of_the_instance(lines: Lines) -> None:
    path = lines(good())
    source = DataSource(path=path.name)
    models = {"arithmetic": MODELS["math-sympy"]}
    [row] = load_split(source, path.parent, models, "train", {"arithmetic": "math_sympy"})
    assert row.verifier == "arithmetic"


def test_an_instance_name_comes_before_a_plugin_name(lines: Lines) -> None:
    path = lines(good())
    models = {"flexible": MODELS["math-sympy"], "math-sympy": MODELS["math-sympy"]}
    plugins = {"flexible": "math-sympy", "math-sympy": "math-sympy"}
    [row] = load_split(DataSource(path=path.name), path.parent, models, "train", plugins)
    assert row.verifier == "math-sympy"


def test_a_plugin_used_twice_under_other_names_must_be_told_apart(lines: Lines) -> None:
    path = lines(good())
    models = {"one": MODELS["math-sympy"], "two": MODELS["math-sympy"]}
    plugins = {"one": "math-sympy", "two": "math-sympy"}
    with pytest.raises(DataError, match="could mean 'one' or 'two'; name one of them"):
        load_split(DataSource(path=path.name), path.parent, models, "train", plugins)


def test_the_form_of_the_articles_is_read(lines: Lines) -> None:
    [row] = load(lines(good(verifier={"type": "math_sympy", "expected_answer": "x=2 or x=3"})))
    assert row.verifier == "math-sympy"
    assert row.ground_truth == {"answer": "x=2 or x=3"}


def test_an_empty_file_says_that_nothing_would_train(lines: Lines) -> None:
    with pytest.raises(DataError, match="holds no rows, so nothing would be trained on"):
        load(lines(""))
    with pytest.raises(DataError, match="the dev data holds no rows, so nothing would be measured"):
        load(lines("", ""), split="dev")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="RLVR-D101") as caught:
        load(tmp_path / "train.jsonl")
    assert caught.value.origin == str(tmp_path / "train.jsonl")
    with pytest.raises(DataError, match="RLVR-D101"):
        load(tmp_path)  # a folder


def test_utf16_is_named(lines: Lines) -> None:
    path = lines(json.dumps(good()).encode("utf-16"))
    with pytest.raises(DataError, match="UTF-16") as caught:
        load(path)
    assert caught.value.code == "RLVR-D101"


def test_a_validator_that_breaks_is_blamed_on_its_plugin(lines: Lines) -> None:
    from pydantic import field_validator

    class Broken(Strict):
        answer: str

        @field_validator("answer")
        @classmethod
        def _look(cls, value: str) -> str:
            raise KeyError(value)

    path = lines(good())
    with pytest.raises(PluginError, match=r"'math-sympy' raised KeyError[\s\S]*Broken"):
        load_split(DataSource(path=path.name), path.parent, {"math-sympy": Broken}, "train")


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def test_parquet_gives_the_same_rows_as_json_lines(lines: Lines, tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "Hi"}]
    rows = [
        good(id="a", prompt=turns),
        good(id="b", prompt=turns, verifier={"type": "code-docker", "tests": ["assert f()"]}),
    ]
    from_text = load(lines(*rows))
    from_table = load(write_parquet(tmp_path / "train.parquet", rows))
    assert from_table == from_text
    assert content_hash(from_table) == content_hash(from_text)


def test_parquet_may_hold_the_verifier_as_json_text(tmp_path: Path) -> None:
    verifier = json.dumps({"type": "math-sympy", "answer": "7"})
    path = write_parquet(tmp_path / "data.bin", [good(verifier=verifier)])
    [row] = load(path)
    assert row.ground_truth == {"answer": "7"}


def test_bad_rows_of_parquet_have_their_number(tmp_path: Path) -> None:
    path = write_parquet(
        tmp_path / "train.parquet",
        [good(), good(prompt=" "), good(verifier={"type": "nope", "answer": "1"})],
    )
    with pytest.raises(DataError) as caught:
        load(path)
    assert f"{path}:2: prompt is empty" in str(caught.value)
    assert f"{path}:3: no verifier 'nope'" in str(caught.value)


def test_damaged_parquet_is_named(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "train.parquet", [good()])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="the parquet file is damaged"):
        load(path)


def test_splits_are_loaded_together_and_bad_rows_of_all_are_reported(lines: Lines) -> None:
    train = lines(good(), good(prompt=""))
    dev = lines("{", name="dev.jsonl")
    sources = {"train": DataSource(path=train.name), "dev": DataSource(path=dev.name)}
    with pytest.raises(DataError, match="2 rows are not usable") as caught:
        load_splits(sources, train.parent, MODELS)
    assert f"{train}:2: prompt is empty" in str(caught.value)
    assert f"{dev}:1: not JSON" in str(caught.value)


def test_the_content_hash_sees_every_part_of_a_row_and_the_order(lines: Lines) -> None:
    base = good(id="a", metadata={"n": 1})
    changes: list[dict[str, Any]] = [
        {},
        {"id": "b"},
        {"prompt": "other"},
        {"prompt": [{"role": "user", "content": base["prompt"]}]},
        {"verifier": {"type": "math-sympy", "answer": "8"}},
        {"verifier": {"type": "math-sympy", "answer": "7", "tolerance": 0.1}},
        {"metadata": {"n": 2}},
    ]
    hashes = {content_hash(load(lines({**base, **change}))) for change in changes}
    assert len(hashes) == len(changes)
    forth = load(lines(base, {**base, "id": "b"}))
    assert content_hash(forth) != content_hash(reversed(forth))


def test_the_content_hash_does_not_depend_on_spelling(lines: Lines) -> None:
    row = good(id="a", prompt="ä")
    one = lines(json.dumps(row), name="one.jsonl")
    other = lines(json.dumps(dict(reversed(row.items())), ensure_ascii=False), name="other.jsonl")
    assert file_sha256(one) != file_sha256(other)
    assert content_hash(load(one)) == content_hash(load(other))


def test_a_manifest_entry_describes_the_split(lines: Lines) -> None:
    path = lines(good())
    rows = load(path)
    entry = describe_split(DataSource(path=path.name), path.parent, rows)
    assert entry == {
        "path": "train.jsonl",
        "rows": 1,
        "content_sha256": content_hash(rows),
        "file_sha256": file_sha256(path),
    }


def test_a_data_set_of_the_datasets_library_is_read(
    lines: Lines, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("datasets", reason="the optional datasets library is not installed")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "train.jsonl").write_text(json.dumps(good(id="a")) + "\n")
    (folder / "test.jsonl").write_text(json.dumps(good(id="b")) + "\n")

    def ids(path: str, split: str) -> list[str]:
        rows = load_split(DataSource(path=path), tmp_path, MODELS, split)
        return [row.id for row in rows]

    assert ids("hf:set", "train") == ["a"]
    assert ids("hf:set:test", "dev") == ["b"]
    with pytest.raises(DataError, match=r"has no split 'tset'; did you mean 'test'\?"):
        ids("hf:set:tset", "dev")
    with pytest.raises(DataError, match="has no split 'dev'"):
        ids("hf:set", "dev")


def test_without_the_datasets_library_the_way_out_is_named(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['datasets'] = None\n"
        "from rlvr_core.data.hub import hub_records\n"
        "from pathlib import Path\n"
        "hub_records('hf:owner/name', Path(), 'train')\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path), "PATH": ""},
        check=False,
    )
    assert "error[RLVR-E101]" in ran.stderr
    assert 'pip install "rlvr-core[datasets]"' in ran.stderr
    assert issubclass(EnvironmentFault, OSError)


def test_loading_needs_no_torch(lines: Lines) -> None:
    code = (
        "import sys, rlvr_core.data.load, rlvr_core.data.check, rlvr_core.data.arithmetic\n"
        "import rlvr_core.models.source, rlvr_core.cli.data\n"
        "print([name for name in ('torch', 'transformers', 'datasets') if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path), "PATH": ""},
        check=True,
    )
    assert ran.stdout.strip() == "[]"
