"""Golden cases: completions with the score that is right, in JSON lines.

``{"completion", "ground_truth", "expected"?, "id"?, "prompt"?, "config"?, "near_miss"?,
"better_than"?, "why"?}``; other keys are the author's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlvr_core.api.errors import DataError
from rlvr_core.api.verdicts import Json
from rlvr_core.verification.given import parse_rows, refuse
from rlvr_core.verification.rows import RawRow

SCORE_TOLERANCE = 1e-3
"""How far a score may be from ``expected``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenCase:
    """One completion with the score that is right."""

    id: str
    row: RawRow
    has_expected: bool
    expected: float | None = None
    """None: the verifier abstains."""
    is_near_miss: bool = False
    """It must not pass, and nearly does: a wrong answer that looks right."""
    better_than: str | None = None
    """Id of a case whose score must be lower."""
    config: Mapping[str, Json] = field(default_factory=dict)
    """Settings for this case, beside those of the check."""


def load_cases(path: Path) -> list[GoldenCase]:
    """Read golden cases.

    Raises:
        DataError: The file cannot be read (RLVR-D101), or lines of it are no cases (RLVR-D102).
    """
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as exc:
        raise DataError(
            "RLVR-D101",
            f"the golden cases {path} could not be read",
            cause=f"{type(exc).__name__}: {exc}",
            fix="write JSON lines in UTF-8, one completion with its expected score each",
        ) from exc
    problems: list[str] = []
    labelled: list[tuple[str, Json]] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                labelled.append((f"line {number}", json.loads(line)))
            except (ValueError, RecursionError) as exc:
                problems.append(f"line {number}: not JSON: {exc}")
    given = parse_rows(labelled, problems)
    of_label = dict(labelled)
    cases = [_case(of_label[one.label], one.raw, one.config) for one in given]
    problems += _unknown_ids(cases)
    refuse(problems, len(labelled), str(path))
    return cases


def _case(written: Mapping[str, Json], row: RawRow, config: Mapping[str, Json]) -> GoldenCase:
    return GoldenCase(
        id=row.id,
        row=row,
        has_expected="expected" in written,
        expected=written.get("expected"),
        is_near_miss=bool(written.get("near_miss")),
        better_than=None if written.get("better_than") is None else str(written["better_than"]),
        config=config,
    )


def _unknown_ids(cases: Sequence[GoldenCase]) -> list[str]:
    known = {case.id for case in cases}
    return [
        f"case {case.id}: better_than names {case.better_than!r}, which is no case"
        for case in cases
        if case.better_than is not None and case.better_than not in known
    ]
