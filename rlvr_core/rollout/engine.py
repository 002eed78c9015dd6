"""What the loop asks of a rollout engine. Small, so that a second engine is easy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from rlvr_core.api.rollouts import FinishReason

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRequest:
    """One completion to sample."""

    prompt_ids: tuple[int, ...]
    max_tokens: int
    temperature: float
    key: tuple[object, ...]
    """What the draw is for: its randomness depends on this and on nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One sampled completion."""

    token_ids: list[int]
    """As sampled, the final stop token included."""
    logps: list[float]
    """Under the sampling distribution (at the request's temperature), one a token."""
    entropy: float | None
    """Mean entropy in nats of the sampling distribution over the sampled tokens, where known."""
    finish_reason: FinishReason
    weights_version: int
    """Of the weights that the engine sampled from, as it was last told by `Engine.push`."""


class Engine(Protocol):
    """Samples completions from the weights that it was pushed last; version 0 when it is new."""

    def sample(
        self,
        requests: Sequence[SampleRequest],
        on_finished: Callable[[int, Sample], None],
    ) -> None:
        """Sample every request; tell `on_finished` (index, sample) as soon as each is done.

        Requests with equal prompts should stand side by side: their prompt is computed once.
        """
        ...

    def push(self, model: PreTrainedModel, version: int) -> None:
        """Sample from the weights that `model` has now, which are those of `version`.

        Called after each batch of updates, before anything is sampled again.
        """
        ...
