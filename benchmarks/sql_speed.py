"""Print how long sql-exec takes for 64 of its golden cases, without and with perturbed copies.

Usage: python benchmarks/sql_speed.py
"""

from __future__ import annotations

import json
import statistics
import time
from itertools import cycle, islice
from pathlib import Path

from rlvr_plugin_sql_exec import SqlExec

from rlvr_core.api import VerifyRow

GOLDEN = Path(__file__).parents[1] / "plugins" / "sql-exec" / "golden.jsonl"
COMPLETIONS = 64
REPEATS = 20


def main() -> None:
    cases = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
    for title, chosen in (
        ("one database", [case for case in cases if not case["config"].get("perturb")]),
        ("perturbed copies too", [case for case in cases if case["config"].get("perturb")]),
    ):
        rows = list(islice(cycle(chosen), COMPLETIONS))
        times_ms = [measured_ms(rows) for _ in range(REPEATS)]
        print(f"sql-exec, {title}: {COMPLETIONS} completions")
        print(f"  first {times_ms[0]:.1f} ms, median {statistics.median(times_ms):.1f} ms")


def measured_ms(rows: list[dict]) -> float:
    """Return the time of reading the ground truths and judging, as a worker does both."""
    start = time.perf_counter()
    for row in rows:
        verifier = SqlExec(SqlExec.Config(**row["config"]))
        truth = SqlExec.GroundTruth.model_validate(row["ground_truth"])
        judged = VerifyRow(id="row", prompt="", completion=row["completion"], ground_truth=truth)
        verifier.verify_row(judged)
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    main()
