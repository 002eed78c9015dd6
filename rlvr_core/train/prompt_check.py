"""Prompts that the model cannot take are found before step 0; what looks odd is said."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from rlvr_core.api.errors import DataError, listed
from rlvr_core.api.rollouts import Prompt, Row
from rlvr_core.config.models import RolloutSection
from rlvr_core.train.prepare import Prepared

if TYPE_CHECKING:
    from transformers import PretrainedConfig

    from rlvr_core.rollout.tokens import PromptTokenizer

Encoded: TypeAlias = Mapping[str, tuple[int, ...]]
"""Row id to the ids of its prompt."""


def check_prompts(
    prepared: Prepared, tokenizer: PromptTokenizer, config: PretrainedConfig
) -> list[str]:
    """Turn every prompt into tokens, refuse those that cannot be used, and say what looks odd.

    Args:
        prepared: All of its splits are looked at.
        tokenizer: The model's.
        config: The model's.

    Returns:
        Remarks, one sentence each.

    Raises:
        DataError: RLVR-D102, prompts that the chat template refuses, that leave no room for a
            completion, that hold no text, or that have tokens the model does not know.
    """
    rollout = prepared.resolved.stack.rollout
    problems: list[str] = []
    remarks: list[str] = []
    for split, rows in prepared.splits.items():
        encoded, refused = _encode(rows, tokenizer)
        said = [*refused, *_problems(rows, encoded, tokenizer, config, rollout)]
        problems += [f"{split}: {problem}" for problem in said]
        remarks += [f"{split}: {remark}" for remark in _remarks(rows, encoded, tokenizer)]
    if problems:
        raise DataError(
            "RLVR-D102",
            "some prompts cannot be used with this model",
            cause="\n".join(problems),
            fix="correct or leave out these rows; where they are too long, a smaller "
            "rollout.max_completion_tokens makes room",
        )
    return remarks


def prompt_limit(rollout: RolloutSection, config: PretrainedConfig) -> tuple[int, str]:
    """Return how many tokens a prompt may take, and why."""
    limits = [(sys.maxsize, "no limit is known")]
    positions = getattr(config, "max_position_embeddings", None)
    if positions:
        completion = rollout.max_completion_tokens
        reason = f"the model has {positions} positions, completions may take {completion}"
        limits.append((max(positions - completion, 0), reason))
    if rollout.max_prompt_tokens:
        limits.append((rollout.max_prompt_tokens, "rollout.max_prompt_tokens"))
    return min(limits)


def _encode(rows: Sequence[Row], tokenizer: PromptTokenizer) -> tuple[Encoded, list[str]]:
    """Return the ids of each prompt, and the problems of those that have none."""
    encoded: dict[str, tuple[int, ...]] = {}
    refused: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        try:
            encoded[row.id] = tokenizer.encode(row.prompt)
        except DataError as error:
            refused[error.cause or error.message].append(row.id)
    return encoded, [_counted(ids, f"cannot be encoded: {why}") for why, ids in refused.items()]


def _problems(
    rows: Sequence[Row],
    encoded: Encoded,
    tokenizer: PromptTokenizer,
    config: PretrainedConfig,
    rollout: RolloutSection,
) -> Iterator[str]:
    limit, reason = prompt_limit(rollout, config)
    vocabulary = int(config.get_text_config().vocab_size)
    special = tokenizer.special_ids
    long = [f"{row} ({len(ids)})" for row, ids in encoded.items() if len(ids) > limit]
    unknown = [row for row, ids in encoded.items() if ids and max(ids) >= vocabulary]
    texts = {row.id for row in rows if not tokenizer.uses_template(row.prompt)}
    empty = [row for row, ids in encoded.items() if row in texts and special.issuperset(ids)]
    if long:
        yield _counted(long, f"are too long, they may take {limit} tokens ({reason})")
    if unknown:
        yield _counted(unknown, f"have tokens that the model, with {vocabulary}, does not know")
    if empty:
        yield _counted(empty, "have no tokens but special ones")


def _remarks(rows: Sequence[Row], encoded: Encoded, tokenizer: PromptTokenizer) -> Iterator[str]:
    bos = tokenizer.bos_id
    doubled = [row for row, ids in encoded.items() if bos is not None and ids[:2] == (bos, bos)]
    if doubled:
        yield _counted(doubled, "begin with the model's BOS token twice")
    marked = [
        row.id
        for row in rows
        if tokenizer.uses_template(row.prompt) and _holds(row.prompt, tokenizer.special_texts)
    ]
    if marked:
        yield _counted(
            marked,
            "hold the text of special tokens inside a chat turn, where it becomes those tokens; if "
            "they were put into the chat template already, set rollout.prompt_format: text",
        )
    by_ids: defaultdict[tuple[int, ...], dict[Prompt, str]] = defaultdict(dict)
    for row in rows:
        by_ids[encoded.get(row.id, ())].setdefault(row.prompt, row.id)
    alike = [row for same in by_ids.values() if len(same) > 1 for row in same.values()]
    if alike:
        yield _counted(alike, "differ in the data and are the same tokens to the model")


def _holds(prompt: Prompt, texts: Sequence[str]) -> bool:
    contents = [prompt] if isinstance(prompt, str) else [turn.content for turn in prompt]
    return any(text in content for content in contents for text in texts)


def _counted(rows: Sequence[str], what: str) -> str:
    return f"{len(rows)} prompts {what}: {listed(rows)}"
