"""``rlvr-steps coverage``: look at the references of a data file before training on them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from rlvr_core.api import Json
from rlvr_plugin_steps.coverage import FAULTS, Coverage, measure_coverage
from rlvr_plugin_steps.truth import Truth

_EXPLAINED = dict(
    zip(
        FAULTS,
        (
            "has fewer than two steps",
            "does not score 1 against itself",
            "scores as well in reverse order",
            "scores as well without its second half",
        ),
        strict=True,
    )
)
_SHOWN_PROBLEMS = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns 0, 1 for too little coverage, or 2 for rows that cannot be read."""
    parser = argparse.ArgumentParser(
        prog="rlvr-steps", description="Tools for data of the verifier `steps`."
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser(
        "coverage",
        help="measure on how many rows the reference can be aligned with",
        description="Measures on how many rows the reference can be aligned with. Exit code 1 "
        "when they are too few to train on.",
    )
    verb.add_argument("file", metavar="ROWS.jsonl", help="rows as for training; - reads them in")
    verb.add_argument(
        "--type", default="steps", metavar="NAME", help="the rows' verifier.type [default: steps]"
    )
    verb.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    truths, problems = _read(options.file, options.type)
    if not truths and not problems:
        problems = [f"no row has the verifier {options.type!r}"]
    if problems:
        for problem in problems[:_SHOWN_PROBLEMS]:
            sys.stderr.write(f"{problem}\n")
        if len(problems) > _SHOWN_PROBLEMS:
            sys.stderr.write(f"… and {len(problems) - _SHOWN_PROBLEMS} more\n")
        return 2
    coverage = measure_coverage(truths)
    if options.json:
        sys.stdout.write(json.dumps(coverage.to_json()) + "\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _table(coverage)))
    return 0 if coverage.is_enough else 1


def _read(file: str, name: str) -> tuple[list[Truth], list[str]]:
    """Return the ground truths of the rows for one verifier, and what is wrong with any."""
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        lines = data.decode("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        return [], [f"{file} could not be read: {error}"]
    truths, problems = [], []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            block = _block(json.loads(line))
            if block.pop("type", None) == name:
                truths.append(Truth.model_validate(block))
        except ValidationError as error:
            problems += [f"line {number}: {problem}" for problem in _problems(error)]
        except (ValueError, RecursionError) as error:
            problems.append(f"line {number}: {error}")
    return truths, problems


def _block(row: Json) -> dict[str, Json]:
    block = row.get("verifier") if isinstance(row, dict) else None
    if not isinstance(block, dict):
        raise ValueError('is no row: {"prompt": …, "verifier": {"type": …, …}}')
    return dict(block)


def _problems(error: ValidationError) -> Iterator[str]:
    for problem in error.errors(include_url=False, include_input=False):
        place = ".".join(map(str, problem["loc"]))
        yield f"{place}: {problem['msg']}" if place else problem["msg"]


def _table(coverage: Coverage) -> Iterator[str]:
    words = 1 - coverage.checkable - coverage.numeric
    yield f"rows                {coverage.rows:>7,}"
    yield f"usable references   {coverage.usable:>7,}  {coverage.share:.1%}"
    for fault, count in coverage.faults.items():
        yield f"  {fault:<18}{count:>6,}  {_EXPLAINED[fault]}"
    yield f"steps, median       {coverage.median_steps:>7g}"
    yield f"  with an equation  {coverage.checkable:>7.1%}"
    yield f"  with a number     {coverage.numeric:>7.1%}"
    yield f"  with words only   {words:>7.1%}"
    verdict = "enough" if coverage.is_enough else "too few to train on"
    yield f"{verdict}: at least {coverage.to_json()['least']:.0%} must be usable"
