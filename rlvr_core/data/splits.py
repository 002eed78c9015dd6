"""Disjoint splits by a stable hash, and files that are never overwritten."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from rlvr_core.api.errors import DataError
from rlvr_core.api.verdicts import Json

Item = TypeVar("Item")


def stable_hash(*key: object) -> str:
    """Return a hex digest that is equal on every machine, in every process and release."""
    return hashlib.sha256("\x1f".join(str(part) for part in key).encode()).hexdigest()


def shuffled(items: Iterable[Item], key: Callable[[Item], str], *salt: object) -> list[Item]:
    """Return the items in an order decided by the hash of `salt` and each item's key alone."""
    return sorted(items, key=lambda item: stable_hash(*salt, key(item)))


def split_by_hash(problems: Iterable[str], shares: Mapping[str, float]) -> dict[str, list[str]]:
    """Deal problems out by the order of their hashes.

    The first share of that order goes to the first split and so on, so that even 36 problems are
    dealt exactly, and a problem keeps its split whatever seed or size is asked for later.

    Args:
        problems: Canonical texts, one a problem: equal problems must have equal texts.
        shares: Split name to its share; the last split takes what is left.
    """
    ordered = shuffled(set(problems), str, "split")
    dealt: dict[str, list[str]] = {}
    begin, share_so_far = 0, 0.0
    for position, (name, share) in enumerate(shares.items()):
        share_so_far += share
        is_last = position == len(shares) - 1
        end = len(ordered) if is_last else round(share_so_far * len(ordered))
        dealt[name], begin = ordered[begin:end], end
    return dealt


def even_counts(total: int, capacities: Sequence[int]) -> list[int]:
    """Share `total` out evenly; what one can't take goes to the first that has room.

    Raises:
        ValueError: The capacities together are below `total`.
    """
    if total > sum(capacities):
        raise ValueError(f"{total} rows asked for, at most {sum(capacities)} distinct ones exist")
    fair, over = divmod(total, len(capacities))
    counts = [
        min(capacity, fair + (position < over)) for position, capacity in enumerate(capacities)
    ]
    for position, capacity in enumerate(capacities):
        counts[position] += min(capacity - counts[position], total - sum(counts))
    return counts


def to_json_lines(rows: Iterable[Mapping[str, Json]]) -> bytes:
    """Return rows as JSON lines: UTF-8, keys in the order given, one final newline."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def write_once(folder: Path, files: Mapping[str, bytes]) -> dict[str, Path]:
    """Write files that do not stand in `folder` yet; equal ones are left alone.

    Each file appears complete or not at all.

    Returns:
        The path of each file.

    Raises:
        DataError: RLVR-D103 when a file of that name has other contents (nothing is written then),
            or the folder can't be written to.
    """
    paths = {name: folder / name for name in files}
    try:
        present = {name for name, path in paths.items() if path.exists()}
        different = [name for name in present if paths[name].read_bytes() != files[name]]
        if different:
            raise DataError(
                "RLVR-D103",
                f"{', '.join(sorted(different))} would be overwritten with other contents",
                origin=str(folder),
                fix="give another folder, or remove the files yourself",
            )
        folder.mkdir(parents=True, exist_ok=True)
        for name in files.keys() - present:
            _write(paths[name], files[name])
    except OSError as error:
        raise DataError(
            "RLVR-D103",
            "the data could not be written",
            origin=str(folder),
            cause=str(error),
            fix="give a folder that can be made and written",
        ) from error
    return paths


def _write(path: Path, contents: bytes) -> None:
    handle, aside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(contents)
        Path(aside).chmod(0o644)
        Path(aside).replace(path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise
