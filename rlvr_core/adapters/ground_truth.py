"""From what other trainers call a label or a column to the ground truth of a verifier."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from rlvr_core.api.errors import DataError, described, did_you_mean, listed
from rlvr_core.api.plugin import ROUTING_KEY, normalised
from rlvr_core.api.verdicts import Json

ROW_COLUMN = "verifier"
"""The column of rlvr's own data that holds the verifier's name and its ground truth."""


class GroundTruthReader:
    """Reads the ground truth of one verifier.

    Args:
        verifier: Registered name of the verifier, for messages and for routed rows.
        model: Its `GroundTruth`.
    """

    def __init__(self, verifier: str, model: type[BaseModel]) -> None:
        self._verifier = verifier
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        self._keys = tuple(fields)
        self._required = tuple(key for key, field in fields.items() if field.is_required())

    def from_label(self, label: Any) -> dict[str, Json] | None:
        """Return the ground truth that one value stands for; None when it is another verifier's.

        A mapping is the whole ground truth; so is the text of a JSON object where the verifier
        needs more than one key, or none. Any other value is that of the only key it needs.

        Raises:
            DataError: RLVR-D102, the value is neither.
        """
        label = plain(label)
        if isinstance(label, dict):
            return self._own(label)
        if len(self._required) == 1:
            return {self._required[0]: label}
        whole = _json_object(label)
        if whole is None:
            needed = " and ".join(self._required) or "no key in particular"
            raise DataError(
                "RLVR-D102",
                f"the label is no ground truth of {self._verifier!r}: {described(label)}",
                cause=f"it needs {needed}, so one value cannot stand for it",
                fix="give a mapping, or a JSON object as text",
            )
        return self._own(whole)

    def from_columns(
        self, columns: Mapping[str, Sequence[Any]], names: Mapping[str, str] | None, count: int
    ) -> list[dict[str, Json] | None]:
        """Return the ground truth of each row, None for rows of other verifiers.

        Args:
            columns: What the trainer hands over, by column.
            names: Key of the ground truth to column; without it, columns are called like the keys,
                or are rlvr's own data.
            count: Rows.

        Raises:
            DataError: RLVR-D102, a column that is needed is missing.
        """
        blocks = columns.get(ROW_COLUMN)
        if names is None and blocks is not None and all(map(_is_routed, blocks)):
            return [self.from_label(block) for block in blocks]
        wanted = names if names is not None else {key: key for key in self._keys if key in columns}
        problems = [
            f"there is no column {column!r}{did_you_mean(column, columns)}"
            for column in wanted.values()
            if column not in columns
        ]
        problems += [f"nothing gives {key!r}" for key in self._required if key not in wanted]
        if problems:
            raise DataError(
                "RLVR-D102",
                f"the data has no ground truth for {self._verifier!r}",
                cause=f"{'; '.join(problems)}\nthe columns are: {listed(columns) or 'none'}",
                fix=f"say which column holds it: columns={{{(self._required or ('key',))[0]!r}: "
                "'name of the column'}",
            )
        rows: list[dict[str, Json] | None] = []
        for index in range(count):
            values = {key: plain(columns[column][index]) for key, column in wanted.items()}
            rows.append(_without_nulls(values))
        return rows

    def _own(self, block: dict[str, Json]) -> dict[str, Json] | None:
        truth = _without_nulls(block)
        if ROUTING_KEY not in truth:
            return truth
        name = str(truth.pop(ROUTING_KEY))
        return truth if normalised(name) == normalised(self._verifier) else None


def _is_routed(block: Any) -> bool:
    return isinstance(block, Mapping) and isinstance(block.get(ROUTING_KEY), str)


def plain(value: Any) -> Json:
    """Return a value as JSON: arrays, tensors and their numbers become lists and numbers."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def _without_nulls(values: dict[str, Json]) -> dict[str, Json]:
    """Drop nulls: a table has every key in every row, so null there means absent."""
    return {key: value for key, value in values.items() if value is not None}


def _json_object(label: Json) -> dict[str, Json] | None:
    try:
        found = json.loads(label) if isinstance(label, str) else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
