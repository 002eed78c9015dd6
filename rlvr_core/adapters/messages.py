"""Prompts and completions as chat messages, and as the text that a verifier reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def completion_text(completion: Any) -> str:
    """Return what the model wrote: the text itself, or that of its last turn.

    Args:
        completion: Text, or messages of which the last of the assistant counts. Content may be
            text, blocks of which those with text count, or nothing (a turn that only calls tools).
    """
    if isinstance(completion, str):
        return completion
    for message in reversed(list(completion)):
        if _role(message) == "assistant":
            return _text(_content(message))
    return ""


def prompt_messages(prompt: Any) -> str | list[dict[str, str]]:
    """Return a prompt as verifiers see it: text, or messages whose contents are text."""
    if prompt is None or isinstance(prompt, str):
        return prompt or ""
    return [{"role": _role(one), "content": _text(_content(one))} for one in prompt]


def _role(message: Any) -> str:
    role = message.get("role") if isinstance(message, Mapping) else getattr(message, "role", "")
    return str(role)


def _content(message: Any) -> Any:
    if isinstance(message, Mapping):
        return message.get("content")
    return getattr(message, "content", None)


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, Sequence):
        return str(content)
    blocks = [block if isinstance(block, Mapping) else vars(block) for block in content]
    return "".join(str(block["text"]) for block in blocks if isinstance(block.get("text"), str))
