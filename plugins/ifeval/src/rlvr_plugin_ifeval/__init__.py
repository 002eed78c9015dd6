"""Instructions that can be checked, judged by rules: the 25 kinds of IFEval."""

from rlvr_plugin_ifeval.verifier import IFEval

__all__ = ["IFEval"]
