"""One check, and how it says what it found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlvr_core.testing.apart.parent import Finding
from rlvr_core.testing.report import Outcome

if TYPE_CHECKING:
    from rlvr_core.testing.subject import Subject


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must hold for a plugin.

    Attributes:
        number: It stays for ever. ``R``, ``S``, ``A``, ``M``: required; ``C``: of plugins that say
            that they can do what it is about.
        sentence: What must hold.
        make: Makes it.
        needs: Checks without which it says nothing: when one of them has failed it is skipped.
        capability: What the project must claim for the check to apply; empty: it always does.
    """

    number: str
    sentence: str
    make: Callable[[Subject], Finding]
    needs: tuple[str, ...] = ()
    capability: str = ""


LOADS = ("R01", "R02")
"""What every other check needs."""
SHAPED = (*LOADS, "R10", "R13", "R14", "R15")
"""What every check needs that looks at verdicts: the pool takes no others."""


def passed(detail: str) -> Finding:
    """Return that it holds."""
    return Finding(Outcome.PASSED, detail)


def failed(detail: str) -> Finding:
    """Return that it does not."""
    return Finding(Outcome.FAILED, detail)


def not_applicable(detail: str) -> Finding:
    """Return that the plugin has nothing that it is about."""
    return Finding(Outcome.NOT_APPLICABLE, detail)


def apart(number: str, sentence: str, needs: tuple[str, ...] = LOADS) -> Check:
    """Return a check that is an experiment in a process of its own."""
    return Check(number, sentence, lambda subject: subject.experiment(number), needs)
