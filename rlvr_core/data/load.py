"""Load splits: every row checked before anything else happens, all bad rows in one error."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import BaseModel

from rlvr_core.api.errors import DataError
from rlvr_core.api.rollouts import Row
from rlvr_core.api.verdicts import Json
from rlvr_core.config.models import DataSource
from rlvr_core.data.read import file_sha256, read_records, source_path
from rlvr_core.data.route import Routes
from rlvr_core.data.rows import RowReader

SHOWN_PROBLEMS = 20
_SHOWN_PLACES = 3


@dataclass(frozen=True, slots=True)
class RowProblem:
    """One thing that is wrong with one row."""

    where: str
    """``file:line``."""
    message: str


def load_splits(
    sources: Mapping[str, DataSource],
    base: Path,
    ground_truth_models: Mapping[str, type[BaseModel]],
    plugin_names: Mapping[str, str] | None = None,
) -> dict[str, list[Row]]:
    """Return the rows of several splits, in file order.

    Args:
        sources: Split name to where it comes from.
        base: Folder that relative paths start from: the stack file's.
        ground_truth_models: Verifier instance name to its `GroundTruth`.
        plugin_names: Verifier instance name to its plugin's registered name, so that rows can name
            the plugin; needed where the two differ.

    Raises:
        DataError: RLVR-D101 when a file can't be read; RLVR-D102 with the bad rows of all splits,
            each with ``file:line``, or when a split has no rows.
        EnvironmentFault: RLVR-E101 when a source needs the ``datasets`` library.
        PluginError: RLVR-P106 when a ground-truth model raises anything but a validation error.
    """
    routes = Routes(ground_truth_models, plugin_names or {})
    loaded, problems = {}, []
    for split, source in sources.items():
        loaded[split], found = read_split(source, base, split, routes)
        problems += found
    if problems:
        raise rows_error(problems)
    for split, rows in loaded.items():
        if not rows:
            raise _empty(split, sources[split])
    return loaded


def read_split(
    source: DataSource, base: Path, split: str, routes: Routes | None
) -> tuple[list[Row], list[RowProblem]]:
    """Return the good rows of a split and what is wrong with the others.

    Args:
        source: Where the split comes from.
        base: Folder that a relative path starts from.
        split: Name of the split; ids that rows do not give are made of it.
        routes: The verifiers of a stack; without them rows are checked for their form only.

    Raises:
        DataError: RLVR-D101 when the file can't be read.
        EnvironmentFault: RLVR-E101 when the source needs the ``datasets`` library.
        PluginError: RLVR-P106 when a ground-truth model raises anything but a validation error.
    """
    reader = RowReader(split, routes)
    rows: list[Row] = []
    problems: list[RowProblem] = []
    for record in read_records(source, base, split):
        row, found = reader.read(record)
        problems += [RowProblem(record.where, message) for message in found]
        if row is not None:
            rows.append(row)
    return rows, problems


def rows_error(problems: Sequence[RowProblem]) -> DataError:
    """Return one error that shows the first problems and counts all."""
    count = len({problem.where for problem in problems})
    alike: dict[str, list[str]] = {}
    for problem in problems:
        alike.setdefault(problem.message, []).append(problem.where)
    lines = []
    for message, wheres in list(alike.items())[:SHOWN_PROBLEMS]:
        lines.append(f"{_places(wheres)}: {message}")
    if len(alike) > SHOWN_PROBLEMS:
        rest = sum(map(len, list(alike.values())[SHOWN_PROBLEMS:]))
        lines.append(f"… and {rest} more")
    return DataError(
        "RLVR-D102",
        f"{count} {'row is' if count == 1 else 'rows are'} not usable",
        cause="\n".join(lines),
        fix="correct these rows; `rlvr data check` looks at data without training",
    )


def _places(wheres: Sequence[str]) -> str:
    """Return ``train.jsonl:2, :4, :5 and 3 more``."""
    file = wheres[0].rpartition(":")[0]
    others = [where.removeprefix(file) for where in wheres[1:_SHOWN_PLACES]]
    more = f" and {len(wheres) - _SHOWN_PLACES} more" if len(wheres) > _SHOWN_PLACES else ""
    return ", ".join([wheres[0], *others]) + more


def content_hash(rows: Iterable[Row]) -> str:
    """Return a hex sha256 of everything in the rows, in order, independent of how it was stored."""
    digest = hashlib.sha256()
    for row in rows:
        prompt: Json = row.prompt
        if not isinstance(prompt, str):
            prompt = [asdict(turn) for turn in prompt]
        fields = [row.id, prompt, row.verifier, dict(row.ground_truth), dict(row.metadata)]
        text = json.dumps(fields, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        digest.update(text.encode() + b"\n")
    return digest.hexdigest()


def describe_split(source: DataSource, base: Path, rows: Sequence[Row]) -> dict[str, Json]:
    """Return what a manifest says about a split: path, rows, hash of contents, hash of the file."""
    path = source_path(source, base)
    return {
        "path": source.path,
        "rows": len(rows),
        "content_sha256": content_hash(rows),
        "file_sha256": None if path is None else file_sha256(path),
    }


def _empty(split: str, source: DataSource) -> DataError:
    purpose = "trained on" if split == "train" else "measured"
    return DataError(
        "RLVR-D102",
        f"the {split} data holds no rows, so nothing would be {purpose}",
        origin=source.path,
        fix="give a file with at least one row",
    )
