"""What a data row says: the right query or its rows, and the database."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, Self

from pydantic import ConfigDict, Field, model_validator

from rlvr_core.api import Json, Strict
from rlvr_plugin_sql_exec.build import BuildError, built_image
from rlvr_plugin_sql_exec.sandbox import Cell, Row

Data = dict[str, list[list[Any]]]

MAX_DATABASES = 16


class Truth(Strict):
    """What a data row must say."""

    model_config = ConfigDict(serialize_by_alias=True)

    query: str | None = Field(default=None, description="The right query.")
    result: list[list[Any]] | None = Field(
        default=None,
        description="The right rows, where there is no query: numbers, texts, null, and blobs as "
        '{"hex": "00ff"}.',
    )
    ordered: bool = Field(default=False, description="Whether `result` is in order.")
    database: str | list[str] | None = Field(
        default=None,
        description="SQLite files below the verifier's `folder`. The answer must be right on all.",
    )
    script: str | None = Field(
        default=None,
        alias="schema",
        description="SQL that makes the tables of a database in memory, and may fill them.",
    )
    data: Data | list[Data] = Field(
        default_factory=dict,
        description="Rows to put into the tables, as table to list of rows. A list of such "
        "makes several databases.",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.query is None) == (self.result is None):
            raise ValueError("say either `query` or `result`")
        if (self.database is None) == (self.script is None):
            raise ValueError("say either `database` or `schema`")
        if self.ordered and self.result is None:
            raise ValueError("`ordered` belongs to `result`; a query says itself if it orders")
        if self.script is None and self.data:
            raise ValueError("`data` belongs to `schema`")
        count = len(self.files) if self.script is None else len(self.data_sets)
        if not 1 <= count <= MAX_DATABASES:
            raise ValueError(f"there must be 1 to {MAX_DATABASES} databases, not {count}")
        if self.result is not None:
            if count > 1:
                raise ValueError("`result` is of one database; several need `query`")
            result_rows(self.result)
        for name in self.files:
            _check_path(name)
        try:
            self.images()
        except BuildError as error:
            raise ValueError(f"the database cannot be made: {error}") from None
        return self

    @property
    def files(self) -> list[str]:
        """The database files, if there are any."""
        if self.database is None:
            return []
        return [self.database] if isinstance(self.database, str) else self.database

    @property
    def data_sets(self) -> list[Data]:
        """The rows of each database that `schema` makes."""
        return self.data if isinstance(self.data, list) else [self.data]

    def images(self) -> list[bytes]:
        """Return the databases that `schema` makes, as bytes of SQLite files.

        Raises:
            BuildError: The script fails, or the rows do not fit.
        """
        if self.script is None:
            return []
        return [_image(self.script, json.dumps(data)) for data in self.data_sets]


@lru_cache(maxsize=64)
def _image(script: str, data: str) -> bytes:
    tables = {name: _cells(rows) for name, rows in json.loads(data).items()}
    return built_image(script, tables)


def result_rows(rows: list[list[Json]]) -> list[Row]:
    """Return rows as SQLite would.

    Raises:
        ValueError: The rows are of different length, or a value is of no SQLite type.
    """
    if len({len(row) for row in rows}) > 1 or any(not row for row in rows):
        raise ValueError("the rows of `result` must have the same columns, at least one")
    return _cells(rows)


def _cells(rows: list[list[Json]]) -> list[Row]:
    return [tuple(map(_cell, row)) for row in rows]


def _cell(value: Json) -> Cell:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise ValueError(f"{value} is more than SQLite's integers hold")
        return value
    if value is None or isinstance(value, float | str):
        return value
    if isinstance(value, dict) and value.keys() == {"hex"} and isinstance(value["hex"], str):
        return bytes.fromhex(value["hex"])
    raise ValueError('a value must be a number, a text, null or {"hex": …}')


def _check_path(name: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
        raise ValueError(f"{name!r} is no path below the verifier's folder")
