"""The clipped surrogate of PPO, with an optional penalty for leaving the reference policy."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from rlvr_core.api import Aggregation, Need, Plugin, PolicyLoss, Strict, TokenBatch, hookimpl


class PpoClipConfig(Strict):
    """Settings of `ppo-clip`."""

    aggregation: Aggregation | None = Field(
        default=None,
        description="How token losses become one number. Default: the estimator's own.",
    )
    clip_low: float = Field(
        default=0.2, gt=0, lt=1, description="The ratio counts down to 1 - clip_low."
    )
    clip_high: float = Field(
        default=0.2, gt=0, description="The ratio counts up to 1 + clip_high; DAPO uses 0.28."
    )
    dual_clip: float | None = Field(
        default=None, gt=1, description="Floor c·A of the objective of negative advantages."
    )
    kl_coefficient: float = Field(
        default=0.0, ge=0, description="Weight of the penalty for leaving the reference policy."
    )
    kl_estimator: Literal["k1", "k2", "k3"] = Field(
        default="k3", description="k1 (no gradient in expectation), k2 or k3."
    )

    @model_validator(mode="after")
    def _k1_would_not_act(self) -> Self:
        if self.kl_coefficient > 0 and self.kl_estimator == "k1":
            raise ValueError(
                "kl_estimator: k1 as a loss has an expected gradient of 0; use k2 or k3"
            )
        return self


class PpoClip(Plugin):
    """``loss = -min(rho A, clip(rho) A) + beta KL``, rho = exp(logp - old_logp), for each token.

    Sources: PPO arXiv 1707.06347, clip-higher arXiv 2503.14476, dual clip arXiv 1912.09729.
    """

    api_version = "1.0"
    Config = PpoClipConfig
    config: PpoClipConfig

    @property
    def aggregation(self) -> Aggregation | None:
        """The configured aggregation, or None for the estimator's own."""
        return self.config.aggregation

    @property
    def needs(self) -> frozenset[Need]:
        """The reference's log-probabilities, when there is a penalty."""
        return frozenset({Need.REFERENCE_LOGP} if self.config.kl_coefficient > 0 else ())

    @hookimpl
    def rlvr_policy_loss(self, tokens: TokenBatch) -> PolicyLoss:
        """Return [T] losses and the metrics clip_low, clip_high and kl."""
        # Here and not above, so that a stack can be checked where torch is not installed.
        from rlvr_core.rl.losses import kl_estimate, ppo_objective, probability_ratio

        config = self.config
        ratio_T = probability_ratio(tokens.logp_T, tokens.old_logp_T)
        loss_T = -ppo_objective(
            ratio_T,
            tokens.advantage_T,
            clip_low=config.clip_low,
            clip_high=config.clip_high,
            dual_clip=config.dual_clip,
        )
        positive_T = tokens.advantage_T > 0
        negative_T = tokens.advantage_T < 0
        metrics = {
            "clip_low": ((ratio_T < 1 - config.clip_low) & negative_T).float(),
            "clip_high": ((ratio_T > 1 + config.clip_high) & positive_T).float(),
        }
        if tokens.reference_logp_T is not None:
            kl_T = kl_estimate(tokens.logp_T, tokens.reference_logp_T, config.kl_estimator)
            coefficient = tokens.kl_coefficient
            loss_T = loss_T + (config.kl_coefficient if coefficient is None else coefficient) * kl_T
            metrics["kl"] = kl_T.detach()
        return PolicyLoss(loss_T=loss_T, metrics=metrics)
