"""The checks: what a good plugin does, by family and in the order of their numbers."""

from __future__ import annotations

from collections.abc import Mapping

from rlvr_core.api.plugin import Family
from rlvr_core.testing.check import Check
from rlvr_core.testing.checks import (
    attacks,
    code,
    documents,
    families,
    meaning,
    package,
    purity,
    resources,
    robustness,
    shape,
)


def _by_digits(check: Check) -> str:
    return check.number[1:]


VERIFIER_CHECKS = tuple(
    sorted(
        (
            *shape.CHECKS,
            *meaning.CHECKS,
            *purity.CHECKS,
            *robustness.CHECKS,
            *attacks.CHECKS,
            *code.CHECKS,
            *resources.CHECKS,
            *documents.CHECKS,
        ),
        key=_by_digits,
    )
)

CHECKS: Mapping[Family, tuple[Check, ...]] = {
    Family.VERIFIERS: (*package.CHECKS, *VERIFIER_CHECKS),
    Family.SAMPLERS: (*package.CHECKS, *families.SAMPLERS),
    Family.ADVANTAGE: (*package.CHECKS, *families.ADVANTAGE),
    Family.MONITORS: (*package.CHECKS, *families.MONITORS),
}
"""Family -> its checks."""
