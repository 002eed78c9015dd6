"""A short name for exact weights: equal for the same bits, another when one bit differs."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor, nn

_LANE_BYTES = 8


@torch.no_grad()
def weights_fingerprint(model: nn.Module) -> str:
    """Return 32 hex digits that stand for the bits of all parameters, with names and shapes.

    The rows of each parameter are added up as integers, which gives the same sums in any order and
    on any device; the sums are hashed. A pass over the memory is all it costs. It tells runs apart,
    and is no protection against forgery.
    """
    digest = hashlib.sha256()
    for name, parameter in model.named_parameters():
        digest.update(f"{name}|{parameter.dtype}|{tuple(parameter.shape)}|".encode())
        digest.update(_row_sums(parameter).cpu().numpy().tobytes())
    return digest.hexdigest()[:32]


def _row_sums(parameter: Tensor) -> Tensor:
    """Return int64 sums over the last dimension, modulo 2^64; a vector's own bits unsummed."""
    bits = parameter.detach().contiguous()
    if bits.dim() < 2:
        return bits.reshape(-1).view(torch.uint8)
    row_bytes = bits.shape[-1] * bits.element_size()
    lane = torch.int64 if row_bytes % _LANE_BYTES == 0 else torch.uint8
    return bits.view(lane).sum(-1, dtype=torch.int64)
