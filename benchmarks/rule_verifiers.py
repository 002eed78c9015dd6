"""Print how long each rule verifier of this repository takes for 64 completions.

    python benchmarks/rule_verifiers.py [NAME ...]

The completions are golden cases, repeated where there are fewer. Without names, those verifiers are
measured that judge by rules alone, inside their own process. The first batch includes what is
imported on demand; it and the median of further batches are printed. Ground truths are read in
each, as a worker does.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from itertools import cycle, islice
from typing import Any

from bundled_verifiers import GOLDEN

from rlvr_core.api import Verifier, VerifyBatch, VerifyRow

RULES = ("exact-match", "math-sympy", "ifeval", "f1-extraction", "json-schema")
COMPLETIONS = 64
REPEATS = 20


def main() -> None:
    plugins = {one.name: one for one in entry_points(group="rlvr.verifiers")}
    for name in sys.argv[1:] or RULES:
        plugin = plugins[name].load()
        rows = [json.loads(line) for line in GOLDEN[name].read_text("utf-8").splitlines()]
        chosen = list(islice(cycle(rows), COMPLETIONS))
        times_ms = [measured_ms(plugin, chosen) for _ in range(REPEATS)]
        median = statistics.median(times_ms)
        print(f"{name:<14} {COMPLETIONS} completions: first {times_ms[0]:7.1f} ms, ", end="")
        print(f"median {median:6.1f} ms, slowest {max(times_ms[1:]):6.1f} ms")


def measured_ms(plugin: type[Verifier], rows: Sequence[Mapping[str, Any]]) -> float:
    """Return the time of building the verifier, reading the ground truths and judging."""
    start = time.perf_counter()
    for row in rows:
        verifier = plugin(plugin.Config(**row.get("config", {})))
        truth = plugin.GroundTruth.model_validate(row["ground_truth"])
        judged = VerifyRow(id="row", prompt="", completion=row["completion"], ground_truth=truth)
        verifier.rlvr_verify(VerifyBatch(rows=[judged]))
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    main()
