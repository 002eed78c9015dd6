"""Sampling with the policy's own model: what is sampled, what is recorded, what it costs."""

import contextlib

import pytest

torch = pytest.importorskip("torch")

from rlvr_core.api import FinishReason, Message  # noqa: E402
from rlvr_core.rl.keyed_random import keyed_uniforms  # noqa: E402
from rlvr_core.rollout.engine import SampleRequest  # noqa: E402
from rlvr_core.rollout.tokens import PromptTokenizer, stop_ids  # noqa: E402
from rlvr_core.rollout.transformers_engine import (  # noqa: E402
    TransformersEngine,
    common_prefix_length,
)
from rlvr_core.train.build import load_model  # noqa: E402

NEVER = 300
"""No id of the tiny model's vocabulary, so nothing ends early."""


@pytest.fixture(scope="module")
def loaded(tiny_model):
    torch.set_num_threads(1)
    return load_model(tiny_model)


@pytest.fixture
def make_engine(loaded):
    def make(stops=(NEVER,), max_rows=64):
        return TransformersEngine(
            loaded.model, stop_ids=stops, max_rows=max_rows, autocast=contextlib.nullcontext
        )

    return make


def request(prompt="What is it?", sample=0, max_tokens=6, temperature=1.0):
    ids = tuple(byte + 3 for byte in prompt.encode())
    key = (0, "rollout", 1, prompt, sample)
    return SampleRequest(prompt_ids=ids, max_tokens=max_tokens, temperature=temperature, key=key)


def sample(engine, requests):
    found = {}
    engine.sample(requests, found.__setitem__)
    return [found[index] for index in range(len(requests))]


@contextlib.contextmanager
def recorded_calls(model):
    calls = []
    hook = model.register_forward_pre_hook(
        lambda module, positional, named: calls.append(tuple(named["input_ids"].shape)),
        with_kwargs=True,
    )
    yield calls
    hook.remove()


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_tokens_and_log_probabilities_are_those_of_a_plain_forward_pass(
    loaded, make_engine, temperature
):
    one = request(temperature=temperature)

    [found] = sample(make_engine(), [one])

    ids = torch.tensor([[*one.prompt_ids, *found.token_ids]])
    with torch.no_grad():
        logits = loaded.model(ids).logits[0, len(one.prompt_ids) - 1 : -1]
    logp = (logits / temperature).log_softmax(-1)
    expected = logp.gather(-1, torch.tensor(found.token_ids)[:, None])[:, 0]
    torch.testing.assert_close(torch.tensor(found.logps), expected, atol=1e-4, rtol=0)
    entropy = -(logp.exp() * logp).sum(-1).mean()
    assert found.entropy == pytest.approx(entropy.item(), abs=1e-4)
    uniforms = keyed_uniforms(6, *one.key)
    drawn = [
        int(torch.searchsorted(row.exp().cumsum(0), float(uniform), right=True))
        for row, uniform in zip(logp, uniforms, strict=True)
    ]
    assert found.token_ids == drawn


def test_a_completion_does_not_depend_on_what_is_sampled_beside_it(make_engine):
    one = request("Which is larger, 3 or 5?", sample=2)
    others = [request(f"Something else {n}", sample=n) for n in range(5)]

    [alone] = sample(make_engine(), [one])
    last = sample(make_engine(), [*others, one])[-1]
    first = sample(make_engine(max_rows=2), [one, *others])[0]

    assert alone.token_ids == last.token_ids == first.token_ids
    assert alone.logps == pytest.approx(last.logps, abs=1e-4)


def test_every_sample_has_randomness_of_its_own(make_engine):
    found = sample(make_engine(), [request(sample=n) for n in range(8)])

    assert len({tuple(one.token_ids) for one in found}) == 8


