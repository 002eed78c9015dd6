"""One token for each row of logits: an inverse cumulative distribution at a given uniform number.

R rows, V vocabulary, N blocks of BLOCK tokens. The distribution is summed block by block, and only
the block that the number falls into is looked at token by token: one pass over the vocabulary where
a running sum over all of it would take several, and its rounding errors do not add up.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

BLOCK = 256


class Drawn(NamedTuple):
    """What was drawn for each row."""

    token_R: Tensor
    """int64."""
    logp_R: Tensor
    """float32, log-probability of the token under the sampling distribution."""
    entropy_R: Tensor
    """float32, entropy of that distribution in nats."""


def draw_tokens(logits_RV: Tensor, uniform_R: Tensor) -> Drawn:
    """Draw from ``softmax(logits)``.

    Args:
        logits_RV: float32, divided by the temperature already. A token of -inf is never drawn.
        uniform_R: float32 in [0, 1): the least token whose cumulative probability exceeds it.

    Raises:
        FloatingPointError: A row holds NaN, or infinity.
    """
    rows, size = logits_RV.shape
    blocks = -(-size // BLOCK)
    largest_R1 = logits_RV.amax(-1, keepdim=True)
    weight_RN = logits_RV.new_zeros(rows, blocks * BLOCK)
    weight_RV = weight_RN[:, :size]
    torch.sub(logits_RV, largest_R1, out=weight_RV)
    weight_RV.exp_()

    block_RN = weight_RN.view(rows, blocks, BLOCK).sum(-1)
    upto_RN = block_RN.cumsum(-1)
    total_R1 = upto_RN[:, -1:]
    if not total_R1.isfinite().all():
        raise FloatingPointError("logits that are not finite")
    target_R1 = _below(uniform_R[:, None] * total_R1, total_R1)
    block_R1 = torch.searchsorted(upto_RN, target_R1, right=True)
    before_R1 = upto_RN.gather(-1, block_R1) - block_RN.gather(-1, block_R1)

    of_block_RB = weight_RN.view(rows, blocks, BLOCK)[
        torch.arange(rows, device=block_R1.device), block_R1[:, 0]
    ]
    inside_RB = of_block_RB.cumsum(-1)
    rest_R1 = _below((target_R1 - before_R1).clamp(min=0), inside_RB[:, -1:])
    token_R1 = block_R1 * BLOCK + torch.searchsorted(inside_RB, rest_R1, right=True)

    normaliser_R = largest_R1[:, 0] + total_R1[:, 0].log()
    logp_R = logits_RV.gather(-1, token_R1)[:, 0] - normaliser_R
    mean_R = torch.linalg.vecdot(weight_RV, logits_RV) / total_R1[:, 0]
    if mean_R.isnan().any():  # a weight of 0 times a logit of -inf, which is rare
        finite_RV = logits_RV.clamp(min=torch.finfo(logits_RV.dtype).min)
        mean_R = torch.linalg.vecdot(weight_RV, finite_RV) / total_R1[:, 0]
    return Drawn(token_R1[:, 0], logp_R, normaliser_R - mean_R)


def _below(number_R1: Tensor, bound_R1: Tensor) -> Tensor:
    """Return the number, or the largest one less than the bound where rounding reached it."""
    return torch.minimum(number_R1, torch.nextafter(bound_R1, bound_R1.new_zeros(())))
