"""Requests in, samples out: the vLLM engine keeps the promises of the engine interface."""

import pytest
import torch
from vllm_pair import LONG, request, sample, tokens

from rlvr_core.api import PluginError
from rlvr_core.api.errors import EnvironmentFault

pytestmark = pytest.mark.vllm


def test_every_sample_carries_the_version_that_was_pushed_last(pair):
    for _ in range(3):
        pair.update()
        pair.push()

        [found] = sample(pair.vllm, [request()])

        assert found.weights_version == pair.version


@pytest.mark.parametrize("temperature", [0.3, 1.0, 1.7])
def test_log_probabilities_are_the_policys_at_the_temperature_of_the_request(pair, temperature):
    pair.update()
    pair.push()
    requests = [
        request(prompt, sample=n, max_tokens=24, temperature=temperature)
        for prompt in ("short", LONG)
        for n in range(4)
    ]

    for one, found in zip(requests, sample(pair.vllm, requests), strict=True):
        recorded_T = torch.tensor(found.logps)
        torch.testing.assert_close(recorded_T, pair.logps(one, found), atol=1e-4, rtol=0)
        assert found.entropy is None


def test_tokens_are_drawn_from_the_whole_distribution(pair):
    """No top-k, top-p or penalty: what was drawn is spread as the recorded probabilities are."""
    one = request(temperature=2.0)
    draws = [request(sample=n, max_tokens=1, temperature=2.0) for n in range(2000)]

    found = sample(pair.vllm, draws)

    with torch.no_grad():
        logits_V = pair.model(torch.tensor([one.prompt_ids])).logits[0, -1]
    expected_V = (logits_V / 2.0).softmax(-1)
    drawn = torch.bincount(
        torch.tensor([one.token_ids[0] for one in found]), minlength=len(expected_V)
    )
    likely = expected_V.argsort(descending=True)
    for part in likely.chunk(4):
        share = expected_V[part].sum().item()
        deviation = (share * (1 - share) / 2000) ** 0.5
        assert drawn[part].sum().item() / 2000 == pytest.approx(share, abs=4 * deviation)


def test_equal_keys_give_equal_tokens_and_other_keys_others(pair):
    requests = [request(sample=n, max_tokens=12) for n in range(8)]

    first = tokens(pair.vllm, requests)
    again = tokens(pair.vllm, requests[::-1])[::-1]

    assert first == again
    assert len({tuple(one) for one in first}) == 8


def test_an_end_token_that_is_no_stop_id_ends_nothing(pair):
    """The stop ids are the caller's; vLLM reads none from the model's config."""
    requests = [request(sample=n, max_tokens=400, temperature=2.0) for n in range(4)]

    found = tokens(pair.vllm, requests)

    assert any(pair.model.config.eos_token_id in one[:-1] for one in found)
    assert [len(one) for one in found] == [400] * 4


def test_finished_completions_are_told_before_the_others_end(pair):
    lengths = [8, 1, 4]
    order = []

    pair.vllm.sample(
        [request(sample=n, max_tokens=length) for n, length in enumerate(lengths)],
        lambda index, one: order.append((index, len(one.token_ids))),
    )

    assert order == [(1, 1), (2, 4), (0, 8)]


def test_a_request_for_which_there_is_no_room_is_refused(pair):
    with pytest.raises(EnvironmentFault) as refused:
        sample(pair.vllm, [request(), request("x" * 8190, max_tokens=6)])

    assert refused.value.code == "RLVR-E104"
    assert "may take 8196 tokens, and vLLM has room for 8192" in str(refused.value)
    assert len(sample(pair.vllm, [request("x" * 8186, max_tokens=6)])[0].token_ids) == 6


def test_nothing_is_sampled_for_no_requests(pair):
    assert sample(pair.vllm, []) == []


def test_what_the_caller_raises_passes_and_leaves_nothing_behind(pair):
    def refuse(index, one):
        raise PluginError("RLVR-P106", "a verifier broke")

    requests = [request(sample=n, max_tokens=2 + 6 * n) for n in range(3)]
    with pytest.raises(PluginError, match="a verifier broke"):
        pair.vllm.sample(requests, refuse)
    pair.update()
    pair.push()

    assert pair.greedy(pair.vllm) == pair.greedy(pair.own)


def test_a_weight_that_the_policy_does_not_have_is_named(pair, monkeypatch):
    from rlvr_core.rollout import vllm_engine

    weights = dict(vllm_engine.checkpoint_weights(pair.model))
    del weights["model.norm.weight"]
    monkeypatch.setattr(vllm_engine, "checkpoint_weights", lambda model: weights)

    with pytest.raises(EnvironmentFault, match=r"no weights for model\.norm\.weight"):
        pair.push()


def test_prompts_of_more_tokens_than_a_batch_of_vllm_are_computed_too(pair):
    pair.update()
    pair.push()
    requests = [request(f"{n}: " + "many words " * 500, max_tokens=8) for n in range(3)]
    assert sum(len(one.prompt_ids) for one in requests) > 2 * 8192

    for one, found in zip(requests, sample(pair.vllm, requests), strict=True):
        recorded_T = torch.tensor(found.logps)
        torch.testing.assert_close(recorded_T, pair.logps(one, found), atol=1e-3, rtol=0)


def test_requests_that_vllm_loses_are_missed_and_not_waited_for(pair):
    def lose_the_rest(index, one):
        pair.vllm._engine.abort_request([*pair.vllm._open])

    with pytest.raises(EnvironmentFault, match="it lost 2 requests"):
        pair.vllm.sample([request(sample=n, max_tokens=2 + n) for n in range(3)], lose_the_rest)

    assert len(sample(pair.vllm, [request()])) == 1
