"""A language model as judge, behind an OpenAI-compatible endpoint, proven before it trains."""

from rlvr_plugin_llm_judge.verifier import LlmJudge

__all__ = ["LlmJudge"]
