"""From a file or a data set to raw records, one at a time, each with its place."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvr_core.api.errors import DataError
from rlvr_core.api.verdicts import Json
from rlvr_core.config.models import DataSource
from rlvr_core.data.hub import hub_records, is_hub_path

_OTHER_TABLES = (".csv", ".tsv", ".xls", ".xlsx")
_PARQUET_MAGIC = b"PAR1"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_COLUMNS_WITH_JSON = ("verifier", "metadata")
_MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Record:
    """One raw row, not yet known to be usable."""

    line: int
    """1-based line of a text file, or row of a table."""
    where: str
    """``file:line``."""
    value: Json = None
    problem: str | None = None
    """Why there is no value."""


def read_records(source: DataSource, base: Path, split: str) -> Iterator[Record]:
    """Yield the records of a split, the first `source.limit` of them when it is given.

    Args:
        source: Where the split comes from.
        base: Folder that a relative path starts from.
        split: Name of the split, for messages and to choose a split of a hub data set.

    Raises:
        DataError: RLVR-D101, the file or data set can't be read.
        EnvironmentFault: RLVR-E101, the ``datasets`` library is needed and missing.
    """
    path = source_path(source, base)
    records = _table(source, base, split) if path is None else _file(path, split)
    for count, record in enumerate(records):
        if count == source.limit:
            return
        yield record


def source_path(source: DataSource, base: Path) -> Path | None:
    """Return the file of a source, or None when it comes from the hub."""
    return None if is_hub_path(source.path) else base / Path(source.path).expanduser()


def file_sha256(path: Path) -> str:
    """Return the hex sha256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def faults_of(value: Json) -> Iterator[str]:
    """Yield what in a value is not JSON text: NaN, infinity, lone surrogates, foreign objects."""
    yield from _faults(value, "", 0)


def _table(source: DataSource, base: Path, split: str) -> Iterator[Record]:
    name, rows = hub_records(source.path, base, split)
    yield from _records_of_table(rows, name)


def _file(path: Path, split: str) -> Iterator[Record]:
    try:
        with path.open("rb") as file:
            head = file.read(4)
        if head == _PARQUET_MAGIC or path.suffix == ".parquet":
            yield from _records_of_table(_parquet_rows(path), str(path))
        elif head[:2] in _UTF16_MARKS:
            raise _unreadable(path, split, "it is UTF-16 text", "save it as UTF-8")
        elif path.suffix.lower() in _OTHER_TABLES:
            fix = "write JSON lines, one object a row, or a parquet file"
            raise _unreadable(path, split, f"{path.suffix} files are not read", fix)
        else:
            yield from _json_lines(path)
    except OSError as error:
        reason = error.strerror or str(error)
        fix = "correct the path, or make the file (`rlvr data make`)"
        raise _unreadable(path, split, reason, fix) from error


def _unreadable(path: Path, split: str, cause: str, fix: str) -> DataError:
    return DataError(
        "RLVR-D101", f"the {split} data could not be read", origin=str(path), cause=cause, fix=fix
    )


def _json_lines(path: Path) -> Iterator[Record]:
    with path.open("rb") as file:
        # Bytes are split at \n alone: str.splitlines would also cut at U+2028 inside a string.
        for line, raw in enumerate(file, start=1):
            if line == 1:
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            if not raw.strip():
                continue
            where = f"{path}:{line}"
            try:
                yield Record(line, where, _parse(raw))
            except _BadLineError as error:
                if line == 1 and raw.lstrip().startswith(b"["):
                    problem = "is one JSON array; write one object a line, without [ ] and commas"
                    yield Record(line, str(path), problem=problem)
                    return
                yield Record(line, where, problem=str(error))


class _BadLineError(ValueError):
    """Why a line holds no JSON value."""


def _parse(raw: bytes) -> Json:
    try:
        text = raw.decode("utf-8")
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except _BadLineError:
        raise
    except UnicodeDecodeError as error:
        byte = raw[error.start]
        raise _BadLineError(
            f"not UTF-8: byte 0x{byte:02x} at position {error.start + 1}"
        ) from error
    except json.JSONDecodeError as error:
        raise _BadLineError(f"not JSON: {error.msg} at character {error.pos + 1}") from error
    except RecursionError as error:
        raise _BadLineError("is nested too deep") from error
    except ValueError as error:
        raise _BadLineError(f"not usable: {error}") from error


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for key, value in pairs:
        if key in found:
            raise _BadLineError(f"the key {key!r} stands twice in one object")
        found[key] = value
    return found


def _constant(name: str) -> Json:
    raise _BadLineError(f"{name} is not JSON; write null, or leave the key out")


def _parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1024):
                yield from batch.to_pylist()
    except pyarrow.ArrowException as error:
        raise DataError(
            "RLVR-D101", "the parquet file is damaged", origin=str(path), cause=str(error)
        ) from error


def _records_of_table(rows: Iterable[dict[str, Any]], name: str) -> Iterator[Record]:
    for line, row in enumerate(rows, start=1):
        where = f"{name}:{line}"
        try:
            yield Record(line, where, _without_nulls(row))
        except _BadLineError as error:
            yield Record(line, where, problem=str(error))


def _without_nulls(row: dict[str, Any]) -> dict[str, Json]:
    """Drop nulls: a table has every column in every row, so null there means absent."""
    kept = {key: value for key, value in row.items() if value is not None}
    for key in _COLUMNS_WITH_JSON:
        value = kept.get(key)
        if isinstance(value, str):
            value = _parse(value.encode())
        if isinstance(value, dict):
            kept[key] = {name: item for name, item in value.items() if item is not None}
    return kept


def _faults(value: Json, path: str, depth: int) -> Iterator[str]:
    place = path or "the row"
    if depth > _MAX_DEPTH:
        yield "is nested too deep"
    elif isinstance(value, str):
        if any("\ud800" <= character <= "\udfff" for character in value):
            yield f"{place} holds half a surrogate pair, which is not text"
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield f"{place} is {value}, which is not a JSON number"
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _faults(key, f"a key of {place}", depth + 1)
            yield from _faults(item, f"{path}.{key}" if path else str(key), depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _faults(item, f"{path}[{index}]", depth + 1)
    elif not (value is None or isinstance(value, bool | int)):
        yield f"{place} is a {type(value).__name__}, which JSON has no form for"
