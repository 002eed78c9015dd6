"""Run as a script, in a process of its own: one GGUF file becomes a safetensors model folder.

A process of its own gives its memory back, keeps the progress bars of transformers out of the
caller's terminal, and can be killed without a trace in the caller. Imports nothing of rlvr, so that
it runs wherever the calling interpreter does.
"""

from __future__ import annotations

import sys
from pathlib import Path

STOP = "<|im_end|>"
CONTEXT_TOKENS = 8192


def convert(gguf: Path, out: Path) -> None:
    """Write the model (float32) and tokenizer of SmolLM2-Instruct's GGUF file to the folder `out`.

    Raises:
        ValueError: The tokenizer or the stop token is not what SmolLM2-Instruct has.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    _restore_tokenizer(tokenizer)
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=torch.float32,
        quantization_config=GgufConfig(dequantize=True),
    )
    stop_id = tokenizer.convert_tokens_to_ids(STOP)
    # Padding never enters attention or a loss, so the stop token can serve; a new token would need
    # a new row in the embeddings.
    for config in (model.config, model.generation_config):
        config.eos_token_id = stop_id
        config.pad_token_id = stop_id
    tokenizer.save_pretrained(out)
    model.save_pretrained(out)


def _restore_tokenizer(tokenizer: object) -> None:
    """Put back what GGUF only names: digits stand alone (pre-tokenizer ``smollm``), context length.

    Without it, white space before a digit is cut differently from how the model learnt it.
    """
    from tokenizers import pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    if not isinstance(tokenizer, PreTrainedTokenizerFast) or not tokenizer.chat_template:
        raise ValueError("the GGUF file gave no tokenizer with a chat template")
    if tokenizer.eos_token != STOP or tokenizer.convert_tokens_to_ids(STOP) is None:
        raise ValueError(f"the stop token is {tokenizer.eos_token!r}, expected {STOP!r}")
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.model_max_length = CONTEXT_TOKENS


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
