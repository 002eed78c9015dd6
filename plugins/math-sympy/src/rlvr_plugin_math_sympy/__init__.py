"""Mathematical answers, judged by a ladder: strings, exact numbers, structure, then sympy."""

from rlvr_plugin_math_sympy.verifier import MathSympy

__all__ = ["MathSympy"]
