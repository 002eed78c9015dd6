"""Models whose layers see less than everything, or keep something else than keys and values."""

import contextlib

import pytest

torch = pytest.importorskip("torch")

from transformers import (  # noqa: E402
    AutoModelForCausalLM,
    Gemma3TextConfig,
    GPTNeoConfig,
    LlamaConfig,
    Mamba2Config,
    MistralConfig,
    Qwen2Config,
)

from rlvr_core.rollout.engine import SampleRequest  # noqa: E402
from rlvr_core.rollout.probe import largest_gap, sampling_fault  # noqa: E402
from rlvr_core.rollout.transformers_engine import TransformersEngine, attends_locally  # noqa: E402

SMALL = {"vocab_size": 300, "hidden_size": 32, "num_hidden_layers": 2}
HEADS = {"intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
WINDOW = 8


def make(config):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(4)  # so that what a token sees shows in its probabilities
    return model


LOCAL = [
    MistralConfig(**SMALL, **HEADS, sliding_window=WINDOW),
    Gemma3TextConfig(**SMALL, **HEADS, sliding_window=WINDOW, head_dim=8),
    GPTNeoConfig(
        vocab_size=300, hidden_size=32, num_layers=2, attention_types=[[["global", "local"], 1]],
        num_heads=4, window_size=WINDOW,
    ),
]  # fmt: skip


@pytest.mark.parametrize("config", LOCAL, ids=lambda config: config.model_type)
def test_a_window_is_not_used_up_by_padding_behind_a_shared_beginning(config):
    model = make(config)
    beginning = tuple(range(30, 54))
    prompts = [(*beginning, 5, 6), (*beginning, 7), (*beginning, 8, 9, 10, 11)]
    requests = [
        SampleRequest(prompt_ids=ids, max_tokens=8, temperature=1.0, key=(number,))
        for number, ids in enumerate(prompts)
    ]
    engine = TransformersEngine(model, stop_ids=(), max_rows=8, autocast=contextlib.nullcontext)
    samples = {}

    engine.sample(requests, samples.__setitem__)

    assert max(largest_gap(model, one, samples[n]) for n, one in enumerate(requests)) < 1e-4


@pytest.mark.parametrize("key_value_heads", [2, 4])
@pytest.mark.parametrize("window", [None, WINDOW])
def test_rows_of_one_length_are_sampled_the_same_with_and_without_a_mask(key_value_heads, window):
    heads = {**HEADS, "num_key_value_heads": key_value_heads}
    model = make(MistralConfig(**SMALL, **heads, sliding_window=window))
    beginning = tuple(range(30, 54))
    requests = [
        SampleRequest(prompt_ids=(*beginning, n), max_tokens=8 - n, temperature=1.0, key=(n,))
        for n in range(4)
    ]
    engine = TransformersEngine(model, stop_ids=(), max_rows=8, autocast=contextlib.nullcontext)
    samples, masks = {}, []
    hook = model.model.register_forward_pre_hook(
        lambda module, positional, named: masks.append(named["attention_mask"]), with_kwargs=True
    )

    engine.sample(requests, samples.__setitem__)

    hook.remove()
    assert (masks[-1] is None) == (key_value_heads == 4)
    assert max(largest_gap(model, one, samples[n]) for n, one in enumerate(requests)) < 1e-4


def test_models_that_attend_locally_are_known():
    assert all(attends_locally(config) for config in LOCAL)
    for config in (LlamaConfig(), Qwen2Config(), MistralConfig(sliding_window=None)):
        assert not attends_locally(config)


def test_a_model_with_recurrent_state_is_refused():
    state_space = Mamba2Config(**SMALL, num_heads=4, head_dim=16, state_size=8, n_groups=1)

    assert sampling_fault(make(state_space))
    assert sampling_fault(make(LlamaConfig(**SMALL, **HEADS))) is None
