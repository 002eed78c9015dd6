"""``format``: a share of the reward is for writing the parts of a completion as asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, field_validator

from rlvr_core.api import Group, Plugin, Rollout, Session, Strict, hookimpl
from rlvr_core.builtin.shaping import with_rewards

Tag = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")]


class FormatRewardConfig(Strict):
    """Settings of `format`."""

    share: float = Field(
        default=0.1, gt=0, lt=1, description="Part of the reward that the format alone earns."
    )
    tags: list[Tag] = Field(
        default=["think"], min_length=1, max_length=16, description="Names of the tags, in order."
    )
    answer_after: bool = Field(
        default=True, description="Text must follow the last tag; false: nothing may follow it."
    )

    @field_validator("tags")
    @classmethod
    def _each_once(cls, tags: list[str]) -> list[str]:
        if len(set(tags)) != len(tags):
            raise ValueError("a tag may be named once")
        return tags


class FormatReward(Plugin):
    """``reward = (1 - share) * reward + share`` where the completion has the asked form.

    Elsewhere it is ``(1 - share) * reward``. The form is a fixed grammar, not a pattern of the
    user's: each tag opened once and closed once, in order, with text inside and nothing but blanks
    between. A rollout whose verdict is no judgement earns nothing. The rule of reasoning models, as
    in DeepSeek-R1-Zero, arXiv 2501.12948, section 2.2.2.
    """

    api_version = "1.0"
    Config = FormatRewardConfig
    config: FormatRewardConfig

    @hookimpl
    def rlvr_shape_rewards(
        self, session: Session, groups: Sequence[Group]
    ) -> list[list[float | None]]:
        """Mix each reward with what its completion's form earns."""
        return [with_rewards(group, self._mixed) for group in groups]

    def _mixed(self, rollout: Rollout, reward: float) -> float:
        if rollout.verdict is None or not rollout.verdict.is_judgement:
            return reward
        config = self.config
        is_fit = has_form(rollout.completion, config.tags, answer_after=config.answer_after)
        return (1 - config.share) * reward + config.share * is_fit


def has_form(text: str, tags: Sequence[str], *, answer_after: bool) -> bool:
    """Tell whether a text is ``<a>…</a> <b>…</b>`` for the given tags, and the answer after them.

    Takes time that grows with the length of the text only, whatever stands in it.

    Args:
        text: The completion.
        tags: Names, in order.
        answer_after: Text must follow the last tag; otherwise none may.
    """
    marks = [mark for tag in tags for mark in (f"<{tag}>", f"</{tag}>")]
    if any(text.count(mark) != 1 for mark in marks):
        return False
    rest = text
    for opening, closing in zip(marks[::2], marks[1::2], strict=True):
        before, opened, rest = rest.partition(opening)
        inside, closed, rest = rest.partition(closing)
        if before.strip() or not (opened and closed and inside.strip()):
            return False
    return bool(rest.strip()) == answer_after
