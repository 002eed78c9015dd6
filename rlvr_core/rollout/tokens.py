"""Prompts to token ids, and sampled ids back to text. Completions are never tokenised again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rlvr_core.api.rollouts import Message, Prompt


class PromptTokenizer:
    """Turns prompts into the ids that the policy sees.

    Args:
        tokenizer: The model's tokenizer.
        prompt_format: As in the stack file.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        prompt_format: Literal["auto", "chat", "text"] = "auto",
    ) -> None:
        self._tokenizer = tokenizer
        has_template = bool(tokenizer.chat_template)
        self._wraps_text = prompt_format == "chat" or (prompt_format == "auto" and has_template)
        self._has_template = has_template

    @property
    def can_chat(self) -> bool:
        """True when the tokenizer carries a chat template."""
        return self._has_template

    def encode(self, prompt: Prompt) -> tuple[int, ...]:
        """Return the ids of a prompt, ready for the model to continue as the assistant.

        A text prompt that already begins with the model's BOS token does not get a second one.
        """
        if isinstance(prompt, str) and not self._wraps_text:
            bos = self._tokenizer.bos_token
            repeats_bos = bool(bos) and prompt.startswith(str(bos))
            ids = self._tokenizer(prompt, add_special_tokens=not repeats_bos)["input_ids"]
            return tuple(ids)
        messages = (Message("user", prompt),) if isinstance(prompt, str) else prompt
        turns = [{"role": message.role, "content": message.content} for message in messages]
        encoded: Any = self._tokenizer.apply_chat_template(
            turns, add_generation_prompt=True, tokenize=True, return_dict=True
        )
        return tuple(encoded["input_ids"])

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of a completion, special tokens left out."""
        return str(self._tokenizer.decode(list(token_ids), skip_special_tokens=True))


def stop_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Return every id that the model, its generation settings or its tokenizer ends a turn with."""
    found: set[int] = set()
    generation = getattr(model, "generation_config", None)
    for holder in (model.config, generation, tokenizer):
        value = getattr(holder, "eos_token_id", None)
        found.update([value] if isinstance(value, int) else value or [])
    return sorted(found)
