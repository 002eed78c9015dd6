"""A made-up batch of tokens. Needs torch."""

from __future__ import annotations

from collections.abc import Collection

import torch

from rlvr_core.api.session import Need, TokenBatch
from rlvr_core.testing.apart.made_up import made_up_groups


def made_up_tokens(needs: Collection[Need], *, has_gradient: bool) -> TokenBatch:
    """Return the tokens of the made-up rollouts that are not masked, with what `needs` asks for."""
    rollouts = [one for group in made_up_groups() for one in group.valid]
    lengths = torch.tensor([one.length for one in rollouts])
    rollout_T = torch.repeat_interleave(torch.arange(len(rollouts)), lengths)
    sampled = [logp for one in rollouts for each in one.segments for logp in each.logps]
    old_logp_T = torch.tensor(sampled)
    generator = torch.Generator().manual_seed(0)
    noise_T = (torch.rand(old_logp_T.shape, generator=generator) - 0.5) * 0.4
    logp_T = (old_logp_T + noise_T).requires_grad_(has_gradient)
    rewards = torch.tensor([(one.reward or 0.0) - 0.5 for one in rollouts])
    return TokenBatch(
        rollouts=rollouts,
        rollout_T=rollout_T,
        logp_T=logp_T,
        old_logp_T=old_logp_T,
        advantage_T=rewards[rollout_T],
        sampler_logp_T=old_logp_T + noise_T / 4 if Need.SAMPLER_LOGP in needs else None,
        reference_logp_T=old_logp_T - noise_T if Need.REFERENCE_LOGP in needs else None,
        entropy_T=torch.ones_like(old_logp_T) if Need.ENTROPY in needs else None,
    )
