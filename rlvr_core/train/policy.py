"""The policy as the loss sees it: rollouts in, log-probabilities of their tokens out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from transformers import PreTrainedModel

from rlvr_core.api.rollouts import FinishReason, Rollout, Row, Segment
from rlvr_core.rl.logps import token_logps
from rlvr_core.train.packing import PADDING, MicroBatch, micro_batches, shared_prompt_mask

PROBE_TOLERANCE = 2e-3
"""Largest difference of log-probabilities in float32 that two ways to compute them may show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How log-probabilities are computed, as the loaded model allows."""

    share_prompts: bool
    """The prompt of a group is computed once."""
    chunk_head: bool
    """Logits are made from hidden states in chunks, by the model's output embedding alone."""
    reason: str
    """Why, in words for the plan."""


class Policy:
    """A causal language model that answers for the tokens of rollouts.

    Args:
        model: On its device; float32 weights.
        temperature: That rollouts are sampled at.
        layout: As `probe_layout` found.
        autocast: Returns the context in which the model is run.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        temperature: float,
        layout: Layout,
        autocast: Callable[[], Any],
    ) -> None:
        self.model = model
        self.layout = layout
        self._temperature = temperature
        self._autocast = autocast

    def logps(
        self, batch: MicroBatch, *, with_entropy: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Return log-probabilities [T] and, when asked, entropies [T] of the sampled tokens."""
        inputs = {
            "input_ids": batch.input_ids_BS,
            "position_ids": batch.position_ids_BS,
            "attention_mask": self._attention_mask(batch),
            "use_cache": False,
        }
        with self._autocast():
            if self.layout.chunk_head:
                hidden_BSD = self.model.get_decoder()(**inputs).last_hidden_state
                head: Callable[[Tensor], Tensor] = self.model.get_output_embeddings()
            else:
                hidden_BSD = self.model(**inputs).logits
                head = torch.nn.Identity()
            hidden_TD = hidden_BSD.flatten(0, 1)[batch.predictor_T]
            return token_logps(
                head,
                hidden_TD,
                batch.token_T,
                temperature=self._temperature,
                with_entropy=with_entropy,
            )

    def _attention_mask(self, batch: MicroBatch) -> Tensor:
        if batch.is_shared:
            return shared_prompt_mask(batch.part_BS, self.model.dtype)
        return (batch.part_BS != PADDING).long()


@torch.no_grad()
def probe_layout(
    model: PreTrainedModel, wanted: Literal["auto", "shared", "rows"], longest: int
) -> Layout:
    """Find out on the model itself which layouts give the same log-probabilities.

    Shared prompts need a model that takes a four-dimensional mask and free positions. A sliding
    window, linear attention or a scaled output head show up as a difference, or by their config.

    Args:
        model: As it will be trained.
        wanted: As in the stack file; ``shared`` raises where the check fails.
        longest: Most tokens a prompt and its completion can take together.

    Raises:
        ValueError: `wanted` is ``shared`` and the model can't.
    """
    was_training = model.training
    model.eval()
    try:
        truth = _probe(model, share_prompts=False, chunk_head=False)
        chunk_head = _agrees(model, truth, share_prompts=False, chunk_head=True)
        window = getattr(model.config, "sliding_window", None)
        if wanted == "rows":
            return Layout(
                share_prompts=False, chunk_head=chunk_head, reason="asked for in the stack"
            )
        if window and window < longest:
            reason = f"the model attends to {window} tokens, rollouts may take {longest}"
        elif _agrees(model, truth, share_prompts=True, chunk_head=chunk_head):
            return Layout(
                share_prompts=True, chunk_head=chunk_head, reason="equal to per-row on this model"
            )
        else:
            reason = "the model gives other results when completions share their prompt"
        if wanted == "shared":
            raise ValueError(f"train.layout: {reason}; use 'auto' or 'rows'")
        return Layout(share_prompts=False, chunk_head=chunk_head, reason=reason)
    finally:
        model.train(was_training)


def _agrees(
    model: PreTrainedModel, truth: Tensor, *, share_prompts: bool, chunk_head: bool
) -> bool:
    try:
        found = _probe(model, share_prompts=share_prompts, chunk_head=chunk_head)
    except (AttributeError, IndexError, NotImplementedError, RuntimeError, TypeError, ValueError):
        return False  # the model refuses this layout, which is an answer
    return bool(torch.allclose(found, truth, atol=PROBE_TOLERANCE, rtol=0))


def _probe(model: PreTrainedModel, *, share_prompts: bool, chunk_head: bool) -> Tensor:
    """Return the log-probabilities of three completions of made-up tokens, in float32."""
    vocabulary = int(model.config.get_text_config().vocab_size)
    made_up = [(7 * place + 3) % vocabulary for place in range(40)]
    row = Row(id="probe", prompt="", verifier="", ground_truth={})
    rollouts = [
        Rollout(
            row=row,
            sample_index=index,
            completion="",
            segments=[Segment(token_ids=ids, logps=[0.0] * len(ids))],
            finish_reason=FinishReason.STOP,
            weights_version=0,
            sampled_under="",
            trained_under="",
        )
        for index, ids in enumerate([made_up[9:20], made_up[20:23], made_up[23:40]])
    ]
    layout = Layout(share_prompts=share_prompts, chunk_head=chunk_head, reason="")
    autocast = torch.autocast(model.device.type, enabled=False)
    policy = Policy(model, temperature=1.0, layout=layout, autocast=lambda: autocast)
    batches = micro_batches(
        rollouts,
        lambda prompt: tuple(made_up[:9]),
        share_prompts=share_prompts,
        token_budget=10_000,
        device=model.device,
    )
    return torch.cat([policy.logps(batch)[0] for batch in batches])
