"""The logs of a run folder: one JSON object a line, in the shape that their readers rely on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rlvr_core.api.verdicts import Json
from rlvr_core.records.layout import EVALS, EVENTS, METRICS, unreadable

_Number = float | None
_Count = Annotated[int, Field(ge=0)]
_Pair = Annotated[str, Field(pattern=r"^.+/[^/]+/[^/]+$")]
"""Verifier and the two members whose agreement was counted."""


class _Shape(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _Metrics(_Shape):
    step: _Count
    reward_mean: _Number = None
    pass_rate: _Number = None
    parse_failure_rate: _Number = None
    length_mean: _Number = None
    entropy: _Number = None
    step_s: _Number = None
    tokens: _Count | None = None
    rollouts: _Count | None = None
    masked: _Count | None = None
    updates: _Count | None = None
    agreement: dict[_Pair, dict[str, _Count]] | None = None


class _Grader(_Shape):
    verdicts: _Count
    passed: _Count
    masked: _Count
    accuracy: _Number
    low: _Number
    high: _Number
    parse_failure_rate: _Number = None


class _Evaluation(_Shape):
    step: _Count
    split: str
    prompts: _Count
    graders: Annotated[dict[str, _Grader], Field(min_length=1)]
    length_mean: _Number
    truncated_rate: _Number
    entropy: _Number = None
    temperature: _Number = None
    samples_per_prompt: _Count | None = None
    max_completion_tokens: _Count | None = None
    file: str


class _Event(_Shape):
    kind: str
    step: _Count | None = None


_SHAPES: dict[str, type[_Shape]] = {METRICS: _Metrics, EVALS: _Evaluation, EVENTS: _Event}
"""Log -> the entries of its records that are read again; others say what they like."""


@dataclass(frozen=True, slots=True)
class Log:
    """The records of a log."""

    records: list[dict[str, Json]]
    unreadable: int
    """Lines that hold no record, such as one torn by a killed process."""


def read_log(run: Path, name: str) -> Log:
    """Read one of `LOGS` of the run folder `run`; a missing one is empty, bad lines are counted.

    Raises:
        RunFolderError: RLVR-T104, when it is there and cannot be read.
    """
    file = run / name
    try:
        content = file.read_bytes() if file.exists() else b""
    except OSError as error:
        raise unreadable(file, str(error)) from error
    records: list[dict[str, Json]] = []
    bad = 0
    for line in content.split(b"\n"):
        if not line.strip():
            continue
        record = parse_line(line)
        if record is None or not _has_shape(record, _SHAPES[name]):
            bad += 1
        else:
            records.append(record)
    return Log(records, bad)


def parse_line(line: bytes) -> dict[str, Json] | None:
    """Return the JSON object of one line, or None when it is not one."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _has_shape(record: dict[str, Json], shape: type[_Shape]) -> bool:
    try:
        shape.model_validate(record)
    except ValidationError:
        return False
    return True
