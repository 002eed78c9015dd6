"""A causal language model small enough to train in milliseconds, made on the spot.

Random weights, a byte-level tokenizer of 259 ids and a chat template: nothing is downloaded, and
every part of a run behaves as it does with a real model.
"""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

PAD, BOS, EOS = "<pad>", "<bos>", "<eos>"
TEMPLATE = (
    "{{ '<bos>' }}{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
)


def make_tiny_model(
    folder: Path, *, seed: int = 0, hidden: int = 32, layers: int = 2, positions: int = 512
) -> Path:
    """Write a random Llama-like model and its tokenizer to `folder`, and return it.

    Args:
        folder: Made when absent.
        seed: Of the weights; the global generator is left as it was.
        hidden: Width; a multiple of 4, the number of heads.
        layers: Depth.
        positions: Longest sequence.
    """
    tokenizer = _byte_tokenizer(positions)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=positions,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        attention_dropout=0.0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _byte_tokenizer(positions: int) -> PreTrainedTokenizerFast:
    """Return a tokenizer whose ids are bytes, after the three special ids."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate([PAD, BOS, EOS, *alphabet])}
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        bos_token=BOS,
        eos_token=EOS,
        chat_template=TEMPLATE,
        model_max_length=positions,
    )
