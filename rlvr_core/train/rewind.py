"""Setting aside what a run wrote after the step that it is continued from."""

from __future__ import annotations

from pathlib import Path

from rlvr_core.records import layout
from rlvr_core.records.logs import parse_line
from rlvr_core.train.storage import storing, write_aside


def set_aside(run: Path, step: int) -> Path | None:
    """Move everything in a run folder that is later than `step` to a folder of its own.

    Lines that cannot be read (torn by a kill) are moved too.

    Returns:
        The new folder under ``discarded/``; None when there was nothing later.
    """
    root = run / layout.DISCARDED
    with storing(root):
        numbers = [int(entry.name) for entry in root.glob("[0-9]*") if entry.name.isdigit()]
        target = root / f"{max(numbers, default=0) + 1:03d}"
        for name in layout.LOGS:
            _split_log(run / name, target / name, step)
        for name in (layout.ROLLOUTS, layout.EVALUATIONS):
            _move_tables(run / name, target / name, step)
    return target if target.exists() else None


def _split_log(log: Path, discarded: Path, step: int) -> None:
    """Move the lines of `log` that are later than `step` to `discarded`."""
    if not log.exists():
        return
    kept: list[bytes] = []
    dropped: list[bytes] = []
    for line in log.read_bytes().split(b"\n"):
        if line.strip():
            (kept if _is_within(line, step) else dropped).append(line + b"\n")
    if not dropped:
        return
    discarded.parent.mkdir(parents=True, exist_ok=True)
    # First the copy, then the cut: a kill in between leaves lines twice, never nowhere.
    write_aside(discarded, lambda aside: aside.write_bytes(b"".join(dropped)))
    write_aside(log, lambda aside: aside.write_bytes(b"".join(kept)))


def _is_within(line: bytes, step: int) -> bool:
    record = parse_line(line)
    if record is None:
        return False
    return not isinstance(record.get("step"), int) or record["step"] <= step


def _move_tables(folder: Path, discarded: Path, step: int) -> None:
    """Move the parquet files of steps later than `step` to `discarded`."""
    for file in sorted(folder.glob("[0-9]*.parquet")):
        number = file.stem.split("-")[0]
        if number.isdigit() and int(number) > step:
            discarded.mkdir(parents=True, exist_ok=True)
            file.replace(discarded / file.name)
