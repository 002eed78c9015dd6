"""Print how long f1-extraction and json-schema take for 64 of their golden cases.

Usage: python benchmarks/structured_verifiers_speed.py
"""

from __future__ import annotations

import json
import statistics
import time
from itertools import cycle, islice
from pathlib import Path

from rlvr_plugin_f1_extraction import F1Extraction
from rlvr_plugin_json_schema import JsonSchema

from rlvr_core.api import RowVerifier, VerifyRow

PLUGINS = Path(__file__).parents[1] / "plugins"
COMPLETIONS = 64
REPEATS = 20


def main() -> None:
    for folder, plugin in (("f1-extraction", F1Extraction), ("json-schema", JsonSchema)):
        lines = (PLUGINS / folder / "golden.jsonl").read_text(encoding="utf-8").splitlines()
        rows = list(islice(cycle(map(json.loads, lines)), COMPLETIONS))
        times_ms = [measured_ms(plugin, rows) for _ in range(REPEATS)]
        print(f"{folder}: {COMPLETIONS} completions")
        print(f"  first {times_ms[0]:.1f} ms, median {statistics.median(times_ms):.1f} ms")


def measured_ms(plugin: type[RowVerifier], rows: list[dict]) -> float:
    """Return the time of reading the ground truths and judging, as a worker does both."""
    start = time.perf_counter()
    for row in rows:
        verifier = plugin(plugin.Config(**row["config"]))
        truth = plugin.GroundTruth.model_validate(row["ground_truth"])
        completion = row["completion"]
        judged = VerifyRow(id="row", prompt="", completion=completion, ground_truth=truth)
        verifier.verify_row(judged)
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    main()
