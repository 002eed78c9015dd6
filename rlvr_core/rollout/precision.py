"""Which devices compute in bfloat16, and which only imitate it."""

from __future__ import annotations

from typing import Any

import torch


def computes_bf16(device: torch.device) -> bool:
    """Return whether `device` has matrix products in bfloat16 of its own.

    Others imitate them: a training step of the demo takes two hundred times as long as in float32
    on a CPU without AVX-512.
    """
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type != "cpu":
        return True
    # Not public; builds of torch for other processors do not have it.
    is_supported: Any = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    return bool(torch.backends.mkldnn.is_available() and is_supported and is_supported())
