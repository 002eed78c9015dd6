"""Rows of a Hugging Face data set, when the optional ``datasets`` library is installed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rlvr_core.api.errors import DataError, EnvironmentFault, did_you_mean, listed

_PREFIX = "hf:"


def is_hub_path(path: str) -> bool:
    """Return whether a source names a data set, as ``hf:<data set>[:<split>]``."""
    return path.startswith(_PREFIX)


def hub_records(path: str, base: Path, tier: str) -> tuple[str, Iterable[dict[str, Any]]]:
    """Return a data set's name with its split, and its rows.

    Args:
        path: ``hf:<data set>[:<split>]``; the data set is a hub id, or a folder.
        base: Folder that a relative folder starts from.
        tier: Without a split: the split of this name, or the only one.

    Raises:
        DataError: RLVR-D101, there is no such data set or split.
        EnvironmentFault: RLVR-E101, the library is not installed.
    """
    try:
        import datasets
    except ImportError as error:
        raise EnvironmentFault(
            "RLVR-E101",
            "to read a Hugging Face data set, rlvr needs datasets",
            origin=path,
            cause=str(error),
            fix='pip install "rlvr-core[datasets]"',
        ) from error
    name, _, wanted = path.removeprefix(_PREFIX).partition(":")
    folder = base / Path(name).expanduser()
    try:
        found = datasets.load_dataset(str(folder) if folder.is_dir() else name)
    except (datasets.exceptions.DatasetsError, OSError, ValueError) as error:
        raise DataError(
            "RLVR-D101",
            f"the data set {name!r} could not be loaded",
            origin=path,
            cause=str(error) or type(error).__name__,
            fix="correct the name, or check the network",
        ) from error
    split = wanted or (tier if tier in found else next(iter(found)) if len(found) == 1 else "")
    if split not in found:
        raise DataError(
            "RLVR-D101",
            f"the data set {name!r} has no split {(wanted or tier)!r}{did_you_mean(split, found)}",
            origin=path,
            fix=f"write hf:{name}:<split> with one of {listed(found)}",
        )
    return f"hf:{name}:{split}", found[split]
