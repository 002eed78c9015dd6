"""The random control arm: a reward that knows nothing about the completion.

A gain that this arm makes too was not taught by the verifier. Source: Spurious Rewards, arXiv
2506.10947. With one update per batch of rollouts the ratio is 1 and clipping has no bias, so the
arm can only drift; say the number of updates when quoting it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from pydantic import Field

from rlvr_core.api import Group, Plugin, Session, Strict, hookimpl


class ControlRandomConfig(Strict):
    """Settings of `control-random`."""

    rate: float = Field(default=0.5, ge=0, le=1, description="Share of rollouts that are paid 1.")


class ControlRandom(Plugin):
    """Pays 1 with probability `rate`, from a hash of (seed, prompt, sample), else 0."""

    api_version = "1.0"
    Config = ControlRandomConfig
    config: ControlRandomConfig

    @hookimpl
    def rlvr_shape_rewards(
        self, session: Session, groups: Sequence[Group]
    ) -> list[list[float | None]]:
        """Replace every reward that is not masked."""
        return [
            [
                float(bernoulli(session.seed, group.row.id, rollout.sample_index, self.config.rate))
                if rollout.is_valid
                else None
                for rollout in group.rollouts
            ]
            for group in groups
        ]


def bernoulli(seed: int, prompt_id: str, sample_index: int, rate: float) -> bool:
    """Return True with probability `rate`, the same in every process and on every machine."""
    key = f"{seed}|{prompt_id}|{sample_index}".encode()
    uniform = int.from_bytes(hashlib.sha256(key).digest()[:8], "big") / 2**64
    return uniform < rate
