"""From rollouts to verdicts: early submission to the workers, then one routed call a verifier."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from rlvr_core.api.plugin import VerifyBatch, VerifyRow
from rlvr_core.api.rollouts import Rollout
from rlvr_core.api.verdicts import Verdict
from rlvr_core.plugins.dispatch import Dispatcher
from rlvr_core.verification.engine import RawRow, VerifyEngine


class Judge:
    """Gets verdicts for rollouts.

    Args:
        engine: The supervised workers.
        dispatcher: Routes the call, so that wrappers of `rlvr_verify` apply.
    """

    def __init__(self, engine: VerifyEngine, dispatcher: Dispatcher) -> None:
        self._engine = engine
        self._dispatcher = dispatcher
        self._numbers = count()
        self._row_ids: dict[tuple[int, str], str] = {}

    def submit(self, rollout: Rollout, verifier: str | None = None) -> None:
        """Let a worker begin with this rollout; `verdicts` collects the result later."""
        name = verifier or rollout.row.verifier
        row_id = f"{rollout.row.id}/{rollout.sample_index}/{next(self._numbers)}"
        self._row_ids[id(rollout), name] = row_id
        self._engine.submit(name, raw_row(_verify_row(rollout, row_id)))

    def verdicts(self, rollouts: Sequence[Rollout], verifier: str | None = None) -> list[Verdict]:
        """Return one verdict a rollout, in order; each from its own row's verifier by default.

        Raises:
            PluginError: RLVR-V101, a verifier exceeded its error budget.
        """
        found: dict[int, Verdict] = {}
        by_verifier: dict[str, list[int]] = {}
        for index, rollout in enumerate(rollouts):
            by_verifier.setdefault(verifier or rollout.row.verifier, []).append(index)
        for name, indices in by_verifier.items():
            for index in indices:
                if (id(rollouts[index]), name) not in self._row_ids:
                    self.submit(rollouts[index], name)
            batch = VerifyBatch(
                rows=[
                    _verify_row(rollouts[index], self._row_ids.pop((id(rollouts[index]), name)))
                    for index in indices
                ]
            )
            verdicts = self._dispatcher.verify(name, batch)
            found.update(zip(indices, verdicts, strict=True))
        return [found[index] for index in range(len(rollouts))]


def raw_row(row: VerifyRow) -> RawRow:
    """Return a row in the form that crosses to the workers."""
    return RawRow(
        id=row.id,
        prompt=row.prompt,
        completion=row.completion,
        ground_truth=row.ground_truth,
        metadata=row.metadata,
        finish_reason=row.finish_reason,
    )


def _verify_row(rollout: Rollout, row_id: str) -> VerifyRow:
    """Return the row as hooks of the training process see it: its ground truth still a mapping."""
    return VerifyRow(
        id=row_id,
        prompt=rollout.sampled_under,
        completion=rollout.completion,
        ground_truth=rollout.row.ground_truth,
        metadata=rollout.row.metadata,
        finish_reason=rollout.finish_reason,
    )
