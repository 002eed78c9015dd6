"""Print what supervised verification costs a row, beyond the verifier's own time.

Run from the repository root: ``python benchmarks/verify_pool.py``.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

from rlvr_core.api.plugin import Family, VerifyBatch, VerifyRow
from rlvr_core.builtin.exact_match import ExactMatch
from rlvr_core.config.models import PluginEntry, VerificationSection
from rlvr_core.plugins.ref import PluginRef
from rlvr_core.verification.engine import VerifyEngine
from rlvr_core.verification.rows import RawRow

GOAL_US = 50
VERIFIER = "rlvr_core.builtin.exact_match:ExactMatch"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2048, help="rows in a batch")
    parser.add_argument("--bytes", type=int, default=2500, help="characters in a completion")
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()
    rows = [
        RawRow(
            id=str(index),
            completion="x" * (arguments.bytes - 8) + f"\n{index % 97}",
            ground_truth={"answer": str(index % 89)},
        )
        for index in range(arguments.rows)
    ]
    reference = PluginRef(
        Family.VERIFIERS, "exact-match", "exact-match", VERIFIER, "rlvr-core", "0",
        {"extract": "last-line"},
    )  # fmt: skip
    direct_us = in_process_us(reference, rows, arguments.batches)
    print(f"{Path(__file__).name}: {arguments.rows} rows of {arguments.bytes} characters")
    print(f"in process:        {direct_us:6.1f} us a row")
    for workers in arguments.workers:
        times_us = supervised_us(reference, rows, arguments.batches, workers)
        median_us = statistics.median(times_us)
        print(
            f"{workers} worker{'s' if workers > 1 else ' '}:         {median_us:6.1f} us a row "
            f"(fastest {min(times_us):.1f}, slowest {max(times_us):.1f}); "
            f"overhead {median_us - direct_us:.1f} us, goal at most {GOAL_US}"
        )


def in_process_us(reference: PluginRef, rows: list[RawRow], batches: int) -> float:
    verifier = ExactMatch(ExactMatch.Config.model_validate(dict(reference.config)))
    times_us = []
    for _ in range(batches):
        began_s = time.perf_counter()
        batch = VerifyBatch(
            rows=[
                VerifyRow(
                    id=row.id,
                    prompt=row.prompt,
                    completion=row.completion,
                    ground_truth=verifier.GroundTruth.model_validate(row.ground_truth),
                )
                for row in rows
            ]
        )
        verifier.rlvr_verify(batch)
        times_us.append((time.perf_counter() - began_s) / len(rows) * 1e6)
    return statistics.median(times_us)


def supervised_us(
    reference: PluginRef, rows: list[RawRow], batches: int, workers: int
) -> list[float]:
    entry = PluginEntry.model_validate("exact-match")
    settings = VerificationSection(workers=workers)
    times_us = []
    with VerifyEngine([(reference, entry)], settings) as engine:
        engine.judge("exact-match", rows)
        for _ in range(batches):
            began_s = time.perf_counter()
            engine.judge("exact-match", rows)
            times_us.append((time.perf_counter() - began_s) / len(rows) * 1e6)
    return times_us


if __name__ == "__main__":
    main()
