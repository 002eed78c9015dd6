"""``overlong``: completions that come near the token limit lose reward, softly."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from rlvr_core.api import Group, Plugin, Session, Strict, hookimpl
from rlvr_core.builtin.shaping import with_rewards

_PAPER_SHARE = 5
"""DAPO's cache of 4,096 tokens is a fifth of its limit of 20,480."""


class OverlongConfig(Strict):
    """Settings of `overlong`."""

    cache_tokens: int | None = Field(
        default=None,
        ge=1,
        description="Length of the zone below the limit in which the penalty grows. Default: a "
        "fifth of `rollout.max_completion_tokens`, as in the paper.",
    )
    penalty: float = Field(
        default=1.0, gt=0, le=1e6, description="What a completion at the limit loses."
    )


class Overlong(Plugin):
    """Adds DAPO's soft overlong punishment to every reward that is there.

    The limit is `rollout.max_completion_tokens`. Source: DAPO, arXiv 2503.14476, equation 13.
    """

    api_version = "1.0"
    Config = OverlongConfig
    config: OverlongConfig

    @hookimpl
    def rlvr_shape_rewards(
        self, session: Session, groups: Sequence[Group]
    ) -> list[list[float | None]]:
        """Take from each reward what its completion's length costs."""
        limit_tokens = session.max_completion_tokens
        cache_tokens = self.config.cache_tokens or max(1, limit_tokens // _PAPER_SHARE)
        return [
            with_rewards(
                group,
                lambda rollout, reward: (
                    reward
                    + self.config.penalty
                    * overlong_punishment(rollout.length, limit_tokens, cache_tokens)
                ),
            )
            for group in groups
        ]


def overlong_punishment(length: int, limit_tokens: int, cache_tokens: int) -> float:
    """Return DAPO's ``R_length``, between -1 and 0.

    ``0`` up to ``limit - cache`` tokens, ``((limit - cache) - length) / cache`` up to the limit,
    ``-1`` beyond it.

    Args:
        length: Sampled tokens of the completion.
        limit_tokens: ``L_max``.
        cache_tokens: ``L_cache``, at least 1.
    """
    free_tokens = limit_tokens - cache_tokens
    if length <= free_tokens:
        return 0.0
    return max(-1.0, (free_tokens - length) / cache_tokens)
