"""``rlvr verify``: judge the rows of a file with one verifier."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rlvr_core.api.errors import DataError, exception_text, shortened

if TYPE_CHECKING:
    from rlvr_core.api.verdicts import Json, Verdict

SCORE_TOLERANCE = 1e-3
"""How far a score may be from ``expected``."""

_SHOWN_CHARACTERS = 100
_SHOWN_ROWS = 50


def verify(
    plugin: Annotated[str, typer.Argument(help="Name of an installed verifier.")],
    file: Annotated[
        str,
        typer.Argument(
            help="JSON lines {id?, prompt?, completion, ground_truth, config?, expected?}; - is "
            "standard input."
        ),
    ],
    config: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A setting of the verifier; may be repeated."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a row.")] = False,
    timeout_s: Annotated[
        float, typer.Option(min=0.001, max=3600, help="Deadline of a row in seconds.")
    ] = 10.0,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes [default: cores - 1].")
    ] = None,
) -> None:
    """Judge completions with one verifier. Exit code 1 when a score is not the expected one.

    Shows the rows that are not as expected, or all where nothing is expected; 50 at most.
    """
    from rlvr_core.cli.options import plugin_settings
    from rlvr_core.config.models import VerificationSection
    from rlvr_core.verification.api import verify_labelled

    settings = VerificationSection(workers=workers, timeout_s=timeout_s, max_error_rate=1.0)
    rows, problems = _read(file)
    if not rows and not problems:
        raise DataError(
            "RLVR-D102",
            f"there are no rows in {_name(file)}",
            fix="write one JSON object a line, with completion and ground_truth",
        )
    verdicts = verify_labelled(
        plugin, rows, plugin_settings(config or []), settings, origin=_name(file), problems=problems
    )
    lines = [
        _merged(label, row, verdict) for (label, row), verdict in zip(rows, verdicts, strict=True)
    ]
    disagreeing = [line for line in lines if not _agrees(line)]
    if as_json:
        for line in lines:
            typer.echo(_json_text(line))
    else:
        _print_table(disagreeing if _has_expected(lines) else lines)
    _print_summary(lines, disagreeing)
    if disagreeing:
        raise typer.Exit(1)


def _read(file: str) -> tuple[list[tuple[str, Any]], list[str]]:
    """Return (label, row) of every line that is not blank, and what could not be parsed."""
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        lines = data.decode("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as exc:
        raise DataError(
            "RLVR-D101",
            f"{_name(file)} could not be read",
            cause=exception_text(exc),
            fix="give a file of JSON lines in UTF-8, or - for standard input",
        ) from exc
    rows: list[tuple[str, Any]] = []
    problems = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                rows.append((f"line {number}", json.loads(line, parse_constant=_refuse_constant)))
            except (ValueError, RecursionError) as exc:
                problems.append(f"line {number}: not JSON: {exc}")
    return rows, problems


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def _merged(label: str, row: Mapping[str, Any], verdict: Verdict) -> dict[str, Json]:
    """Return the line that is printed: the verdict, then what else the row said."""
    given = row.get("id")
    identifier = label.removeprefix("line ") if given is None else given
    line = {"id": identifier, **verdict.to_json()}
    return {**line, **{key: value for key, value in row.items() if key not in line}}


def _agrees(line: Mapping[str, Any]) -> bool:
    if "expected" not in line:
        return True
    expected, score = line["expected"], line["score"]
    if expected is None:
        return bool(line["status"] == "abstained")
    return score is not None and abs(score - expected) <= SCORE_TOLERANCE


def _has_expected(lines: Sequence[Mapping[str, Any]]) -> bool:
    return any("expected" in line for line in lines)


def _in_short(diagnostics: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return diagnostics with the line where a verifier broke in place of its traceback."""
    frames = diagnostics.get("traceback")
    if not (isinstance(frames, list) and frames):
        return diagnostics
    rest = {key: value for key, value in diagnostics.items() if key != "traceback"}
    return {"at": Path(str(frames[-1])).name, **rest}


def _print_table(lines: Sequence[Mapping[str, Any]]) -> None:
    """Print one line a row; in a terminal that is too narrow, diagnostics are cut."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from rlvr_core.cli.console import make_console

    if not lines:
        return
    has_expected = _has_expected(lines)
    table = Table(box=SIMPLE_HEAD)
    names = ["id", "status", "score", *(["expected"] if has_expected else []), "failure", "stage"]
    for name in names:
        justify: Literal["left", "right"] = "right" if name in ("score", "expected") else "left"
        table.add_column(name, justify=justify, no_wrap=True)
    table.add_column("diagnostics")
    for line in lines[:_SHOWN_ROWS]:
        cells = [_cell(line.get(name)) for name in names]
        shown = [f"{key}: {value}" for key, value in _in_short(line["diagnostics"]).items()]
        diagnostics = " ".join("; ".join(shown).split())
        # Of the columns this one alone may shrink; its text is cut then, never wrapped.
        last = Text(shortened(diagnostics, _SHOWN_CHARACTERS), no_wrap=True, overflow="ellipsis")
        style = "" if _agrees(line) else "bold red"
        table.add_row(*(Text(cell) for cell in cells), last, style=style)
    make_console().print(table)
    if len(lines) > _SHOWN_ROWS:
        typer.echo(f"… and {len(lines) - _SHOWN_ROWS} more; --json prints all")


def _print_summary(
    lines: Sequence[Mapping[str, Any]], disagreeing: Sequence[Mapping[str, Any]]
) -> None:
    from rlvr_core.verification.health import quantile

    kinds = Counter(
        f"{line['status']}/{line['failure']}" if line["failure"] else line["status"]
        for line in lines
    )
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    rows = "1 row" if len(lines) == 1 else f"{len(lines)} rows"
    typer.echo(f"{rows}: {counts or 'none'}", err=True)
    with_expected = sum("expected" in line for line in lines)
    if with_expected:
        agreeing = with_expected - len(disagreeing)
        typer.echo(
            f"agreement with expected: {agreeing} of {with_expected} "
            f"({agreeing / with_expected:.1%})",
            err=True,
        )
        if disagreeing:
            shown = ", ".join(str(line["id"]) for line in disagreeing[:20])
            more = f", … ({len(disagreeing) - 20} more)" if len(disagreeing) > 20 else ""
            typer.echo(f"not as expected: {shown}{more}", err=True)
    latencies_s = sorted(line["latency_s"] for line in lines)
    median_ms, p95_ms = (1000 * quantile(latencies_s, share) for share in (0.5, 0.95))
    typer.echo(f"latency a row: median {median_ms:.2f} ms, p95 {p95_ms:.2f} ms", err=True)


def _json_text(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    # Lone surrogates have no UTF-8 form; escaped they survive any terminal and any reader.
    return text if text.isprintable() else json.dumps(value)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else shortened(str(value), _SHOWN_CHARACTERS)


def _name(file: str) -> str:
    return "standard input" if file == "-" else file
