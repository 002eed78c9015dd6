"""How per-token losses become one number.

Every aggregation is a weighted sum whose weights depend on counts only. With counts taken over all
micro-batches and processes, the sum over any partition of the tokens is the same number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlvr_core.api.session import Aggregation


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCounts:
    """Totals of one mini-batch over all processes, masked rollouts left out."""

    tokens: float
    """Sampled tokens."""
    rollouts: float
    max_completion_tokens: int
    """The stack's limit: the constant length of Dr.GRPO, never the longest sample of a batch."""


def token_scales(
    aggregation: Aggregation, lengths: Sequence[int], counts: BatchCounts
) -> list[float]:
    """Return, for each rollout, the factor that each of its tokens' losses is multiplied with.

    Args:
        aggregation: Which mean is taken; formulas stand at `Aggregation`.
        lengths: Sampled tokens of each rollout.
        counts: Totals of the mini-batch that the rollouts belong to.
    """
    if aggregation is Aggregation.TOKEN_MEAN:
        return [1 / max(counts.tokens, 1)] * len(lengths)
    per_rollout = 1 / max(counts.rollouts, 1)
    if aggregation is Aggregation.SEQUENCE_MEAN:
        return [per_rollout / max(length, 1) for length in lengths]
    if aggregation is Aggregation.CONSTANT_LENGTH:
        return [per_rollout / counts.max_completion_tokens] * len(lengths)
    return [per_rollout] * len(lengths)
