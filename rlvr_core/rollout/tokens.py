"""Prompts to token ids, and sampled ids back to text. Completions are never tokenised again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from jinja2 import TemplateError
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rlvr_core.api.errors import DataError, StackError, exception_text
from rlvr_core.api.rollouts import Message, Prompt


class PromptTokenizer:
    """Turns prompts into the ids that the policy sees.

    Args:
        tokenizer: The model's tokenizer.
        prompt_format: As in the stack file.

    Raises:
        StackError: RLVR-S102, ``chat`` is asked for and the tokenizer has no chat template.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        prompt_format: Literal["auto", "chat", "text"] = "auto",
    ) -> None:
        self._tokenizer = tokenizer
        has_template = bool(tokenizer.chat_template)
        if prompt_format == "chat" and not has_template:
            raise StackError(
                "RLVR-S102",
                "rollout.prompt_format: 'chat' needs a chat template, and the model has none",
                fix="set rollout.prompt_format: text, or take a model that was trained to chat",
            )
        self._wraps_text = prompt_format == "chat" or (prompt_format == "auto" and has_template)
        self._has_template = has_template

    @property
    def bos_id(self) -> int | None:
        """The id that texts begin with, if the tokenizer has one."""
        found: int | None = self._tokenizer.bos_token_id
        return found

    @property
    def special_ids(self) -> frozenset[int]:
        """Ids that stand for no text."""
        return frozenset(self._tokenizer.all_special_ids)

    @property
    def special_texts(self) -> tuple[str, ...]:
        """How special tokens are written; inside a prompt these texts become them."""
        return tuple(self._tokenizer.all_special_tokens)

    def uses_template(self, prompt: Prompt) -> bool:
        """Tell whether a prompt goes through the chat template."""
        return not isinstance(prompt, str) or self._wraps_text

    def encode(self, prompt: Prompt) -> tuple[int, ...]:
        """Return the ids of a prompt, ready for the model to continue as the assistant.

        A text prompt that already begins with the model's BOS token does not get a second one.

        Raises:
            DataError: RLVR-D102, the model has no chat template, or it does not take the prompt.
        """
        if isinstance(prompt, str) and not self._wraps_text:
            bos = self._tokenizer.bos_token
            repeats_bos = bool(bos) and prompt.startswith(str(bos))
            ids = self._tokenizer(prompt, add_special_tokens=not repeats_bos)["input_ids"]
            return tuple(ids)
        messages = (Message("user", prompt),) if isinstance(prompt, str) else prompt
        turns = [{"role": message.role, "content": message.content} for message in messages]
        if not self._has_template:
            raise _refused("a list of messages needs a chat template, and the model has none")
        try:
            encoded: Any = self._tokenizer.apply_chat_template(
                turns, add_generation_prompt=True, tokenize=True, return_dict=True
            )
        # A template is a program that came with the model, and may fail in any way.
        except (TemplateError, ValueError, TypeError, LookupError) as exc:
            raise _refused(f"the model's chat template raises {exception_text(exc)}") from exc
        return tuple(encoded["input_ids"])

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of a completion, special tokens left out."""
        return str(self._tokenizer.decode(list(token_ids), skip_special_tokens=True))


def _refused(why: str) -> DataError:
    return DataError(
        "RLVR-D102",
        "a prompt cannot be encoded",
        cause=why,
        fix="write the prompt as the model expects it, or set rollout.prompt_format: text",
    )


def stop_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Return every id that the model, its generation settings or its tokenizer ends a turn with."""
    found: set[int] = set()
    generation = getattr(model, "generation_config", None)
    for holder in (model.config, generation, tokenizer):
        value = getattr(holder, "eos_token_id", None)
        found.update([value] if isinstance(value, int) else value or [])
    return sorted(found)
