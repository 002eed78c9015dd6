"""What vLLM computes with: the weights that were pushed last, in a copy that was checked."""

from dataclasses import replace

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from vllm_pair import request, sample, tokens

from rlvr_core.api import FinishReason
from rlvr_core.api.errors import EnvironmentFault
from rlvr_core.train.build import load_model

pytestmark = pytest.mark.vllm


def untied_model():
    config = LlamaConfig(
        vocab_size=259,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        tie_word_embeddings=False,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return LlamaForCausalLM(config)


@pytest.mark.parametrize("is_tied", [True, False], ids=["tied head", "head of its own"])
def test_after_a_large_update_both_engines_decode_the_same_greedy_tokens(make_pair, is_tied):
    pair = make_pair() if is_tied else make_pair(untied_model())
    for _ in range(3):
        before = pair.greedy(pair.vllm)
        pair.update()
        pair.push()

        after = pair.greedy(pair.vllm)

        assert after == pair.greedy(pair.own)
        assert after != before


def test_without_a_push_the_engine_keeps_the_old_tokens_and_the_old_version(make_pair):
    pair = make_pair()
    before = pair.greedy(pair.vllm)
    pair.update()

    assert pair.greedy(pair.vllm) == before != pair.greedy(pair.own)
    assert {one.weights_version for one in sample(pair.vllm, [request()])} == {0}


def test_every_stop_id_ends_a_completion(make_pair):
    free = make_pair()
    requests = [request(sample=n, max_tokens=12) for n in range(8)]
    unstopped = tokens(free.vllm, requests)
    stops = {unstopped[0][2], unstopped[1][3]}
    # No model produces the last one, and vLLM would refuse it.
    stopping = make_pair(stop_ids=[*stops, 100_000])

    found = sample(stopping.vllm, requests)

    for before, after in zip(unstopped, found, strict=True):
        places = [place for place, token in enumerate(before) if token in stops]
        if places:
            assert after.token_ids == before[: places[0] + 1]
            assert after.finish_reason is FinishReason.STOP
        else:
            assert after.token_ids == before
            assert after.finish_reason is FinishReason.LENGTH
        assert len(after.logps) == len(after.token_ids)
    assert {one.finish_reason for one in found[:2]} == {FinishReason.STOP}


def test_what_vllm_raises_while_it_samples_is_an_error_of_the_engine(make_pair):
    beyond_the_vocabulary = replace(request(), prompt_ids=(5000,))

    with pytest.raises(EnvironmentFault) as refused:
        sample(make_pair().vllm, [beyond_the_vocabulary])

    assert refused.value.code == "RLVR-E104"
    assert refused.value.exit_code == 4
    assert "vLLM failed when it sampled" in str(refused.value)
    assert "IndexError" in str(refused.value)


def test_a_model_that_vllm_cannot_run_is_refused_at_the_start(make_pair, tiny_model):
    """vLLM builds this one, and first fails when it computes: its heads are too narrow."""
    with pytest.raises(EnvironmentFault) as refused:
        make_pair(load_model(tiny_model).model)

    assert refused.value.code == "RLVR-E104"
    assert "head_dim=8" in str(refused.value)


def test_a_copy_that_computes_something_else_is_refused_at_the_start(make_pair, monkeypatch):
    """As when vLLM leaves a part of the model as it was, which it does in silence."""
    monkeypatch.setattr("rlvr_core.rollout.vllm_engine._replace_weights", lambda worker, new: [])

    with pytest.raises(EnvironmentFault, match="other log-probabilities than the policy"):
        make_pair()
