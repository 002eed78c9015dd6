"""The plugin that self-checks add to a stack: it stands around the stack's own plugins.

Completions of a random model are noise, which a good verifier pays nothing: every group would be
dead, and every comparison one of zeros. So the probe lets the verifiers judge and then puts made-up
verdicts in the place of theirs, inside of all other wrappers: what comes after sees a spread.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from rlvr_core.api.events import Action
from rlvr_core.api.markers import hookimpl
from rlvr_core.api.plugin import Plugin, Verifier, VerifyBatch, VerifyRow
from rlvr_core.api.session import PolicyLoss, TokenBatch
from rlvr_core.api.verdicts import FailureCategory, Status, Verdict
from rlvr_core.rl.keyed_random import keyed_generator
from rlvr_core.train.actions import ENDING

ABSTAINED_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Scale:
    """The scores that a verifier may give."""

    lowest: float = 0.0
    highest: float = 1.0
    pass_mark: float = 1.0

    @classmethod
    def of(cls, verifier: Verifier) -> Self:
        """Return the scale of a verifier."""
        lowest, highest = verifier.score_range
        mark = highest if verifier.pass_mark is None else verifier.pass_mark
        return cls(lowest, highest, mark)

    def verdict(self, share: float, verifier: str) -> Verdict:
        """Return the verdict whose score lies at `share` of the way from lowest to highest."""
        score = self.lowest + share * (self.highest - self.lowest)
        passed = score >= self.pass_mark
        return Verdict(
            status=Status.PASSED if passed else Status.FAILED,
            score=score,
            failure=None if passed else FailureCategory.WRONG_ANSWER,
            verifier=verifier,
        )


class Probe(Plugin):
    """Makes up verdicts, keeps monitors from ending a run, and notes the ratios of the loss."""

    api_version = "1.0"

    def __init__(
        self, config: Any = None, *, name: str = "", scales: Mapping[str, Scale] | None = None
    ) -> None:
        super().__init__(config, name=name)
        self._scales = scales or {}
        self.ratio_errors: list[float] = []
        """The largest |ratio - 1| of each call of the loss."""
        self._is_audit = False

    @hookimpl(wrapper=True)
    def rlvr_audit_prompts(self) -> Generator[None, Any, Any]:
        """Leave verdicts on prompts as they are: made-up ones could refuse them."""
        self._is_audit = True
        try:
            return (yield)
        finally:
            self._is_audit = False

    @hookimpl(wrapper=True)
    def rlvr_verify(
        self, batch: VerifyBatch
    ) -> Generator[None, Sequence[Verdict], Sequence[Verdict]]:
        """Let the verifier judge, and return other verdicts."""
        verdicts = yield
        if self._is_audit:
            return verdicts
        return [
            self._made_up(row, verdict.verifier)
            for row, verdict in zip(batch, verdicts, strict=True)
        ]

    @hookimpl(wrapper=True)
    def rlvr_step_end(self) -> Generator[None, Any, Any]:
        """Let a monitor speak, but not end the run: what it sees is made up."""
        return _without_endings((yield))

    @hookimpl(wrapper=True)
    def rlvr_eval_end(self) -> Generator[None, Any, Any]:
        """As at the end of a step."""
        return _without_endings((yield))

    @hookimpl(wrapper=True)
    def rlvr_policy_loss(self, tokens: TokenBatch) -> Generator[None, PolicyLoss, PolicyLoss]:
        """Note how far ratios are from 1."""
        log_ratio_T = tokens.logp_T.detach() - tokens.old_logp_T
        self.ratio_errors.append(float(log_ratio_T.expm1().abs().max()))
        return (yield)

    def _made_up(self, row: VerifyRow, verifier: str) -> Verdict:
        """Return a verdict that depends on the row and the completion alone."""
        draw = keyed_generator("selfcheck", row.id, row.completion)
        if draw.random() < ABSTAINED_SHARE:
            return Verdict(
                status=Status.ABSTAINED, failure=FailureCategory.NOT_APPLICABLE, verifier=verifier
            )
        share = draw.choice((0.0, 0.0, 0.5, 1.0, 1.0))
        return self._scales.get(verifier, Scale()).verdict(share, verifier)


def _without_endings(returned: Any) -> Any:
    """Return the actions that do not end a run; what is no action is core's to complain of."""
    actions = [returned] if isinstance(returned, Action) else returned
    if not isinstance(actions, Sequence):
        return actions
    return [one for one in actions if not (isinstance(one, Action) and one.kind in ENDING)]
