"""The default samplers: prompts in shuffled epochs, and the same number of rollouts for each."""

from __future__ import annotations

from collections.abc import Sequence

from rlvr_core.api import Group, Plugin, Row, Session, hookimpl


class Uniform(Plugin):
    """Goes through the training split in shuffled order, epoch after epoch, leaving none out.

    The order of epoch e depends on the run's seed and e alone, the place in it on how many prompts
    the run has drawn: there is no state to save.
    """

    api_version = "1.0"

    @hookimpl
    def rlvr_select_prompts(self, rows: Sequence[Row], count: int, session: Session) -> list[Row]:
        """Return the next `count` rows; where one epoch ends, the next begins."""
        chosen = []
        order: list[int] = []
        shuffled_epoch = -1
        for position in range(session.prompts_drawn, session.prompts_drawn + count):
            epoch, place = divmod(position, len(rows))
            if epoch != shuffled_epoch:
                order = list(range(len(rows)))
                session.run_random("uniform", epoch).shuffle(order)
                shuffled_epoch = epoch
            chosen.append(rows[order[place]])
        return chosen


class Fixed(Plugin):
    """Samples `rollout.group_size` completions for every prompt."""

    api_version = "1.0"

    @hookimpl
    def rlvr_sample_groups(self, session: Session, rows: Sequence[Row]) -> list[Group]:
        """Return one group a row."""
        sampled = session.sample(rows, session.group_size)
        return [
            Group(row=row, rollouts=rollouts) for row, rollouts in zip(rows, sampled, strict=True)
        ]
