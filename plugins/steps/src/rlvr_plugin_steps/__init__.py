"""Worked solutions, aligned with reference steps behind the final answer."""

from rlvr_plugin_steps.coverage import Coverage, measure_coverage
from rlvr_plugin_steps.verifier import Steps

__all__ = ["Coverage", "Steps", "measure_coverage"]
