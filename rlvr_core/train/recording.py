"""What the engine sampled and the verifiers said in one step, kept until a checkpoint covers it.

::

    recorded/000007.parquet

A step that is made again answers from here, so that nothing is sampled or judged twice. The tables
under ``rollouts/`` are for readers and hold what plugins made of it; these hold what came over the
border, all of it, in order. Each entry is found by a hash of everything that was asked.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

from rlvr_core.api.rollouts import FinishReason
from rlvr_core.api.verdicts import Json, Verdict
from rlvr_core.records.layout import prompt_to_json, storable, to_json_text
from rlvr_core.rollout.engine import Sample, SampleRequest
from rlvr_core.train.rollout_tables import write_table
from rlvr_core.verification.contract import ContractError, decode, encode
from rlvr_core.verification.rows import RawRow

_CONDITIONS = b"rlvr.conditions"
_CHECKSUM = b"rlvr.crc32"
_UNREADABLE = (
    OSError,
    pa.ArrowException,
    LookupError,
    TypeError,
    ValueError,
    RecursionError,
    ContractError,
)
"""What reading a damaged file raises."""
_SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("key", pa.binary()),
        ("token_ids", pa.list_(pa.int32())),
        ("logps", pa.list_(pa.float64())),
        ("entropy", pa.float64()),
        ("finish_reason", pa.string()),
        ("weights_version", pa.int64()),
        ("verifier", pa.string()),
        ("version", pa.string()),
        ("verdict", pa.binary()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Under which entries were made; they count only where these hold again."""

    weights: str
    """Fingerprint of the policy before the step."""
    weights_version: int
    engine: str
    verifiers: str
    """Hash of the verifiers, their code, settings and limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """One completion as the engine gave it."""

    name: str
    """Step, row and sample index, for people."""
    key: bytes
    sample: Sample
    is_replayed: bool = False
    """It was answered from a record; not stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One verdict as a verifier gave it, before any wrapper saw it."""

    name: str
    key: bytes
    verdict: Verdict
    is_replayed: bool = False
    """As of `Sampled`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The entries of one step, in the order in which they were asked for."""

    conditions: Conditions
    samples: Sequence[Sampled]
    verdicts: Sequence[Judged]


def sample_key(request: SampleRequest) -> bytes:
    """Return the hash of a draw: what it is for, the prompt's ids, length and temperature."""
    return _hash(
        [str(part) for part in request.key],
        list(request.prompt_ids),
        request.max_tokens,
        request.temperature,
    )


def verdict_key(verifier: str, row: RawRow) -> bytes:
    """Return the hash of a question to a verifier: every word of it."""
    return _hash(
        verifier,
        row.id,
        prompt_to_json(row.prompt),
        row.completion,
        to_json_text(row.ground_truth),
        to_json_text(row.metadata),
        row.finish_reason.value,
    )


def write_recording(recording: Recording, path: Path) -> None:
    """Write a recording as a parquet file."""
    rows = [_of_sample(entry) for entry in recording.samples]
    rows += [_of_verdict(entry) for entry in recording.verdicts]
    write_rows(rows, recording.conditions, path)


def write_rows(rows: Sequence[Mapping[str, Json]], conditions: Conditions, path: Path) -> None:
    """Write entries that are rows of the file already."""
    metadata = {_CONDITIONS: json.dumps(asdict(conditions)), _CHECKSUM: _checksum(rows)}
    table = pa.Table.from_pylist(rows, schema=_SCHEMA.with_metadata(metadata))
    write_table(table, path)


def read_recording(path: Path) -> Recording | None:
    """Return the recording of a step; None when there is none that can be read."""
    try:
        table = pq.read_table(path, partitioning=None)
        conditions = Conditions(**json.loads(table.schema.metadata[_CONDITIONS]))
        rows = table.to_pylist()
        is_whole = table.schema.metadata[_CHECKSUM] == _checksum(rows)
        if not (is_whole and table.schema.equals(_SCHEMA)):
            return None
        return Recording(
            conditions=conditions,
            samples=[_sampled(row, conditions) for row in rows if row["verdict"] is None],
            verdicts=[_judged(row) for row in rows if row["verdict"] is not None],
        )
    except _UNREADABLE:
        return None


def _checksum(rows: Sequence[Mapping[str, Json]]) -> bytes:
    """Return the CRC-32 of the rows: parquet's own does not see what stands between its pages."""
    content = pa.BufferOutputStream()
    with pa.ipc.new_stream(content, _SCHEMA) as stream:
        stream.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA))
    return f"{crc32(content.getvalue()):08x}".encode()


def _hash(*parts: Json) -> bytes:
    return hashlib.sha256(json.dumps(parts).encode()).digest()


def _of_sample(entry: Sampled) -> Mapping[str, Json]:
    return {
        "name": storable(entry.name),
        "key": entry.key,
        "token_ids": entry.sample.token_ids,
        "logps": entry.sample.logps,
        "entropy": entry.sample.entropy,
        "finish_reason": entry.sample.finish_reason.value,
        "weights_version": entry.sample.weights_version,
    }


def _of_verdict(entry: Judged) -> Mapping[str, Json]:
    verdict = entry.verdict
    content = (verdict.status, verdict.score, verdict.failure, verdict.stage)
    return {
        "name": storable(entry.name),
        "key": entry.key,
        "verifier": storable(verdict.verifier),
        "version": storable(verdict.version),
        "verdict": encode(*content, verdict.diagnostics, verdict.latency_s),
    }


def _sampled(row: Mapping[str, Json], conditions: Conditions) -> Sampled:
    ids, logps = row["token_ids"], row["logps"]
    if not ids or min(ids) < 0 or len(logps) != len(ids) or any(map(math.isnan, logps)):
        raise ValueError("no engine gives such a completion")
    if row["weights_version"] != conditions.weights_version:
        raise ValueError("a step samples from the weights that it begins with")
    sample = Sample(
        token_ids=ids,
        logps=logps,
        entropy=row["entropy"],
        finish_reason=FinishReason(row["finish_reason"]),
        weights_version=row["weights_version"],
    )
    return Sampled(**_named(row), sample=sample)


def _judged(row: Mapping[str, Json]) -> Judged:
    verdict = decode(row["verdict"], row["verifier"], row["version"])
    if verdict.is_judgement != (verdict.score is not None and math.isfinite(verdict.score)):
        raise ValueError("no verifier may give such a score")
    return Judged(**_named(row), verdict=verdict)


def _named(row: Mapping[str, Json]) -> dict[str, Json]:
    if row["name"] is None or row["key"] is None:
        raise ValueError("every entry has a name and a key")
    return {"name": row["name"], "key": row["key"]}
