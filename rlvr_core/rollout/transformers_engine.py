"""Sampling with the policy's own transformers model.

The part that all prompts share (a system prompt, worked examples) is computed once, the rest of
each prompt once for its group; finished completions leave the batch.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count, groupby
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.cache_utils import Cache

from rlvr_core.api.rollouts import FinishReason
from rlvr_core.rl.keyed_random import keyed_uniforms
from rlvr_core.rollout.drawing import draw_tokens
from rlvr_core.rollout.engine import Sample, SampleRequest
from rlvr_core.rollout.growing_cache import growing_cache
from rlvr_core.rollout.packed_linears import packed_linears

SHARED_PREFIX_TOKENS = 16
"""A common beginning shorter than this is not worth a forward pass of its own."""


@dataclass(slots=True, eq=False)
class _Row:
    """One completion in the making."""

    index: int
    request: SampleRequest
    weights_version: int
    token_ids: list[int] = field(default_factory=list)
    logps: list[float] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)

    def finish(self, reason: FinishReason) -> Sample:
        return Sample(
            token_ids=self.token_ids,
            logps=self.logps,
            entropy=sum(self.entropies) / max(len(self.entropies), 1),
            finish_reason=reason,
            weights_version=self.weights_version,
        )


class TransformersEngine:
    """Implements `Engine` on a model that trains in the same process.

    Args:
        model: The policy, on its device. Sampled from in evaluation mode.
        stop_ids: Every id that ends a completion.
        max_rows: Completions decoded side by side.
        share_prompts: Compute each distinct prompt once. Off, every completion computes its own, as
            libraries do: what benchmarks and tests compare with.
        autocast: Returns the context in which the model is run.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        stop_ids: Sequence[int],
        max_rows: int,
        autocast: Callable[[], Any],
        share_prompts: bool = True,
    ) -> None:
        self._model = model
        self._stop_ids = frozenset(stop_ids)
        self._max_rows = max_rows
        self._autocast = autocast
        self._share_prompts = share_prompts
        # Padding behind a shared beginning would be counted as part of a window.
        self._is_local = attends_locally(model.config)
        # Without a mask, attention of grouped heads takes a path that is slow on a CPU.
        text = model.config.get_text_config()
        heads = getattr(text, "num_attention_heads", None)
        is_grouped = getattr(text, "num_key_value_heads", heads) != heads
        self._can_omit_mask = not (is_grouped and model.device.type == "cpu")
        self._weights_version = 0
        # transformers 5.24 renamed the argument.
        accepted = inspect.signature(model.forward).parameters
        self._cache_argument = "cache" if "cache" in accepted else "past_key_values"

    def push(self, model: PreTrainedModel, version: int) -> None:
        """Note the version; the model that is sampled from is the policy itself."""
        if model is not self._model:
            raise ValueError("this engine samples from the model it was made with, and no other")
        self._weights_version = version

    def sample(
        self,
        requests: Sequence[SampleRequest],
        on_finished: Callable[[int, Sample], None],
    ) -> None:
        """Sample every request, `max_rows` at a time. See `Engine.sample`."""
        was_training = self._model.training
        self._model.eval()
        try:
            with self._autocast():
                self.decode(requests, on_finished)
        finally:
            self._model.train(was_training)

    @torch.inference_mode()
    def decode(
        self,
        requests: Sequence[SampleRequest],
        on_finished: Callable[[int, Sample], None],
    ) -> None:
        """Sample with the model in the mode and under the autocast that it is in."""
        with packed_linears(self._model, min(len(requests), self._max_rows)):
            for start in range(0, len(requests), self._max_rows):
                chunk = requests[start : start + self._max_rows]
                rows = [
                    _Row(start + offset, request, self._weights_version)
                    for offset, request in enumerate(chunk)
                ]
                self._decode(rows, on_finished)

    def _decode(self, rows: list[_Row], on_finished: Callable[[int, Sample], None]) -> None:
        """Decode until all rows are finished. R rows (it shrinks), V vocabulary, S seen tokens."""
        logits_RV, cache, padded_RS, position_R = self._prefill(rows)
        # Without padding every row sees all there is, and the library need not work out what.
        seen_RS = None if self._can_omit_mask and bool(padded_RS.all()) else padded_RS
        uniform_RT = _uniforms([row.request for row in rows]).to(logits_RV.device)
        for step in count():
            token_R = _draw(rows, logits_RV, uniform_RT[:, step])
            going = []
            for index, (row, token) in enumerate(zip(rows, token_R.tolist(), strict=True)):
                if token in self._stop_ids:
                    on_finished(row.index, row.finish(FinishReason.STOP))
                elif len(row.token_ids) == row.request.max_tokens:
                    on_finished(row.index, row.finish(FinishReason.LENGTH))
                else:
                    going.append(index)
            if not going:
                return
            if len(going) < len(rows):
                keep_R = torch.tensor(going, device=logits_RV.device)
                rows = [rows[index] for index in going]
                cache.batch_select_indices(keep_R)
                token_R, uniform_RT = token_R[keep_R], uniform_RT[keep_R]
                position_R = position_R[keep_R]
                seen_RS = None if seen_RS is None else seen_RS[keep_R]
            if seen_RS is not None:
                seen_RS = torch.cat([seen_RS, seen_RS.new_ones(len(rows), 1)], dim=1)
            position_R = position_R + 1
            logits_RV = self._forward(token_R[:, None], seen_RS, position_R[:, None], cache)

    def _prefill(self, rows: list[_Row]) -> tuple[Tensor, Cache, Tensor, Tensor]:
        """Compute the prompts, each distinct one once, and repeat the results for their rows.

        Prompts are padded on the left, after the beginning that they share.
        """
        device = self._model.device
        all_prompts = [list(row.request.prompt_ids) for row in rows]
        grouped = [(prompt, 1) for prompt in all_prompts]
        shared = 0
        if self._share_prompts:
            grouped = [(prompt, len(list(same))) for prompt, same in groupby(all_prompts)]
            if not self._is_local:
                shared = common_prefix_length([prompt for prompt, _ in grouped])
        prompts = [prompt for prompt, _ in grouped]
        cache = growing_cache()
        if shared >= SHARED_PREFIX_TOKENS and len(prompts) > 1:
            prefix_1S = torch.tensor([prompts[0][:shared]], device=device)
            position_1S = torch.arange(shared, device=device)[None]
            self._forward(prefix_1S, torch.ones_like(prefix_1S), position_1S, cache)
            cache.batch_repeat_interleave(len(prompts))
        else:
            shared = 0
        rest = [prompt[shared:] for prompt in prompts]
        width = max(map(len, rest))
        padded = [[0] * (width - len(ids)) + ids for ids in rest]
        present = [[1] * shared + [0] * (width - len(ids)) + [1] * len(ids) for ids in rest]
        seen_PS = torch.tensor(present, device=device)
        position_PS = (seen_PS.cumsum(1) - 1).clamp(min=0)
        rest_PS = torch.tensor(padded, device=device)
        logits_PV = self._forward(rest_PS, seen_PS, position_PS[:, shared:], cache)
        if len(prompts) == len(rows):
            return logits_PV, cache, seen_PS, position_PS[:, -1]
        repeats = torch.tensor([copies for _, copies in grouped], device=device)
        of_row_R = torch.arange(len(prompts), device=device).repeat_interleave(repeats)
        cache.batch_select_indices(of_row_R)
        return logits_PV[of_row_R], cache, seen_PS[of_row_R], position_PS[of_row_R, -1]

    def _forward(
        self, ids_RS: Tensor, seen_RS: Tensor | None, position_RS: Tensor, cache: Cache
    ) -> Tensor:
        """Run the model on new tokens and return float32 logits [R, V] of the last one."""
        output = self._model(
            input_ids=ids_RS,
            attention_mask=seen_RS,
            position_ids=position_RS,
            use_cache=True,
            logits_to_keep=1,
            **{self._cache_argument: cache},
        )
        logits_RV: Tensor = output.logits[:, -1].float()
        return logits_RV


