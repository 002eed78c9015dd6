"""From rows to rollouts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rlvr_core.api.errors import RunEndedError
from rlvr_core.api.rollouts import FinishReason, Prompt, Rollout, Row, Segment
from rlvr_core.rollout.engine import Engine, Sample, SampleRequest
from rlvr_core.rollout.tokens import PromptTokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One completion that is to be sampled."""

    row: Row
    sample_index: int
    sampled_under: Prompt
    trained_under: Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingSettings:
    """What all completions of one call share."""

    key: tuple[object, ...]
    """Beginning of every draw's key: (run seed, purpose, step)."""
    max_tokens: int
    temperature: float
    weights_version: int
    """Of the policy; the engine must have the same."""


def sample_rollouts(
    engine: Engine,
    tokenizer: PromptTokenizer,
    draws: Sequence[Draw],
    settings: SamplingSettings,
    on_rollout: Callable[[Rollout], None],
) -> list[Rollout]:
    """Sample every draw and return the rollouts in the order of the draws.

    Args:
        engine: Samples from the current weights.
        tokenizer: Encodes prompts and decodes completions.
        draws: With those of one prompt side by side.
        settings: Shared by all of them.
        on_rollout: Told each rollout as soon as it is finished, so that verification can begin.

    Raises:
        RunEndedError: RLVR-T107, the engine has other weights than the policy; RLVR-T110, its
            probabilities are not finite.
    """
    finished: dict[int, Rollout] = {}

    def finish(index: int, sample: Sample) -> None:
        draw = draws[index]
        _require_version(sample, settings)
        if not all(map(math.isfinite, sample.logps)):
            raise FloatingPointError("log-probabilities that are not finite")
        ended = sample.finish_reason is FinishReason.STOP
        finished[index] = Rollout(
            row=draw.row,
            sample_index=draw.sample_index,
            completion=tokenizer.decode(sample.token_ids[:-1] if ended else sample.token_ids),
            segments=[Segment(token_ids=sample.token_ids, logps=sample.logps)],
            finish_reason=sample.finish_reason,
            weights_version=sample.weights_version,
            sampled_under=draw.sampled_under,
            trained_under=draw.trained_under,
            entropy=sample.entropy,
        )
        on_rollout(finished[index])

    requests = [
        SampleRequest(
            prompt_ids=tokenizer.encode(draw.sampled_under),
            max_tokens=settings.max_tokens,
            temperature=settings.temperature,
            key=(*settings.key, draw.row.id, draw.sample_index),
        )
        for draw in draws
    ]
    try:
        engine.sample(requests, finish)
    except FloatingPointError as exc:
        # What is drawn from NaN is noise that looks like a completion.
        raise RunEndedError(
            "RLVR-T110",
            f"the model gives {exc}",
            cause="its weights hold NaN or infinity, or its activations overflow",
            fix="try train.precision: fp32; if that does not help, the weights are damaged",
        ) from exc
    return [finished[index] for index in range(len(draws))]


def _require_version(sample: Sample, settings: SamplingSettings) -> None:
    if sample.weights_version != settings.weights_version:
        raise RunEndedError(
            "RLVR-T107",
            f"the rollout engine sampled from weights of version {sample.weights_version}, "
            f"and the policy has version {settings.weights_version}",
            cause="the engine was not given the weights of the last update",
            fix="this is a fault of rlvr; report it, and continue with --resume",
        )
