"""A policy on a tiny model, and the vLLM engine that copies it."""

import contextlib

import torch

from rlvr_core.rollout.engine import SampleRequest
from rlvr_core.rollout.transformers_engine import TransformersEngine

LONG = "What is the sum of these numbers? " * 20
"""More tokens than one block of vLLM's memory of prompts, on every device."""


class Pair:
    """A policy with an engine of its own, and the vLLM engine that copies it."""

    def __init__(self, model, stop_ids=()):
        from rlvr_core.rollout.vllm_engine import VllmEngine

        self.model = model.eval()
        self.vllm = VllmEngine(
            self.model,
            stop_ids=stop_ids,
            max_rows=32,
            precision="fp32",
            kv_cache_bytes=2**27,
            eager=True,
        )
        self.own = TransformersEngine(
            self.model, stop_ids=stop_ids, max_rows=32, autocast=contextlib.nullcontext
        )
        self.version = 0

    def update(self):
        """Change the policy as an update with a large learning rate does."""
        self.version += 1
        generator = torch.Generator().manual_seed(self.version)
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter += 0.1 * torch.randn(parameter.shape, generator=generator)

    def push(self):
        """Give the new weights to both engines."""
        for engine in (self.vllm, self.own):
            engine.push(self.model, self.version)

    def greedy(self, engine):
        """Return the most likely continuations of some prompts, by one of the engines."""
        # vLLM reads 0 as greedy and makes 0.01 of what is near it; the other engine divides by it.
        temperature = 0.0 if engine is self.vllm else 1e-6
        ends = ("one", "2", "3!")
        return tokens(
            engine, [request(LONG + end, max_tokens=12, temperature=temperature) for end in ends]
        )

    def logps(self, request, found):
        """Return the policy's log-probabilities [T] of a sample's tokens."""
        ids = torch.tensor([[*request.prompt_ids, *found.token_ids]])
        with torch.no_grad():
            logits_TV = self.model(ids).logits[0, len(request.prompt_ids) - 1 : -1]
        logp_TV = (logits_TV / request.temperature).log_softmax(-1)
        return logp_TV.gather(-1, ids[0, len(request.prompt_ids) :, None])[:, 0]


def request(prompt="What is it?", sample=0, max_tokens=6, temperature=1.0):
    return SampleRequest(
        prompt_ids=tuple(byte + 3 for byte in prompt.encode()),
        max_tokens=max_tokens,
        temperature=temperature,
        key=(7, "rollout", 1, prompt, sample),
    )


def sample(engine, requests):
    """Return the samples in the order of the requests."""
    found = {}
    engine.sample(requests, found.__setitem__)
    return [found[index] for index in range(len(requests))]


def tokens(engine, requests):
    return [one.token_ids for one in sample(engine, requests)]