def attends_locally(config: PreTrainedConfig) -> bool:
    """Tell whether some layer of a model sees only a window or a chunk of what came before."""
    config = config.get_text_config()
    kinds = {*(getattr(config, "layer_types", None) or ()), *_flat(config, "attention_layers")}
    return bool(
        (getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True))
        or getattr(config, "attention_chunk_size", None)
        or kinds - {"full_attention", "global"}
    )


def _flat(config: PreTrainedConfig, name: str) -> Sequence[str]:
    return [kind for kind in getattr(config, name, None) or () if isinstance(kind, str)]


def common_prefix_length(prompts: Sequence[Sequence[int]]) -> int:
    """Return how many leading ids all prompts share, leaving at least one id of each over."""
    shortest = min(map(len, prompts)) - 1
    first = prompts[0]
    for position in range(shortest):
        if any(prompt[position] != first[position] for prompt in prompts):
            return position
    return max(shortest, 0)


def _draw(rows: Sequence[_Row], logits_RV: Tensor, uniform_R: Tensor) -> Tensor:
    """Draw the next token of each row, and note it with its log-probability and the entropy."""
    temperatures = [row.request.temperature for row in rows]
    if any(temperature != 1 for temperature in temperatures):
        logits_RV = logits_RV / logits_RV.new_tensor(temperatures)[:, None]
    drawn = draw_tokens(logits_RV, uniform_R)
    columns = (column_R.tolist() for column_R in drawn)
    for row, token, logp, entropy in zip(rows, *columns, strict=True):
        row.token_ids.append(token)
        row.logps.append(logp)
        row.entropies.append(entropy)
    return drawn.token_R


def _uniforms(requests: Sequence[SampleRequest]) -> Tensor:
    """Return float32 [R, T], a row's own numbers for as many tokens as it may have."""
    uniform_RT = torch.zeros(len(requests), max(request.max_tokens for request in requests))
    for uniform_T, request in zip(uniform_RT, requests, strict=True):
        uniforms = keyed_uniforms(request.max_tokens, *request.key)
        uniform_T[: request.max_tokens] = torch.from_numpy(uniforms)
    return uniform_RT
