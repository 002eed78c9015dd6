"""Measure every verifier of this repository on graded cases, for docs/bundled-verifiers.md.

    python benchmarks/bundled_verifiers.py [CASES_FOLDER] [--only NAME ...]

Writes docs/bundled_verifiers.json; `make docs` renders it. Cases are the plugins' golden cases and
the files of CASES_FOLDER that CASES names below: rows of `completion`, `ground_truth`, `expected`
and perhaps `config`. What is not measured this time keeps its former figures. Rows are judged in
one worker process, all of them twice; times are those of the second round.
"""

from __future__ import annotations

import argparse
import json
import platform
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import rlvr_core
from rlvr_core.api import Verdict

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "docs" / "bundled_verifiers.json"
GOLDEN = {
    "exact-match": ROOT / "golden" / "exact-match.jsonl",
    **{path.parent.name: path for path in sorted(ROOT.glob("plugins/*/golden.jsonl"))},
}
MEASURED = [name for name in GOLDEN if name != "llm-judge"]
"""The agreement of `llm-judge` is that of the model that it asks."""
CASES = {
    "math-sympy": "math.jsonl",
    "ifeval": "ifeval.jsonl",
    "f1-extraction": "extraction.jsonl",
    "code-docker": "code.jsonl",
}
TIMEOUT_S = 60.0
SCORE_TOLERANCE = 0.005
"""Expected scores such as 0.6667 are written with rounding."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", type=Path, nargs="?")
    parser.add_argument("--only", nargs="+", choices=MEASURED, default=MEASURED)
    arguments = parser.parse_args()
    record = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
    for name in arguments.only:
        figures = record.setdefault(name, {})
        sources = {"golden": GOLDEN[name]}
        if arguments.cases is not None and name in CASES:
            sources["graded"] = arguments.cases / CASES[name]
        for kind, path in sources.items():
            lines = path.read_text("utf-8").splitlines()
            figures[kind] = measured(name, [json.loads(line) for line in lines if line.strip()])
            print(name, kind, json.dumps(figures[kind]))
        figures["machine"] = f"{platform.machine()}, Python {platform.python_version()}"
    known = {name: record[name] for name in sorted(record) if name in GOLDEN}
    RECORD.write_text(json.dumps(known, indent=2) + "\n", "utf-8")


def measured(name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return agreement and times of one verifier on rows with expected scores."""
    config = settings_of(name)
    verdicts = rlvr_core.verify(name, [*rows, *rows], config=config, workers=1, timeout_s=TIMEOUT_S)
    second = verdicts[len(rows) :]
    kinds = [kind_of(verdict, row["expected"]) for verdict, row in zip(second, rows, strict=True)]
    times_ms = sorted(verdict.latency_s * 1e3 for verdict in second)
    shares = {"median": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {
        "cases": len(rows),
        **{kind: kinds.count(kind) for kind in ("agree", "false pass", "false fail", "score")},
        "no verdict": kinds.count("no verdict"),
        "ms": {key: round(quantile(times_ms, share), 3) for key, share in shares.items()},
    }


def settings_of(name: str) -> dict[str, Any]:
    """Return the settings that a plugin's project wants it to be checked with."""
    path = ROOT / "plugins" / name / "pyproject.toml"
    if not path.exists():
        return {}
    found = tomllib.loads(path.read_text("utf-8")).get("tool", {})
    settings: dict[str, Any] = found.get("rlvr", {}).get("check", {}).get("config", {})
    return settings


def kind_of(verdict: Verdict, expected: float | None) -> str:
    """Return how a verdict stands to what a person expects; None expects that there is none."""
    if verdict.score is None:
        return "agree" if expected is None else "no verdict"
    if expected is not None and abs(verdict.score - expected) <= SCORE_TOLERANCE:
        return "agree"
    if verdict.score == 1:
        return "false pass"
    return "false fail" if expected == 1 else "score"


def quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


if __name__ == "__main__":
    main()
