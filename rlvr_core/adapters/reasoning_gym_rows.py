"""Data from the tasks of reasoning-gym: ``rlvr data make reasoning-gym:TASK``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlvr_core.adapters.dealing import deal
from rlvr_core.adapters.reasoning_gym import ANSWER_TAG, Scorer, load_library
from rlvr_core.api.errors import DataError, StackError, did_you_mean, exception_text
from rlvr_core.api.verdicts import Json
from rlvr_core.data.splits import to_json_lines, write_once

INSTRUCTION = f"\n\nGive the final answer as <{ANSWER_TAG}>…</{ANSWER_TAG}>."

_DRAWS_A_ROW = 20
_SEEDS = 2**32


def make_reasoning_gym(
    out: Path,
    task: str,
    seed: int,
    sizes: Mapping[str, int],
    settings: Mapping[str, Json] | None = None,
) -> dict[str, Path]:
    """Write ``train.jsonl``, ``dev.jsonl`` and ``gate.jsonl``, which share no problem.

    Args:
        out: Folder of the files; made when absent.
        task: Name of a task of the library.
        seed: Of the library's generator. Which split a problem belongs to does not depend on it.
        sizes: Rows of each split.
        settings: The task's own, such as its difficulty.

    Returns:
        The path of each split.

    Raises:
        EnvironmentFault: RLVR-E101, the library is not installed.
        StackError: RLVR-S106, there is no such task, it does not take these settings, or it has too
            few problems.
        DataError: RLVR-D102, its entries cannot be written as JSON; RLVR-D103, other files stand
            there already.
    """
    draws = _DRAWS_A_ROW * sum(sizes.values()) + 1000
    dataset = _dataset(task, {**(settings or {}), "seed": seed % _SEEDS, "size": draws})
    drawn = (dataset[index] for index in range(draws))
    dealt = deal(((entry["question"], entry) for entry in drawn), sizes)
    short = [f"{len(found)} of {sizes[split]} {split}" for split, found in dealt.items()]
    if any(len(found) < sizes[split] for split, found in dealt.items()):
        raise StackError(
            "RLVR-S106",
            f"{task} has too few problems: {draws} draws gave {', '.join(short)} rows",
            fix="ask for fewer, or for a harder task with --set",
        )
    scorer = Scorer(task)
    files = {
        f"{split}.jsonl": to_json_lines(
            _row(f"{split}-{number:05d}", split, task, _as_json(entry, task, scorer))
            for number, entry in enumerate(found, start=1)
        )
        for split, found in dealt.items()
    }
    return {name.removesuffix(".jsonl"): path for name, path in write_once(out, files).items()}


def _dataset(task: str, settings: Mapping[str, Json]) -> Any:
    library = load_library()
    known = sorted(library.factory.DATASETS)
    if task not in known:
        raise StackError(
            "RLVR-S106",
            f"reasoning-gym has no task {task!r}{did_you_mean(task, known)}",
            fix=f"its {len(known)} tasks are: {', '.join(known)}",
        )
    try:
        return library.create_dataset(task, **settings)
    except Exception as exc:
        raise StackError(
            "RLVR-S106",
            f"{task} does not take these settings",
            cause=exception_text(exc),
            fix="correct --set; the library's documentation lists the settings of each task",
        ) from exc


def _as_json(entry: Mapping[str, Any], task: str, scorer: Scorer) -> dict[str, Json]:
    """Return an entry as it will be read again, when the scorer takes it for the same."""
    problem = None
    again: dict[str, Json] = {}
    try:
        again = json.loads(json.dumps(entry, allow_nan=False))
        answer = entry["answer"]
        if isinstance(answer, str) and scorer(answer, again) != scorer(answer, dict(entry)):
            problem = "the scorer judges an entry otherwise once it was written"
    except Exception as exc:  # noqa: BLE001 - a scorer may stumble over what JSON made of an entry
        problem = exception_text(exc)
    if problem is not None:
        raise DataError(
            "RLVR-D102",
            f"entries of {task} cannot be written as rows",
            cause=problem,
            fix="this task needs Python objects that JSON has no form for; choose another",
        )
    return again


def _row(row_id: str, split: str, task: str, entry: dict[str, Json]) -> dict[str, Json]:
    return {
        "id": row_id,
        "prompt": [{"role": "user", "content": entry["question"] + INSTRUCTION}],
        "verifier": {"type": "reasoning-gym", "task": task, "entry": entry},
        "metadata": {
            "kind": task,
            "source": f"rlvr data make reasoning-gym:{task}",
            "split": split,
        },
    }
