"""From the ``model`` of a stack to something that transformers can load."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from rlvr_core.api.errors import EnvironmentFault, StackError, did_you_mean
from rlvr_core.models import smollm2

BUILT_IN = "smollm2"
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")


def resolve_model(
    name: str,
    on_progress: Callable[[str], None] | None = None,
    base: Path | None = None,
) -> Path | str:
    """Return the folder of a model, or its hub id.

    Args:
        name: A folder, a hub id (returned as it is), or ``smollm2``, which is fetched and converted
            on first use. A folder called ``smollm2`` is written ``./smollm2``.
        on_progress: Told in plain sentences what is fetched and how far it is.
        base: Folder that a relative `name` starts from, usually the stack file's; by default the
            current one.

    Raises:
        StackError: The name is a path and no folder stands there.
        EnvironmentFault: The folder holds no model, or ``smollm2`` could not be fetched.
    """
    if name == BUILT_IN:
        return smollm2.ensure_model(on_progress)
    folder = (base or Path()) / Path(name).expanduser()
    if _is_folder(folder):
        return _checked(folder)
    meant = "" if "/" in name else did_you_mean(name, [BUILT_IN])
    if meant:
        raise StackError(
            "RLVR-S106",
            f"there is no model {name!r}{meant}",
            fix=f"write {BUILT_IN!r}, a folder, or a whole hub id such as 'owner/name'",
        )
    if _HUB_ID.fullmatch(name) and not name.startswith("."):
        return name
    raise StackError(
        "RLVR-S106",
        f"the model {name!r} is neither a folder nor a hub id",
        origin=str(folder.absolute()),
        fix=f"give an existing folder, a hub id such as 'owner/name', or {BUILT_IN!r}",
    )


def loading(source: Path | str) -> str:
    """Say that a model is loaded, and that it is looked for elsewhere when it is no folder."""
    if isinstance(source, Path):
        return "loading the model"
    return f"loading the model {source!r}, which is no folder here, from the Hugging Face hub"


def at_hand(name: str, base: Path | None = None) -> Path | None:
    """Return the folder of a model that is on this machine already; fetches nothing."""
    if name == BUILT_IN:
        folder = smollm2.model_folder()
    else:
        folder = (base or Path()) / Path(name).expanduser()
    return folder if _is_folder(folder) else None


def _is_folder(path: Path) -> bool:
    """Return whether a folder stands at `path`; what no system takes as a path is none."""
    try:
        return path.is_dir()
    except (OSError, ValueError):  # a name that is too long, or holds a NUL character
        return False


def _checked(folder: Path) -> Path:
    if (folder / "config.json").is_file():
        return folder
    raise EnvironmentFault(
        "RLVR-E102",
        "the model folder holds no config.json",
        origin=str(folder.absolute()),
        fix="give the folder that save_pretrained wrote, or a checkpoint of a run",
    )
