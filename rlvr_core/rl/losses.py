"""Per-token losses. Pure tensor functions: no masks, no aggregation, no I/O.

T counts the sampled tokens of a batch; tensors are [T], float32 or float64.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

KlEstimator = Literal["k1", "k2", "k3"]

MAX_LOG_RATIO = 20.0
"""Log-ratios are held to this on both sides before they are exponentiated: exp(20) is far beyond
any clipping, and exp(89) is more than float32 holds."""


def probability_ratio(logp_T: Tensor, old_logp_T: Tensor) -> Tensor:
    """Return ``exp(logp - old_logp)``, finite for any two log-probabilities.

    Beyond exp(+-`MAX_LOG_RATIO`) it is constant and has no gradient.
    """
    return torch.exp((logp_T - old_logp_T).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO))


def ppo_objective(
    ratio_T: Tensor,
    advantage_T: Tensor,
    *,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float | None = None,
) -> Tensor:
    """Return the clipped surrogate to be maximised, ``min(rho A, clip(rho, 1-low, 1+high) A)``.

    With `dual_clip` c > 1 the objective of a negative advantage is floored at ``c A``
    (arXiv 1912.09729). Clip-higher is ``clip_high > clip_low`` (DAPO, arXiv 2503.14476).
    """
    clipped_T = ratio_T.clamp(1 - clip_low, 1 + clip_high)
    objective_T = torch.minimum(ratio_T * advantage_T, clipped_T * advantage_T)
    if dual_clip is None:
        return objective_T
    floored_T = torch.maximum(objective_T, dual_clip * advantage_T)
    return torch.where(advantage_T < 0, floored_T, objective_T)


def kl_estimate(logp_T: Tensor, reference_logp_T: Tensor, estimator: KlEstimator) -> Tensor:
    """Return an estimate of KL(policy || reference) at each token, with l = log ref - log policy.

    ``k1 = -l``, ``k2 = l^2 / 2``, ``k3 = exp(l) - l - 1`` (http://joschu.net/blog/kl-approx.html).
    k1 and k3 are unbiased for the value; as losses only k2 has the gradient of the reverse KL: the
    expected gradient of k1 is 0, that of k3 is the gradient of the forward KL. ``expm1`` keeps k3
    exact for tiny l in float32; its l counts up to `MAX_LOG_RATIO`.
    """
    log_ratio_T = reference_logp_T - logp_T
    if estimator == "k1":
        return -log_ratio_T
    if estimator == "k2":
        return log_ratio_T.square() / 2
    log_ratio_T = log_ratio_T.clamp(max=MAX_LOG_RATIO)
    return torch.expm1(log_ratio_T) - log_ratio_T
