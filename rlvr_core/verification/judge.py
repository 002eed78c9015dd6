"""From rollouts to verdicts: early submission to the workers, then one routed call a verifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rlvr_core.api.plugin import VerifyBatch, VerifyRow
from rlvr_core.api.rollouts import Rollout
from rlvr_core.api.verdicts import Verdict
from rlvr_core.plugins.dispatch import Dispatcher
from rlvr_core.verification.rows import RawRow


class Verifiers(Protocol):
    """What a judge asks of the verifiers' side; `VerifyEngine` is one."""

    def submit(self, verifier: str, row: RawRow) -> None:
        """Let a worker begin with a row."""
        ...

    def abandon(self) -> None:
        """Forget what was submitted and not collected."""
        ...


class Judge:
    """Gets verdicts for rollouts.

    Args:
        engine: Where rows are submitted early.
        dispatcher: Routes the call, so that wrappers of `rlvr_verify` apply.
    """

    def __init__(self, engine: Verifiers, dispatcher: Dispatcher) -> None:
        self._engine = engine
        self._dispatcher = dispatcher
        self._scope = ""
        self._submitted: dict[tuple[int, str], Rollout] = {}

    def begin(self, scope: str) -> None:
        """Begin a step or an evaluation: what was submitted before and never asked for is dropped.

        Args:
            scope: Part of every row's id, and different from all scopes before it. It names what
                the rows are for, so that a verifier that looks at the id says the same after a
                resume.
        """
        self._engine.abandon()
        self._submitted.clear()
        self._scope = scope

    def submit(self, rollout: Rollout, verifier: str | None = None) -> None:
        """Let a worker begin with this rollout; `verdicts` collects the result later."""
        name = verifier or rollout.row.verifier
        # The rollout is kept, so that no other can have its id() while the verdict is on its way.
        self._submitted[id(rollout), name] = rollout
        self._engine.submit(name, raw_row(self._verify_row(rollout)))

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
                if (id(rollouts[index]), name) not in self._submitted:
                    self.submit(rollouts[index], name)
            batch = VerifyBatch(rows=[self._verify_row(rollouts[index]) for index in indices])
            verdicts = self._dispatcher.verify(name, batch)
            for index in indices:
                self._submitted.pop((id(rollouts[index]), name), None)
            found.update(zip(indices, verdicts, strict=True))
        return [found[index] for index in range(len(rollouts))]

    def _verify_row(self, rollout: Rollout) -> VerifyRow:
        """Return the row as hooks of the training process see it: its ground truth is a mapping.

        The prompt is the row's own: a verifier never sees a hint that a sampler added.
        """
        return VerifyRow(
            id=f"{self._scope}/{rollout.row.id}/{rollout.sample_index}",
            prompt=rollout.row.prompt,
            completion=rollout.completion,
            ground_truth=rollout.row.ground_truth,
            metadata=rollout.row.metadata,
            finish_reason=rollout.finish_reason,
        )


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
