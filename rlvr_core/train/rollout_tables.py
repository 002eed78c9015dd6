"""Rollouts and verdicts as parquet tables; every column is described in the run-folder reference.

Both tables share the columns of a completion. A table of a step adds the one verdict that was
rewarded, the reward and the advantages; a table of an evaluation adds all graders' verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rlvr_core.api.rollouts import Group, Prompt, Rollout
from rlvr_core.api.verdicts import Json, Verdict
from rlvr_core.records.layout import prompt_to_json, storable, to_json_text

_SEGMENT = pa.struct(
    [
        ("token_ids", pa.list_(pa.int32())),
        ("is_sampled", pa.bool_()),
        ("logps", pa.list_(pa.float32())),
    ]
)
_COMPLETION_FIELDS = [
    ("row_id", pa.string()),
    ("sample_index", pa.int32()),
    ("prompt", pa.string()),
    ("sampled_under", pa.string()),
    ("trained_under", pa.string()),
    ("ground_truth", pa.string()),
    ("metadata", pa.string()),
    ("completion", pa.string()),
    ("segments", pa.list_(_SEGMENT)),
    ("finish_reason", pa.string()),
    ("weights_version", pa.int64()),
    ("length", pa.int32()),
    ("entropy", pa.float64()),
]
_VERDICT_FIELDS = [
    ("status", pa.string()),
    ("score", pa.float64()),
    ("failure", pa.string()),
    ("stage", pa.string()),
    ("diagnostics", pa.string()),
    ("verifier", pa.string()),
    ("version", pa.string()),
    ("latency_s", pa.float64()),
]
ROLLOUT_SCHEMA = pa.schema(
    [
        ("group", pa.int32()),
        *_COMPLETION_FIELDS,
        ("loss_weight", pa.float64()),
        *_VERDICT_FIELDS,
        ("reward", pa.float64()),
        ("advantages", pa.list_(pa.float64())),
        ("kept", pa.bool_()),
        ("dead", pa.bool_()),
        ("group_weight", pa.float64()),
        ("notes", pa.string()),
    ]
)
EVALUATION_SCHEMA = pa.schema(
    [
        *_COMPLETION_FIELDS,
        ("verdicts", pa.list_(pa.struct([("grader", pa.string()), *_VERDICT_FIELDS]))),
    ]
)


def rollout_table(groups: Sequence[Group], kept: Sequence[bool]) -> pa.Table:
    """Return the table of a step, one row a rollout, group by group.

    Raises:
        ValueError: When `kept` does not say one thing a group.
    """
    rows = [
        {
            "group": index,
            **_completion_columns(rollout),
            "loss_weight": rollout.loss_weight,
            **_verdict_columns(rollout.verdict),
            "reward": rollout.reward,
            "advantages": _advantages(rollout),
            "kept": is_kept,
            "dead": group.is_dead,
            "group_weight": group.weight,
            "notes": to_json_text(rollout.notes) if rollout.notes else None,
        }
        for index, (group, is_kept) in enumerate(zip(groups, kept, strict=True))
        for rollout in group.rollouts
    ]
    return pa.Table.from_pylist(rows, schema=ROLLOUT_SCHEMA)


def evaluation_table(
    rollouts: Sequence[Rollout], verdicts: Mapping[str, Sequence[Verdict]]
) -> pa.Table:
    """Return the table of an evaluation, one row a completion, graders in the given order.

    Raises:
        ValueError: When a grader does not have one verdict a completion.
    """
    for grader, given in verdicts.items():
        if len(given) != len(rollouts):
            raise ValueError(f"{grader}: {len(given)} verdicts for {len(rollouts)} completions")
    rows = [
        {
            **_completion_columns(rollout),
            "verdicts": [
                {"grader": storable(grader), **_verdict_columns(given[index])}
                for grader, given in verdicts.items()
            ],
        }
        for index, rollout in enumerate(rollouts)
    ]
    return pa.Table.from_pylist(rows, schema=EVALUATION_SCHEMA)


def write_table(table: pa.Table, path: Path) -> None:
    """Write `table` as a zstd-compressed parquet file."""
    pq.write_table(table, path, compression="zstd")


def _completion_columns(rollout: Rollout) -> dict[str, Json]:
    row = rollout.row
    return {
        "row_id": storable(row.id),
        "sample_index": rollout.sample_index,
        "prompt": prompt_to_json(row.prompt),
        "sampled_under": _if_other(rollout.sampled_under, row.prompt),
        "trained_under": _if_other(rollout.trained_under, row.prompt),
        "ground_truth": to_json_text(row.ground_truth),
        "metadata": to_json_text(row.metadata) if row.metadata else None,
        "completion": storable(rollout.completion),
        "segments": [
            {
                "token_ids": list(segment.token_ids),
                "is_sampled": segment.is_sampled,
                "logps": list(segment.logps),
            }
            for segment in rollout.segments
        ],
        "finish_reason": rollout.finish_reason.value,
        "weights_version": rollout.weights_version,
        "length": rollout.length,
        "entropy": rollout.entropy,
    }


def _verdict_columns(verdict: Verdict | None) -> dict[str, Json]:
    if verdict is None:
        return {name: None for name, _ in _VERDICT_FIELDS}
    columns = verdict.to_json()
    columns["diagnostics"] = to_json_text(columns["diagnostics"])
    columns["verifier"] = storable(verdict.verifier)
    columns["version"] = storable(verdict.version)
    return columns


def _advantages(rollout: Rollout) -> list[float]:
    advantage = rollout.advantage
    return list(advantage) if isinstance(advantage, Sequence) else [float(advantage)]


def _if_other(prompt: Prompt, own: Prompt) -> str | None:
    return None if prompt == own else prompt_to_json(prompt)
