"""Data from the tasksets of the library ``verifiers``: ``rlvr data make verifiers:TASKSET``."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlvr_core.adapters.dealing import deal
from rlvr_core.adapters.messages import prompt_messages
from rlvr_core.adapters.verifiers_library import load_taskset, why_not
from rlvr_core.api.errors import DataError, StackError
from rlvr_core.api.verdicts import Json
from rlvr_core.data.splits import to_json_lines, write_once

_DRAWS_A_ROW = 20
"""Of a taskset that never ends."""


def make_verifiers(
    out: Path,
    taskset: str,
    sizes: Mapping[str, int],
    settings: Mapping[str, Json] | None = None,
) -> dict[str, Path]:
    """Write ``train.jsonl``, ``dev.jsonl`` and ``gate.jsonl``, which share no task.

    Args:
        out: Folder of the files; made when absent.
        taskset: Name of the taskset's package.
        sizes: The most rows of each split; a taskset that ends may have fewer.
        settings: Of the taskset's own configuration.

    Returns:
        The path of each split.

    Raises:
        EnvironmentFault: RLVR-E101, the library is not installed.
        StackError: RLVR-S106, there is no such taskset, it does not take these settings, its tasks
            need more than one reply, or a split would be empty.
        DataError: RLVR-D102, a prompt is not text; RLVR-D103, other files stand there already.
    """
    try:
        found = load_taskset(taskset, settings or {})
    except ValueError as error:
        raise StackError(
            "RLVR-S106", str(error), fix="correct the name or --set; install the taskset's package"
        ) from error
    draws = None if found.bounded else _DRAWS_A_ROW * sum(sizes.values()) + 1000
    dealt = deal(_problems(itertools.islice(iter(found), draws), taskset), sizes)
    empty = [split for split, rows in dealt.items() if not rows]
    if empty:
        raise StackError(
            "RLVR-S106",
            f"{taskset} has too few tasks: no row for {', '.join(empty)}",
            fix="choose a larger taskset",
        )
    files = {
        f"{split}.jsonl": to_json_lines(
            _row(f"{split}-{number:05d}", split, taskset, prompt, data)
            for number, (prompt, data) in enumerate(rows, start=1)
        )
        for split, rows in dealt.items()
    }
    return {name.removesuffix(".jsonl"): path for name, path in write_once(out, files).items()}


def _problems(
    tasks: Iterator[Any], taskset: str
) -> Iterator[tuple[str, tuple[list[dict[str, str]], dict[str, Json]]]]:
    for task in tasks:
        reason = why_not(task)
        if reason is not None:
            raise StackError(
                "RLVR-S106",
                f"tasks of {taskset} cannot be scored by a reply alone: {reason}",
                fix="choose a taskset of single replies",
            )
        data = task.data.model_dump(mode="json", exclude_defaults=True)
        known = {key: value for key, value in data.items() if key != "idx"}
        yield json.dumps(known, sort_keys=True), (_prompt(task.data, taskset), data)


def _prompt(data: Any, taskset: str) -> list[dict[str, str]]:
    asked = prompt_messages(data.prompt)
    turns = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
    if data.system_prompt:
        turns = [{"role": "system", "content": data.system_prompt}, *turns]
    if not turns[-1]["content"].strip() or turns[-1]["role"] != "user":
        raise DataError(
            "RLVR-D102",
            f"a task of {taskset} does not begin with text for the model",
            fix="choose a taskset whose tasks have a prompt",
        )
    return turns


def _row(
    row_id: str, split: str, taskset: str, prompt: list[dict[str, str]], data: dict[str, Json]
) -> dict[str, Json]:
    return {
        "id": row_id,
        "prompt": prompt,
        "verifier": {"type": "verifiers", "data": data},
        "metadata": {
            "kind": taskset,
            "source": f"rlvr data make verifiers:{taskset}",
            "split": split,
        },
    }
