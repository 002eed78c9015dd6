r"""Names, format number and text rules of a run folder, shared by its writer and its reader.

Text is stored as UTF-8. A lone surrogate, which UTF-8 cannot hold, is written as its six-character
escape (``\ud800``): inside JSON that is the standard escape and comes back exactly; in the plain
text columns of a parquet file it stays an escape (the token ids beside it are exact).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from rlvr_core.api.errors import RunFolderError, shortened
from rlvr_core.api.rollouts import Prompt
from rlvr_core.api.verdicts import Json
from rlvr_core.records.manifest_shape import shape_problem

FORMAT = 1
"""Version of the run folder's format; readers refuse newer ones."""
MANIFEST = "manifest.json"
STACK = "stack.yaml"
METRICS = "metrics.jsonl"
EVALS = "evals.jsonl"
EVENTS = "events.jsonl"
LOGS = (METRICS, EVALS, EVENTS)
ROLLOUTS = "rollouts"
EVALUATIONS = "evaluations"
RECORDED = "recorded"
CHECKPOINTS = "checkpoints"
CHECKPOINT_STATE = "state.json"
"""Inside the folder of a checkpoint; written last."""
DISCARDED = "discarded"
PARSE_FAILURES = ("no_answer", "malformed")
"""Failures that mean: no answer could be read at all."""
_LONGEST_VALUE = 60


def rollouts_file(step: int) -> str:
    """Return the name, inside a run folder, of the file with the rollouts of a step."""
    return f"{ROLLOUTS}/{step:06d}.parquet"


def recorded_file(step: int) -> str:
    """Return the name, inside a run folder, of the file that a step is made again from."""
    return f"{RECORDED}/{step:06d}.parquet"


def stack_file(manifest: Mapping[str, Json]) -> str:
    """Return the name, inside a run folder, of the stack that the run is made with now."""
    return str(manifest.get("stack_file", STACK))


def described_changes(changes: Mapping[str, Sequence[Json]]) -> str:
    """Return what a resume found changed, (before, now) by key path, in one line."""
    return "; ".join(
        f"{key} was {short_text(was)}, is {short_text(now)}" for key, (was, now) in changes.items()
    )


def short_text(value: Json) -> str:
    """Return a value as people read it, cut where it is long."""
    text = value if isinstance(value, str) else to_json_text(value)
    return shortened(text, _LONGEST_VALUE)


def complete_checkpoints(run: Path) -> list[Path]:
    """Return the complete checkpoints of a run, oldest first."""
    # Not the copy that someone made of one beside it, such as 000004.bak.
    named = [path for path in (run / CHECKPOINTS).glob("[0-9]*") if path.name.isdecimal()]
    found = [path for path in named if (path / CHECKPOINT_STATE).is_file()]
    return sorted(found, key=lambda path: int(path.name))


def evaluation_file(step: int, split: str) -> str:
    """Return the name, inside a run folder, of the file with an evaluation's completions."""
    return f"{EVALUATIONS}/{step:06d}-{split}.parquet"


def storable(text: str) -> str:
    r"""Return text that UTF-8 can hold: lone surrogates become ``\udXXX`` escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def to_json_text(value: Json) -> str:
    """Return strict one-line JSON; NaN and infinities become null, unknown objects their repr."""
    return storable(json.dumps(without_non_finite(value), ensure_ascii=False, default=repr))


def without_non_finite(value: Json) -> Json:
    """Return a copy of `value` in which NaN and infinities are None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): without_non_finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_non_finite(item) for item in value]
    return value


def prompt_to_json(prompt: Prompt) -> str:
    """Return a prompt as JSON: a string, or a list of ``{"role", "content"}``."""
    if isinstance(prompt, str):
        return to_json_text(prompt)
    return to_json_text([asdict(turn) for turn in prompt])


def read_manifest(path: Path) -> dict[str, Json]:
    """Return the manifest of the run folder at `path`.

    Raises:
        RunFolderError: RLVR-T104, when there is none, it is damaged, or its format is newer.
    """
    file = path / MANIFEST
    try:
        manifest = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise RunFolderError(
            "RLVR-T104",
            f"{path} is not a run folder",
            origin=str(path),
            cause=f"it holds no {MANIFEST}" if path.is_dir() else "there is no such folder",
            fix=_runs_below(path) or "give the folder that `rlvr train` printed at its end",
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise unreadable(file, str(error)) from error
    if not isinstance(manifest, dict) or not isinstance(manifest.get("format"), int):
        raise unreadable(file, 'it is not a JSON object with a number "format"')
    if manifest["format"] > FORMAT:
        raise RunFolderError(
            "RLVR-T104",
            f"{path} was written by a newer rlvr",
            origin=str(file),
            cause=f"it has format {manifest['format']}, this version reads up to {FORMAT}",
            fix="upgrade rlvr-core",
        )
    problem = shape_problem(manifest)
    if problem:
        raise unreadable(file, problem)
    return manifest


def _runs_below(path: Path) -> str | None:
    """Name the runs that stand in `path`, as the two arms of a demo do; None where none does."""
    found = sorted(file.parent for file in path.glob(f"*/{MANIFEST}"))[:5]
    return f"it holds runs: give {' or '.join(map(str, found))}" if found else None


def unreadable(file: Path, cause: str) -> RunFolderError:
    """Return the error that a file of a run folder cannot be read."""
    return RunFolderError(
        "RLVR-T104",
        f"{file.name} cannot be read",
        origin=str(file),
        cause=cause,
        fix="restore the file from a copy; the other files of the run do not depend on it",
    )
