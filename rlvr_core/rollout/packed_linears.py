"""Weights in the layout in which a CPU multiplies them fastest, for as long as an engine samples.

A matrix product with a few rows, one for each completion, reads its weights once and is over: on a
CPU a good part of the time goes into bringing them into the order that its kernel wants. Sampling
multiplies by the same weights for every token, so that is done once. On a GPU there is nothing to
do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from rlvr_core.rollout.precision import computes_bf16

LEAST_WEIGHTS = 2**16
"""A layer smaller than this is over before its call is, and is left as it is."""


@contextmanager
def packed_linears(model: nn.Module, rows: int) -> Iterator[None]:
    """Run a model's linear layers on reordered copies of their weights, until the block ends.

    Only within `torch.inference_mode`. The copies are made now, so the weights must not change
    inside. A layer that something else has a hand in (a subclass, a `forward` of its own, weights
    on another device or in another precision) is left alone.

    Args:
        model: The model. Its layers are as they were when the block is left.
        rows: How many rows most products will have.
    """
    packed = _worth_packing(model)
    for layer in packed:
        layer.forward = _packed_forward(layer, rows)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for layer in packed:
            del layer.forward


def _worth_packing(model: nn.Module) -> list[nn.Linear]:
    if not _is_supported(_computed_in()):
        return []
    return [
        layer
        for layer in model.modules()
        if type(layer) is nn.Linear
        and "forward" not in vars(layer)
        and layer.weight.device.type == "cpu"
        and layer.weight.dtype is torch.float32
        and layer.weight.numel() >= LEAST_WEIGHTS
    ]


def _computed_in() -> torch.dtype:
    """Return what a float32 layer is computed in here: autocast's type where it is on."""
    return torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32


def _is_supported(dtype: torch.dtype) -> bool:
    """Tell whether this build of torch and this CPU have the kernels: they are not public."""
    if not torch.backends.mkldnn.is_available() or not hasattr(
        torch.ops.mkldnn, "_reorder_linear_weight"
    ):
        return False
    return dtype is torch.float32 or (
        dtype is torch.bfloat16 and computes_bf16(torch.device("cpu"))
    )


def _packed_forward(layer: nn.Linear, rows: int) -> Any:
    dtype, operations = _computed_in(), torch.ops.mkldnn
    weight = operations._reorder_linear_weight(layer.weight.to(dtype), rows)
    bias = None if layer.bias is None else layer.bias.to(dtype)

    def forward(inputs: Tensor) -> Tensor:
        output: Tensor = operations._linear_pointwise(
            inputs.to(dtype), weight, bias, "none", [], ""
        )
        return output

    return forward
