"""How well a solution follows the reference."""

from __future__ import annotations

from dataclasses import dataclass

from rlvr_plugin_steps.alignment import MAX_ALIGNED_STEPS, Alignment, align
from rlvr_plugin_steps.answers import find_claim, without_bare_claims
from rlvr_plugin_steps.features import read_step, similarity
from rlvr_plugin_steps.plain import plain
from rlvr_plugin_steps.splitting import split_steps
from rlvr_plugin_steps.truth import Truth


@dataclass(frozen=True, slots=True)
class Grade:
    """What a solution is worth, in parts.

    Attributes:
        is_right: Whether the claimed answer is right; None if none is claimed.
        steps: How many steps it has.
        wrong_lines: How many false equations stand in the steps that were read.
        alignment: How its steps agree with the reference.
    """

    is_right: bool | None
    steps: int
    wrong_lines: int
    alignment: Alignment

    def score(self, answer_share: float) -> float:
        """Return the score, 0 to 1: a right answer earns the share, its steps the rest.

        Steps to an answer that is wrong or missing earn the share at most.
        """
        if self.is_right:
            return answer_share + (1 - answer_share) * self.alignment.f1
        return answer_share * self.alignment.f1


def grade(text: str, truth: Truth) -> Grade:
    """Grade a solution: what a completion says after its reasoning."""
    claim = find_claim(text)
    pieces = split_steps(plain(without_bare_claims(text)))
    steps = [read_step(piece) for piece in pieces[:MAX_ALIGNED_STEPS]]
    reference = truth.reference
    similarities = [
        [similarity(step, wanted, reference.forgiven) for wanted in reference.steps]
        for step in steps
    ]
    return Grade(
        is_right=None if claim is None else truth.accepts(claim),
        steps=len(pieces),
        wrong_lines=sum(len(step.wrong - reference.forgiven) for step in steps),
        alignment=align(similarities, truth.step_weights, len(pieces)),
    )
