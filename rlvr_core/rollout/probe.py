"""Does sampling give the log-probabilities that a plain forward pass gives?

Sampling goes through a key-value cache, with prompts shared and padded. Models that keep something
else between two tokens (recurrent state, linear attention) may refuse that, or go on with other
numbers and say nothing.
"""

from __future__ import annotations

from contextlib import nullcontext

import torch
from transformers import PreTrainedModel

from rlvr_core.api.errors import exception_text
from rlvr_core.rollout.engine import Sample, SampleRequest
from rlvr_core.rollout.transformers_engine import SHARED_PREFIX_TOKENS, TransformersEngine

TOLERANCE = 2e-3
"""Largest difference in nats that rounding in float32 makes."""


@torch.no_grad()
def sampling_fault(model: PreTrainedModel) -> str | None:
    """Return why the transformers engine cannot sample from a model; None when it can.

    Args:
        model: On its device, with float32 weights.
    """
    engine = TransformersEngine(model, stop_ids=(), max_rows=8, autocast=nullcontext)
    vocabulary = int(model.config.get_text_config().vocab_size)
    made_up = [(7 * place + 3) % vocabulary for place in range(SHARED_PREFIX_TOKENS + 5)]
    requests = [
        SampleRequest(prompt_ids=tuple(ids), max_tokens=3, temperature=1.0, key=("probe", number))
        for number, ids in enumerate([made_up, made_up, made_up[:-3]])
    ]
    samples: dict[int, Sample] = {}
    try:
        engine.decode(requests, samples.__setitem__)
        gap = max(largest_gap(model, request, samples[n]) for n, request in enumerate(requests))
    except FloatingPointError:
        return None  # broken weights are told as such by the first evaluation or step
    except (AttributeError, IndexError, KeyError, NotImplementedError, TypeError) as exc:
        return exception_text(exc)
    if gap <= TOLERANCE:
        return None
    return f"log-probabilities of sampled tokens differ by up to {gap:.3g} from a plain pass"


@torch.no_grad()
def largest_gap(model: PreTrainedModel, request: SampleRequest, sample: Sample) -> float:
    """Return the largest difference in nats of a sample's log-probabilities to a plain pass."""
    ids = torch.tensor([[*request.prompt_ids, *sample.token_ids]], device=model.device)
    start = len(request.prompt_ids)
    logits_TV = model(input_ids=ids, use_cache=False).logits[0, start - 1 : -1]
    logp_T = logits_TV.float().log_softmax(-1).gather(-1, ids[0, start:, None])[:, 0]
    return float((logp_T - torch.tensor(sample.logps, device=model.device)).abs().max())
