"""Entities in a JSON answer, scored by F1 against those that are right."""

from rlvr_plugin_f1_extraction.verifier import F1Extraction

__all__ = ["F1Extraction"]
