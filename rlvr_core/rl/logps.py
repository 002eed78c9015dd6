"""Log-probabilities and entropies of tokens from hidden states, in chunks.

A vocabulary of 50,000 and 4,000 tokens make 800 MB of float32 logits, twice that with their
gradient. With more than one chunk, each is recomputed in the backward pass, so only one is ever
held.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

CHUNK_TOKENS = 512


def token_logps(
    head: Callable[[Tensor], Tensor],
    hidden_TD: Tensor,
    token_T: Tensor,
    *,
    temperature: float,
    with_entropy: bool = False,
    chunk_tokens: int = CHUNK_TOKENS,
) -> tuple[Tensor, Tensor | None]:
    """Return the log-probability of each token, and the entropy of its distribution when asked.

    Args:
        head: Maps hidden states [t, D] to logits [t, V].
        hidden_TD: Hidden states at the positions that predict the tokens.
        token_T: int64, the tokens.
        temperature: Logits are divided by it: probabilities are those that were sampled from.
        with_entropy: Also return entropies in nats, without gradient.
        chunk_tokens: Tokens whose logits are held at once.

    Returns:
        float32 [T], and float32 [T] or None.
    """

    def of_chunk(hidden_tD: Tensor, token_t: Tensor) -> tuple[Tensor, Tensor | None]:
        logits_tV = head(hidden_tD).float() / temperature
        normaliser_t = logits_tV.logsumexp(-1)
        logp_t = logits_tV.gather(-1, token_t[:, None])[:, 0] - normaliser_t
        if not with_entropy:
            return logp_t, None
        with torch.no_grad():
            logp_tV = logits_tV - normaliser_t[:, None]
            return logp_t, -(logp_tV.exp() * logp_tV).sum(-1)

    chunks = list(zip(hidden_TD.split(chunk_tokens), token_T.split(chunk_tokens), strict=True))
    recompute = len(chunks) > 1 and torch.is_grad_enabled()
    results = [
        checkpoint(of_chunk, *chunk, use_reentrant=False) if recompute else of_chunk(*chunk)
        for chunk in chunks
    ]
    logp_T = torch.cat([logp_t for logp_t, _ in results])
    entropies = [entropy_t for _, entropy_t in results if entropy_t is not None]
    return logp_T, torch.cat(entropies) if with_entropy else None
