from __future__ import annotations

from pathlib import Path

import pytest

from rlvr_core.api.errors import EnvironmentFault, StackError
from rlvr_core.models import smollm2
from rlvr_core.models.source import resolve_model


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    return folder


def test_a_folder_is_found_from_the_stack_or_by_its_whole_path(model: Path) -> None:
    assert resolve_model("mine", base=model.parent) == model
    assert resolve_model("./mine", base=model.parent) == model
    assert resolve_model(str(model)) == model


@pytest.mark.parametrize("name", ["gpt2", "owner/name", "HuggingFaceTB/SmolLM2-135M-Instruct"])
def test_a_hub_id_is_returned_as_it_is(name: str, tmp_path: Path) -> None:
    assert resolve_model(name, base=tmp_path) == name


@pytest.mark.parametrize(
    "name", ["./nothing", "../x/y", "a/b/c", "/nowhere/at/all", "~/nothing", "x" * 300 + "/y/z"]
)
def test_a_path_without_a_folder_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(StackError, match="neither a folder nor a hub id") as caught:
        resolve_model(name, base=tmp_path)
    assert caught.value.code == "RLVR-S106"


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"holds no config\.json") as caught:
        resolve_model(str(tmp_path))
    assert caught.value.code == "RLVR-E102"


def test_the_built_in_name_is_taken_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLVR_CACHE", str(tmp_path))
    ready = tmp_path / "models" / smollm2.FOLDER
    ready.mkdir(parents=True)
    said: list[str] = []
    assert resolve_model("smollm2", said.append) == ready
    assert said == []
