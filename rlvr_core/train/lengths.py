"""Prompts that do not fit are found before step 0."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rlvr_core.api.errors import DataError, listed
from rlvr_core.train.prepare import Prepared

if TYPE_CHECKING:
    from rlvr_core.rollout.tokens import PromptTokenizer


def check_lengths(prepared: Prepared, tokenizer: PromptTokenizer, positions: int | None) -> None:
    """Refuse prompts that leave no room for a completion, and those without any token.

    Args:
        prepared: All of its splits are looked at.
        tokenizer: The model's.
        positions: That the model has, as far as its config says.

    Raises:
        DataError: RLVR-D102, with the ids of the rows.
    """
    limit, reason = _limit(prepared, positions)
    problems = []
    for split, rows in prepared.splits.items():
        lengths = {row.id: len(tokenizer.encode(row.prompt)) for row in rows}
        long = [f"{row_id} ({length})" for row_id, length in lengths.items() if length > limit]
        empty = [row_id for row_id, length in lengths.items() if length == 0]
        if long:
            problems.append(f"{split}: {len(long)} prompts are too long: {listed(long)}")
        if empty:
            problems.append(f"{split}: {len(empty)} prompts have no tokens: {listed(empty)}")
    if problems:
        raise DataError(
            "RLVR-D102",
            f"prompts do not fit: they may take {limit} tokens ({reason})",
            cause="\n".join(problems),
            fix="shorten or leave out these rows, or lower rollout.max_completion_tokens",
        )


def _limit(prepared: Prepared, positions: int | None) -> tuple[int, str]:
    rollout = prepared.resolved.stack.rollout
    limits = [(sys.maxsize, "no limit is known")]
    if positions:
        completion = rollout.max_completion_tokens
        reason = f"the model has {positions} positions, completions may take {completion}"
        limits.append((max(positions - completion, 0), reason))
    if rollout.max_prompt_tokens:
        limits.append((rollout.max_prompt_tokens, "rollout.max_prompt_tokens"))
    return min(limits)
