"""What core hands to hooks: the session of a step, and the tokens of a loss.

No plugin touches the engine, the worker pool or another process: it asks the session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import TYPE_CHECKING, Protocol

from rlvr_core.api.rollouts import Prompt, Rollout, Row
from rlvr_core.api.verdicts import Verdict

if TYPE_CHECKING:
    from torch import Tensor


class Session(Protocol):
    """The services of one training step."""

    @property
    def step(self) -> int:
        """1-based number of the step being collected; 0 before the first."""
        ...

    @property
    def seed(self) -> int:
        """The run's seed."""
        ...

    @property
    def group_size(self) -> int:
        """Rollouts a prompt that the stack asks for."""
        ...

    @property
    def prompts_drawn(self) -> int:
        """Prompts handed out before this call, over the whole run: the place in the data."""
        ...

    @property
    def temperature(self) -> float:
        """Of the sampling distribution; every log-probability of the session is taken at it."""
        ...

    @property
    def max_completion_tokens(self) -> int:
        """Tokens at which a completion is cut off."""
        ...

    def sample(
        self,
        rows: Sequence[Row],
        n: int | Sequence[int],
        contexts: Sequence[Prompt] | None = None,
    ) -> list[list[Rollout]]:
        """Sample `n` completions for each row.

        Args:
            rows: The prompts; a row may be sampled again later in the step, its new rollouts get
                the next sample indices.
            n: Completions a row, one number or one for each row.
            contexts: Prompts to sample under in place of the rows' own. The rollouts are still
                trained under the rows' own prompts.

        Returns:
            One list of rollouts a row, in row order. Verification of each completion starts as soon
            as it is finished.
        """
        ...

    def verdicts(self, rollouts: Sequence[Rollout], verifier: str | None = None) -> list[Verdict]:
        """Return one verdict a rollout, in order.

        Args:
            rollouts: What to judge.
            verifier: Instance name of a verifier of the stack; by default the one that each row is
                routed to. Asked about other verifiers' rows it gets their ground truth, so its
                `GroundTruth` should ignore keys that it does not know.
        """
        ...

    def logps(
        self, rollouts: Sequence[Rollout], contexts: Sequence[Prompt] | None = None
    ) -> list[list[float]]:
        """Return the policy's log-probability of each sampled token, without gradient.

        Args:
            rollouts: What to score, those of one prompt side by side.
            contexts: One prompt a rollout to score it under; by default the one it is trained
                under.

        Returns:
            One list a rollout, one number for each of its sampled tokens.
        """
        ...

    def encode(self, prompt: Prompt) -> Sequence[int]:
        """Return the token ids that the policy sees for a prompt, as a teacher must see them."""
        ...

    def random(self, purpose: str, *key: object) -> Random:
        """Return a generator that depends on (seed, step, purpose, key) and on nothing else."""
        ...

    def run_random(self, purpose: str, *key: object) -> Random:
        """Return a generator that depends on (seed, purpose, key), the same in every step."""
        ...

    def sum_over_ranks(self, values: Sequence[float]) -> list[float]:
        """Add up each value over all processes. Every process must call it equally often."""
        ...


class Need(StrEnum):
    """Per-token quantities that cost work. What no plugin needs is not computed."""

    ENTROPY = "entropy"
    """Entropy of the policy at each token."""
    REFERENCE_LOGP = "reference_logp"
    """Log-probability under the frozen reference policy."""
    SAMPLER_LOGP = "sampler_logp"
    """Log-probability recorded by the rollout engine when it sampled the token."""
    MINI_BATCH_STATS = "mini_batch_stats"
    """`rlvr_weigh_tokens` must see a whole mini-batch at once, not a micro-batch."""


@dataclass(slots=True, kw_only=True, eq=False)
class TokenBatch:
    """The sampled tokens of some rollouts, flat.

    T counts sampled tokens, B rollouts. There is no padding and no mask: a token that is not
    trained on is not here. All tensors are float32 on the training device unless said otherwise.
    """

    rollouts: Sequence[Rollout]
    """B rollouts, in the order of their tokens."""
    rollout_T: Tensor
    """int64 [T], the index in `rollouts` of each token's rollout."""
    logp_T: Tensor
    """[T], under the policy, at the sampling temperature. Carries the gradient in a loss."""
    old_logp_T: Tensor
    """[T], under the policy that the batch of rollouts was collected with, by the training
    kernels."""
    advantage_T: Tensor
    """[T]."""
    sampler_logp_T: Tensor | None = None
    """[T]. For completions that a plugin wrote itself, and no engine sampled, `old_logp_T`."""
    reference_logp_T: Tensor | None = None
    entropy_T: Tensor | None = None
    kl_coefficient: float | None = None
    """When a monitor has set it, stands in for the loss plugin's own KL coefficient."""


class Aggregation(StrEnum):
    """How per-token losses become one number. N rollouts in all, T_i tokens in rollout i."""

    TOKEN_MEAN = "token-mean"  # noqa: S105
    """sum over all tokens / number of all tokens (DAPO, arXiv 2503.14476)."""
    SEQUENCE_MEAN = "sequence-mean"
    """mean over rollouts of the mean over their tokens (GRPO, arXiv 2402.03300)."""
    SEQUENCE_SUM = "sequence-sum"
    """mean over rollouts of the sum over their tokens."""
    CONSTANT_LENGTH = "constant-length"
    """sum over all tokens / (N · max_completion_tokens) (Dr.GRPO, arXiv 2503.20783)."""


@dataclass(slots=True, kw_only=True, eq=False)
class PolicyLoss:
    """What `rlvr_policy_loss` returns."""

    loss_T: Tensor
    """[T], the loss of each token before weights and aggregation; differentiable in `logp_T`."""
    metrics: Mapping[str, Tensor] = field(default_factory=dict)
    """Named [T] tensors without gradient; core logs their mean over tokens. Core's own names for
    what it logs of a step are refused."""
