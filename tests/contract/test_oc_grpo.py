"""oc-grpo: guided rollouts for dead groups, trained under the plain prompt (hooks 4 and 10)."""

import math

import numpy as np
import pytest
import torch

from rlvr_core.train.step import collect

OC = {
    "samplers": ["tiny-oc-grpo"],
    "advantage": ["dr-grpo", {"ppo-clip": {"aggregation": "sequence-mean"}}],
}
HINT = "psst: 12"


@pytest.fixture
def rescued(session_of):
    """Return a function that collects steps until guidance brought a dead group to life."""

    def find(runtime):
        for step in range(1, 40):
            session = session_of(runtime, step)
            groups = collect(runtime, session).groups
            alive = [group for group in groups if len(group.rollouts) > 4 and not group.is_dead]
            if alive:
                return session, groups, alive[0]
        raise AssertionError("no dead group was rescued")

    return find


def rows(row, hint):
    return [row("train", number, "[0-9]", hint=hint) for number in range(4)]


def test_guided_rollouts_are_verified_and_sampled_under_the_hint_only(
    runtimes, rescued, row, model_inputs, gradients_after
):
    seen_sampling, seen_learning = [], []
    with runtimes(train_rows=rows(row, HINT), **OC) as runtime:
        spy = model_inputs(runtime, seen_sampling)
        session, groups, group = rescued(runtime)
        spy.remove()
        spy = model_inputs(runtime, seen_learning)
        gradients_after(runtime, session, groups)
        spy.remove()

    plain, guided = group.rollouts[:4], group.rollouts[4:]
    assert [r.sample_index for r in group.rollouts] == list(range(8))
    assert all(r.verdict.is_judgement and r.reward == r.verdict.score for r in group.rollouts)
    assert all(r.reward == 0 for r in plain)
    assert any(r.reward == 1 for r in guided)
    assert all(HINT not in r.sampled_under for r in plain)
    assert all(HINT in r.sampled_under for r in guided)
    assert all(r.trained_under == group.row.prompt for r in group.rollouts)
    assert any(HINT in text for text in seen_sampling), "the spy must be able to see a hint"
    assert seen_learning
    assert not any(HINT in text for text in seen_learning)


def test_context_weights_are_the_balance_heuristic_in_float64(
    runtimes, rescued, row, logps_of, plugin_of, gradients_after, expected_gradients, assert_same
):
    with runtimes(train_rows=rows(row, HINT), **OC) as runtime:
        session, groups, _ = rescued(runtime)
        cap = plugin_of(runtime, "tiny-oc-grpo").config.cap
        found = gradients_after(runtime, session, groups)
        model = runtime.policy.model
        coefficients, weights = [], []
        count = sum(len(group.rollouts) for group in groups)
        for group in groups:
            for rollout in group.rollouts:
                weight = 1.0
                if len(group.rollouts) > 4:
                    with torch.no_grad():
                        plain, _ = logps_of(runtime, model, rollout, group.row.prompt)
                        hinted, _ = logps_of(runtime, model, rollout, f"{group.row.prompt}\n{HINT}")
                    plain, hinted = plain.sum().item(), hinted.sum().item()
                    mixture = np.logaddexp(plain + math.log(0.5), hinted + math.log(0.5))
                    weight = min(math.exp(plain - mixture), cap)
                    weights.append(weight)
                scale = weight * rollout.advantage / (count * rollout.length)
                coefficients.append((rollout, [scale] * rollout.length))

        assert_same(found, expected_gradients(runtime, coefficients))

    assert all(0 < weight <= 2 for weight in weights)
    assert max(weights) - min(weights) > 1e-3, "the contexts must differ for this test to count"


def test_without_guidance_every_weight_is_one_and_the_update_is_plain_grpo(
    runtimes, rescued, row, gradients_after, assert_same, monkeypatch
):
    weights = []
    with runtimes(train_rows=rows(row, ""), **OC) as runtime:
        session, groups, group = rescued(runtime)
        real = runtime.dispatcher.weigh_tokens

        def spy(tokens, session):
            weights.append(real(tokens, session))
            return weights[-1]

        monkeypatch.setattr(runtime.dispatcher, "weigh_tokens", spy)
        guided = gradients_after(runtime, session, groups)
    assert len(group.rollouts) == 8
    assert torch.cat(weights).numpy() == pytest.approx(1.0, abs=1e-5)

    with runtimes("plain", train_rows=rows(row, ""), advantage=OC["advantage"]) as runtime:
        plain = gradients_after(runtime, session, groups)
    assert_same(guided, plain)


@pytest.mark.parametrize(
    ("plain", "guided", "weight"), [(0.9, 0.4, 1.3846154), (0.1, 0.6, 0.2857143)]
)
def test_balance_weights_have_the_golden_numbers(fixture, plain, guided, weight):
    found = fixture("balance_weight")(math.log(plain), math.log(guided), 0.5, 0.5)

    assert found == pytest.approx(weight, abs=1e-6)


def test_balance_weights_hold_at_fifty_nats_and_more(fixture):
    balance_weight = fixture("balance_weight")

    assert balance_weight(-2000.0, -5.0, 0.5, 0.5) == 0.0
    assert balance_weight(-5.0, -2000.0, 0.5, 0.5) == pytest.approx(2.0)