def test_a_prompt_is_computed_once_for_its_group(loaded, make_engine):
    shared = "the same long beginning of every prompt: "
    requests = [request(shared + end, sample=n) for end in ("a?", "bcd?") for n in range(4)]

    with recorded_calls(loaded.model) as calls:
        sample(make_engine(), requests)

    # The common beginning alone, then what is left of both prompts, then one token a row.
    assert calls[:2] == [(1, len(shared)), (2, len("bcd?"))]
    assert calls[2:] == [(8, 1)] * 5


def test_finished_completions_leave_the_batch(loaded, make_engine):
    requests = [request(sample=n, max_tokens=2 + n) for n in range(4)]

    with recorded_calls(loaded.model) as calls:
        found = sample(make_engine(), requests)

    assert [len(one.token_ids) for one in found] == [2, 3, 4, 5]
    assert [rows for rows, _ in calls[1:]] == [4, 3, 2, 1]


def test_every_stop_id_ends_a_completion(make_engine):
    free = sample(make_engine(), [request(sample=n) for n in range(6)])
    stops = {free[0].token_ids[2], free[1].token_ids[3]}

    found = sample(make_engine(stops=stops), [request(sample=n) for n in range(6)])

    for before, after in zip(free, found, strict=True):
        places = [place for place, token in enumerate(before.token_ids) if token in stops]
        if places:
            assert after.token_ids == before.token_ids[: places[0] + 1]
            assert after.finish_reason is FinishReason.STOP
        else:
            assert after.token_ids == before.token_ids
            assert after.finish_reason is FinishReason.LENGTH
    assert {one.finish_reason for one in found[:2]} == {FinishReason.STOP}


def test_padding_with_the_stop_token_does_no_harm(loaded, make_engine):
    """Many models pad with EOS. A completion ends where EOS was sampled, not where padding is."""
    pad = loaded.tokenizer.pad_token_id
    free = sample(make_engine(), [request("short"), request("a much longer prompt", sample=1)])

    found = sample(
        make_engine(stops=[pad]), [request("short"), request("a much longer prompt", sample=1)]
    )

    assert [one.token_ids for one in found] == [one.token_ids for one in free]


def test_finished_completions_are_told_before_the_others_end(make_engine):
    order = []

    make_engine().sample(
        [request(sample=0, max_tokens=6), request(sample=1, max_tokens=1)],
        lambda index, one: order.append(index),
    )

    assert order == [1, 0]


def test_the_model_is_left_in_the_mode_it_was_in(loaded, make_engine):
    for is_training in (True, False):
        loaded.model.train(is_training)
        sample(make_engine(), [request()])

        assert loaded.model.training is is_training


def test_common_beginning_leaves_a_token_of_every_prompt():
    assert common_prefix_length([(1, 2, 3), (1, 2, 3)]) == 2
    assert common_prefix_length([(1, 2), (1, 2, 3)]) == 1
    assert common_prefix_length([(1,), (2,)]) == 0


def test_text_prompts_become_a_user_turn_where_there_is_a_template(loaded):
    chat = PromptTokenizer(loaded.tokenizer)
    text = PromptTokenizer(loaded.tokenizer, "text")

    as_turn = loaded.tokenizer.decode(chat.encode("hi"))

    assert as_turn == "<bos>user: hi\nassistant: "
    assert chat.encode("hi") == chat.encode((Message("user", "hi"),))
    assert loaded.tokenizer.decode(text.encode("hi")) == "hi"


def test_a_prompt_that_begins_with_bos_gets_no_second_one(loaded):
    tokenizer = PromptTokenizer(loaded.tokenizer, "text")

    ids = tokenizer.encode("<bos>hi")

    assert ids.count(loaded.tokenizer.bos_token_id) == 1


def test_stop_ids_are_gathered_from_the_model_and_the_tokenizer(loaded):
    before = loaded.model.generation_config.eos_token_id
    loaded.model.generation_config.eos_token_id = [7, 9]
    try:
        assert stop_ids(loaded.model, loaded.tokenizer) == [2, 7, 9]
    finally:
        loaded.model.generation_config.eos_token_id = before
