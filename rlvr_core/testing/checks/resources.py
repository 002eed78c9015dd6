"""Checks of what a verifier leaves behind, and how fast it is."""

from __future__ import annotations

from rlvr_core.testing.check import SHAPED, apart

CHECKS = (
    apart("R60", "It leaves no processes, files, threads or temporary files.", SHAPED),
    apart("R61", "Its memory stays flat over 50 batches.", SHAPED),
    apart("R62", "Working directory, environment, locale, random state and the like stay as they "
          "were.", SHAPED),
    apart("R63", "It is as fast as [tool.rlvr.check] rows_per_s promises.", SHAPED),
)  # fmt: skip
