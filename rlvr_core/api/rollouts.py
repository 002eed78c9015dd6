"""Rows of data, and the rollouts sampled for them.

Group-major, ragged, never padded. Token ids are the ids that were sampled: text is never tokenised
again. A rollout is a list of segments so that a later tool loop needs no new type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, TypeAlias

from rlvr_core.api.verdicts import Json, Verdict


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: str
    """``system``, ``user`` or ``assistant``."""
    content: str


Prompt: TypeAlias = str | tuple[Message, ...]
"""Plain text, or chat messages; how each becomes token ids is the rollout engine's business."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a data set: a prompt, the verifier it is routed to, and what is known of it."""

    id: str
    """Unique within its data set."""
    prompt: Prompt
    verifier: str
    """Instance name of a verifier in the stack."""
    ground_truth: Mapping[str, Json]
    """Already checked against the verifier's own `GroundTruth` model."""
    metadata: Mapping[str, Json] = field(default_factory=dict)


class FinishReason(StrEnum):
    """Why sampling ended."""

    STOP = "stop"
    """The model sampled one of its stop tokens, which is the last id of the last segment."""
    LENGTH = "length"
    """The completion reached its token limit."""
    ABORT = "abort"
    """The engine gave up on the request."""


@dataclass(slots=True, kw_only=True)
class Segment:
    """A run of token ids that were either all sampled by the policy or all given to it."""

    token_ids: Sequence[int]
    is_sampled: bool = True
    """The loss mask: only sampled tokens are trained on."""
    logps: Sequence[float] = ()
    """Log-probabilities under the sampling distribution, one a token; empty when not sampled."""


@dataclass(slots=True, kw_only=True, eq=False)
class Rollout:
    """One prompt, one completion and every fact about the pair."""

    row: Row
    sample_index: int
    """0-based index among all samples of this row in this step; unique within its group."""
    completion: str
    segments: list[Segment]
    finish_reason: FinishReason
    weights_version: int
    """Number of optimiser updates behind the weights that sampled it."""
    sampled_under: Prompt
    """The context the completion was sampled under (for example with a hint)."""
    trained_under: Prompt
    """The context its log-probabilities are trained under."""
    entropy: float | None = None
    """Mean entropy in nats of the sampling distribution over the sampled tokens."""
    loss_weight: float = 1.0
    """Multiplies this rollout's loss; denominators stay counts."""
    verdict: Verdict | None = None
    reward: float | None = None
    """None: masked. Contributes to no baseline, no loss and no denominator."""
    advantage: float | Sequence[float] = 0.0
    """One number, or one for each sampled token."""
    notes: dict[str, Json] = field(default_factory=dict)
    """What plugins want to remember of it, under keys that begin with their name; it is stored."""

    @property
    def length(self) -> int:
        """Number of sampled tokens, the final stop token included."""
        return sum(len(segment.token_ids) for segment in self.segments if segment.is_sampled)

    @property
    def is_valid(self) -> bool:
        """True unless the rollout is masked."""
        return self.reward is not None

    @property
    def token_advantages(self) -> list[float]:
        """The advantage of each sampled token."""
        if isinstance(self.advantage, Sequence):
            return list(self.advantage)
        return [self.advantage] * self.length

    @property
    def has_advantage(self) -> bool:
        """True when the advantage of some token is not 0."""
        if isinstance(self.advantage, Sequence):
            return any(self.advantage)
        return self.advantage != 0


@dataclass(slots=True, kw_only=True, eq=False)
class Group:
    """The rollouts of one prompt, any number of them."""

    row: Row
    rollouts: list[Rollout]
    weight: float = 1.0
    """Multiplies the loss of every rollout of the group."""

    TOLERANCE: ClassVar[float] = 1e-8
    """Rewards that differ by no more than this are equal: it is rounding that tells them apart."""

    @property
    def valid(self) -> list[Rollout]:
        """The rollouts that are not masked."""
        return [rollout for rollout in self.rollouts if rollout.is_valid]

    @property
    def is_dead(self) -> bool:
        """True when no rollout can be told from another: under two valid ones, or equal rewards.

        Decided by ``max - min <= TOLERANCE``, never by a standard deviation, whose rounding residue
        is not zero.
        """
        rewards = [rollout.reward for rollout in self.rollouts if rollout.reward is not None]
        return len(rewards) < 2 or max(rewards) - min(rewards) <= self.TOLERANCE
