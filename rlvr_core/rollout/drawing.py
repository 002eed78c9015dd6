"""One token for each row of logits: an inverse cumulative distribution at a given uniform number.

R rows, V vocabulary, N blocks of B (BLOCK) tokens. The distribution is summed block by block, and
only the block that the number falls into is looked at token by token: one pass over the vocabulary
where a running sum over all of it would take several, and its rounding errors do not add up.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

BLOCK = 256

BELOW_ONE = 1 - 2**-24
"""The largest float32 below 1. A positive float32 times this, or less, is rounded below itself."""


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
    padded_weight_RV = logits_RV.new_zeros(rows, blocks * BLOCK)
    weight_RV = padded_weight_RV[:, :size]
    torch.sub(logits_RV, largest_R1, out=weight_RV)
    weight_RV.exp_()

    weight_RNB = padded_weight_RV.view(rows, blocks, BLOCK)
    block_RN = weight_RNB.sum(-1)
    upto_RN = block_RN.cumsum(-1)
    total_R1 = upto_RN[:, -1:]
    mean_R1 = torch.linalg.vecdot(weight_RV, logits_RV)[:, None] / total_R1
    if not mean_R1.isfinite().all():
        if not total_R1.isfinite().all():
            raise FloatingPointError("logits that are not finite")
        # A weight of 0 times a logit of -inf, which is rare.
        finite_RV = logits_RV.clamp(min=torch.finfo(logits_RV.dtype).min)
        mean_R1 = torch.linalg.vecdot(weight_RV, finite_RV)[:, None] / total_R1

    target_R1 = uniform_R[:, None] * total_R1
    block_R1 = torch.searchsorted(upto_RN, target_R1, right=True)
    before_R1 = (upto_RN - block_RN).gather(-1, block_R1)
    inside_RB = weight_RNB.gather(1, block_R1[:, :, None].expand(-1, -1, BLOCK))[:, 0].cumsum(-1)
    # The block's sum and its running sum may round differently.
    rest_R1 = torch.minimum((target_R1 - before_R1).clamp_(min=0), inside_RB[:, -1:] * BELOW_ONE)
    token_R1 = block_R1 * BLOCK + torch.searchsorted(inside_RB, rest_R1, right=True)

    normaliser_R1 = largest_R1 + total_R1.log()
    logp_R1 = logits_RV.gather(-1, token_R1) - normaliser_R1
    return Drawn(token_R1[:, 0], logp_R1[:, 0], (normaliser_R1 - mean_R1)[:, 0])
