"""Rollouts laid out for one forward pass.

A *bundle* is a prompt and some of its completions side by side in one row: the prompt stands there
once, every completion sees the prompt and itself. With one completion a bundle is an ordinary
row, so both layouts are the same code. Bundles are padded to a micro-batch only here.

B bundles, S positions, T sampled tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from rlvr_core.api.rollouts import Prompt, Rollout

PADDING = -1
PROMPT = 0


@dataclass(frozen=True, slots=True)
class Bundle:
    """One row of a micro-batch."""

    prompt_ids: tuple[int, ...]
    rollouts: tuple[Rollout, ...]

    @property
    def width(self) -> int:
        """Positions that the bundle takes."""
        return len(self.prompt_ids) + sum(map(completion_length, self.rollouts))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MicroBatch:
    """The tensors of one forward pass, on the training device."""

    rollouts: list[Rollout]
    """In the order of their tokens."""
    input_ids_BS: Tensor
    position_ids_BS: Tensor
    part_BS: Tensor
    """Which part of its bundle a position belongs to: PADDING, PROMPT, or 1, 2, … a completion."""
    is_shared: bool
    """True when a bundle holds more than one completion, so that a causal mask is not enough."""
    predictor_T: Tensor
    """Index into the flattened [B·S] positions of the one that predicts each sampled token."""
    token_T: Tensor
    rollout_T: Tensor
    sampler_logp_T: Tensor
    """NaN for the tokens of a completion that no engine sampled."""


def completion_length(rollout: Rollout) -> int:
    """Return the number of ids of a completion, sampled or given."""
    return sum(len(segment.token_ids) for segment in rollout.segments)


def micro_batches(
    rollouts: Sequence[Rollout],
    encode: Callable[[Prompt], tuple[int, ...]],
    *,
    share_prompts: bool,
    token_budget: int,
    device: torch.device,
) -> Iterator[MicroBatch]:
    """Pack rollouts, group-major, into micro-batches of at most `token_budget` positions.

    Args:
        rollouts: With the rollouts of one prompt side by side, as groups hold them.
        encode: Turns the prompt a rollout is trained under into ids.
        share_prompts: Put completions of one prompt into one bundle.
        token_budget: Positions, padding included. What is larger by itself goes alone.
        device: Where the tensors are put.
    """
    waiting: list[Bundle] = []
    for bundle in _bundles(rollouts, encode, share_prompts, token_budget):
        width = max(other.width for other in [*waiting, bundle])
        if waiting and width * (len(waiting) + 1) > token_budget:
            yield _pack(waiting, device)
            waiting = []
        waiting.append(bundle)
    if waiting:
        yield _pack(waiting, device)


def _bundles(
    rollouts: Sequence[Rollout],
    encode: Callable[[Prompt], tuple[int, ...]],
    share_prompts: bool,
    token_budget: int,
) -> Iterator[Bundle]:
    for prompt, same in groupby(rollouts, key=lambda rollout: rollout.trained_under):
        prompt_ids = encode(prompt)
        together: list[Rollout] = []
        width = len(prompt_ids)
        for rollout in same:
            length = completion_length(rollout)
            if together and (not share_prompts or width + length > token_budget):
                yield Bundle(prompt_ids, tuple(together))
                together, width = [], len(prompt_ids)
            together.append(rollout)
            width += length
        yield Bundle(prompt_ids, tuple(together))


def _pack(bundles: Sequence[Bundle], device: torch.device) -> MicroBatch:
    width = max(bundle.width for bundle in bundles)
    ids, positions, parts = [], [], []
    predictors: list[int] = []
    tokens: list[int] = []
    owners: list[int] = []
    sampler_logps: list[float] = []
    rollouts: list[Rollout] = []
    for number, bundle in enumerate(bundles):
        prompt_length = len(bundle.prompt_ids)
        row_ids = list(bundle.prompt_ids)
        row_positions = list(range(prompt_length))
        row_parts = [PROMPT] * prompt_length
        for part, rollout in enumerate(bundle.rollouts, start=1):
            offset = len(row_ids)
            for segment in rollout.segments:
                if segment.is_sampled:
                    start = len(row_ids)
                    owners += [len(rollouts)] * len(segment.token_ids)
                    tokens += segment.token_ids
                    sampler_logps += segment.logps or [math.nan] * len(segment.token_ids)
                    predictors += [
                        number * width + (prompt_length if place == offset else place) - 1
                        for place in range(start, start + len(segment.token_ids))
                    ]
                row_ids += segment.token_ids
            length = len(row_ids) - offset
            row_positions += range(prompt_length, prompt_length + length)
            row_parts += [part] * length
            rollouts.append(rollout)
        padding = width - len(row_ids)
        ids.append(row_ids + [0] * padding)
        positions.append(row_positions + [0] * padding)
        parts.append(row_parts + [PADDING] * padding)
    return MicroBatch(
        rollouts=rollouts,
        input_ids_BS=torch.tensor(ids, device=device),
        position_ids_BS=torch.tensor(positions, device=device),
        part_BS=torch.tensor(parts, device=device),
        is_shared=any(len(bundle.rollouts) > 1 for bundle in bundles),
        predictor_T=torch.tensor(predictors, dtype=torch.long, device=device),
        token_T=torch.tensor(tokens, dtype=torch.long, device=device),
        rollout_T=torch.tensor(owners, dtype=torch.long, device=device),
        sampler_logp_T=torch.tensor(sampler_logps, dtype=torch.float32, device=device),
    )


def shared_prompt_mask(part_BS: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the additive attention mask [B, 1, S, S] of bundles.

    A position sees what stands before it in the prompt or in its own completion, and itself.
    """
    size = part_BS.shape[1]
    causal_SS = torch.ones(size, size, dtype=torch.bool, device=part_BS.device).tril()
    same_BSS = part_BS[:, :, None] == part_BS[:, None, :]
    prompt_B1S = (part_BS == PROMPT)[:, None, :]
    visible_BSS = causal_SS & (same_BSS | prompt_B1S)
    mask_BSS = torch.zeros(visible_BSS.shape, dtype=dtype, device=part_BS.device)
    return mask_BSS.masked_fill(~visible_BSS, torch.finfo(dtype).min)[:, None]
