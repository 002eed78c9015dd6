"""One update against a float64 oracle, and its invariances."""

import contextlib
import copy
import functools
import math

import numpy as np
import pytest
import torch
from oracle import advantages, aggregate, kl, ppo_objective
from stacks import gradients_after, with_settings

from rlvr_core.api import Aggregation, Need, PolicyLoss, Segment
from rlvr_core.train.step import learn, trainable

REWARDS = [[1.0, 0.0, 0.0, 0.5], [0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0], [1.0, 0.25, 0.0, 0.0]]


def assert_same(first, second, tolerance=1e-6):
    for name, gradient in first.items():
        torch.testing.assert_close(second[name], gradient, atol=tolerance, rtol=0, msg=name)


def oracle_update(runtime, groups, how, constant, beta=0.0, reference=None):
    """Return loss and gradients in float64, from padded rows and formulas written once more."""
    model = copy.deepcopy(runtime.policy.model).double()
    rollouts = trainable(groups)
    width = max(rollout.length for rollout in rollouts)
    logp_BL = torch.zeros(len(rollouts), width, dtype=torch.float64)
    reference_BL = np.zeros((len(rollouts), width))
    mask_BL = np.zeros((len(rollouts), width))
    for number, rollout in enumerate(rollouts):
        prompt = list(runtime.encode(rollout.trained_under))
        ids = list(rollout.segments[0].token_ids)
        for source in (model, reference):
            if source is None:
                continue
            logits = source(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1]
            logp = (logits.double() / runtime.stack.rollout.temperature).log_softmax(-1)
            logp = logp.gather(-1, torch.tensor(ids)[:, None])[:, 0]
            if source is model:
                logp_BL[number, : len(ids)] = logp
            else:
                reference_BL[number, : len(ids)] = logp.detach()
        mask_BL[number, : len(ids)] = 1
    advantage_B = np.concatenate(
        [advantages([r.reward for r in group.valid], epsilon=1e-4) for group in groups]
    )
    logp = logp_BL.detach().numpy()
    loss = -ppo_objective(np.ones_like(logp), advantage_B[:, None])
    if beta:
        loss = loss + beta * kl(logp, reference_BL, "k3")
    value = aggregate(loss, mask_BL, how, constant)

    # d loss / d logp at ratio 1, by hand: -A, and for k3 the derivative 1 - exp(ref - logp).
    slope = np.broadcast_to(-advantage_B[:, None], logp.shape).copy()
    if beta:
        slope += beta * (1 - np.exp(reference_BL - logp))
    weight = np.zeros_like(logp)
    for index in np.ndindex(*logp.shape):
        unit = np.zeros_like(logp)
        unit[index] = 1.0
        weight[index] = aggregate(unit, mask_BL, how, constant)
    (logp_BL * torch.tensor(slope * weight * mask_BL)).sum().backward()
    return value, {name: p.grad for name, p in model.named_parameters()}


@pytest.mark.parametrize("aggregation", [a.value for a in Aggregation])
def test_update_equals_the_float64_oracle(runtimes, session_of, make_groups, aggregation):
    loss = {"ppo-clip": {"aggregation": aggregation}}
    with runtimes(advantage=["grpo", loss], rollout={"temperature": 0.6}) as runtime:
        groups = make_groups(runtime, REWARDS)
        value, expected = oracle_update(runtime, groups, aggregation, 6)

        found, result = gradients_after(runtime, session_of(runtime), groups)

    assert result.loss == pytest.approx(value, abs=1e-6)
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name].double(), gradient, atol=1e-6, rtol=0, msg=name)


def test_update_with_a_reference_equals_the_float64_oracle(runtimes, session_of, make_groups):
    loss = {"ppo-clip": {"aggregation": "token-mean", "kl_coefficient": 0.3}}
    with runtimes(advantage=["grpo", loss]) as runtime:
        groups = make_groups(runtime, REWARDS)
        with torch.no_grad():
            for parameter in runtime.policy.model.parameters():
                parameter.mul_(1.1)
        reference = runtime.reference.model
        value, expected = oracle_update(runtime, groups, "token-mean", 6, 0.3, reference)

        found, result = gradients_after(runtime, session_of(runtime), groups)

    assert result.loss == pytest.approx(value, abs=1e-6)
    assert result.means()["kl"] > 0
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name].double(), gradient, atol=1e-6, rtol=0, msg=name)


def with_budget(runtime, token_budget):
    with_settings(runtime, "train", micro_batch_tokens=token_budget)


@pytest.mark.parametrize("layout", ["shared", "rows"])
def test_micro_batches_and_layouts_do_not_change_the_update(
    runtimes, session_of, make_groups, layout
):
    with runtimes(train={"layout": layout}) as runtime:
        groups = make_groups(runtime, REWARDS)
        for aggregation in Aggregation:
            runtime.aggregation = aggregation
            found, batches = [], []
            for budget in (100_000, 200, 120, 1):
                with_budget(runtime, budget)
                batches.append(len(list(runtime.micro_batches(trainable(groups)))))
                found.append(gradients_after(runtime, session_of(runtime), groups))

            assert batches == sorted(set(batches)), "every budget must make more micro-batches"
            for gradients, result in found[1:]:
                assert result.loss == pytest.approx(found[0][1].loss, abs=1e-6)
                assert_same(found[0][0], gradients)


def test_shared_prompts_give_the_gradients_of_rows(runtimes, session_of, make_groups):
    found = {}
    for layout in ("shared", "rows"):
        with runtimes(layout, train={"layout": layout}) as runtime:
            assert runtime.policy.layout.share_prompts == (layout == "shared")
            groups = make_groups(runtime, REWARDS)
            found[layout], _ = gradients_after(runtime, session_of(runtime), groups)

    assert_same(found["rows"], found["shared"], tolerance=1e-5)


def test_weights_cast_once_for_all_micro_batches_give_the_bits_of_casting_for_each(
    runtimes, session_of, make_groups, monkeypatch
):
    """Also where a hook asks for log-probabilities between two micro-batches."""
    with runtimes() as runtime:
        groups = make_groups(runtime, REWARDS)
        with_budget(runtime, 120)
        bfloat16 = functools.partial(torch.autocast, "cpu", torch.bfloat16)
        monkeypatch.setattr(runtime.policy, "_autocast", bfloat16)
        asked = runtime.dispatcher.policy_loss

        def loss_that_asks(tokens, session):
            session.logps(tokens.rollouts)
            return asked(tokens, session)

        monkeypatch.setattr(runtime.dispatcher, "policy_loss", loss_that_asks)
        found = []
        for around in (contextlib.nullcontext, bfloat16):
            monkeypatch.setattr(runtime.accelerator, "autocast", around)
            found.append(gradients_after(runtime, session_of(runtime), groups))

    (each, result), (once, _) = found
    assert result.loss != 0
    for name, gradient in each.items():
        assert gradient.any(), name
        assert torch.equal(once[name], gradient), name


def test_order_of_groups_and_rollouts_does_not_change_the_update(runtimes, session_of, make_groups):
    with runtimes() as runtime:
        groups = make_groups(runtime, REWARDS)
        first, _ = gradients_after(runtime, session_of(runtime), groups)
        for group in groups:
            group.rollouts.reverse()
        second, _ = gradients_after(runtime, session_of(runtime), groups[::-1])

    assert_same(first, second)


def test_local_means_would_differ_between_micro_batches(runtimes, session_of, make_groups):
    """The negative control of the partition test: uneven micro-batches, each with its own mean."""
    with runtimes() as runtime:
        runtime.aggregation = Aggregation.TOKEN_MEAN
        groups = make_groups(runtime, REWARDS)
        whole, _ = gradients_after(runtime, session_of(runtime), groups)
        parts = [gradients_after(runtime, session_of(runtime), [group])[0] for group in groups]
    averaged = {name: sum(part[name] for part in parts) / 4 for name in whole}

    with pytest.raises(AssertionError):
        assert_same(whole, averaged)


def test_masked_rollouts_count_in_no_baseline_and_no_denominator(runtimes, session_of, make_groups):
    with runtimes() as runtime:
        groups = make_groups(runtime, [[1.0, 0.0, None, None], [0.0, None, 1.0, 0.0]])
        masked, _ = gradients_after(runtime, session_of(runtime), groups)
        for group in groups:
            group.rollouts[:] = group.valid
        alone, _ = gradients_after(runtime, session_of(runtime), groups)

    assert_same(alone, masked, tolerance=0)


def test_slots_that_are_not_trained_on_may_hold_nan(runtimes, session_of, make_groups):
    def with_given_tokens(groups, logp):
        for group in groups:
            for rollout in group.rollouts:
                given = Segment(token_ids=[5, 6, 7], is_sampled=False, logps=[logp] * 3)
                rollout.segments = [rollout.segments[0], given, rollout.segments[0]]
        return groups

    loss = {"ppo-clip": {"kl_coefficient": 0.1}}
    with runtimes(advantage=["grpo", loss]) as runtime:
        sound = with_given_tokens(make_groups(runtime, REWARDS), 0.0)
        poisoned = with_given_tokens(make_groups(runtime, REWARDS), math.nan)
        poisoned[0].rollouts[0].reward = sound[0].rollouts[0].reward = None
        poisoned[0].rollouts[0].segments[0].logps = [math.nan] * 20
        first, _ = gradients_after(runtime, session_of(runtime), sound)
        second, _ = gradients_after(runtime, session_of(runtime), poisoned)

    assert_same(first, second, tolerance=0)
    assert all(torch.isfinite(gradient).all() for gradient in second.values())


def test_ratio_is_exactly_one_on_the_first_update_at_temperature_0_6(
    runtimes, session_of, make_groups, monkeypatch
):
    ratios = []
    with runtimes(rollout={"temperature": 0.6}) as runtime:
        real = runtime.dispatcher.policy_loss

        def spy(tokens, session):
            ratios.append(torch.exp(tokens.logp_T - tokens.old_logp_T).detach())
            return real(tokens, session)

        monkeypatch.setattr(runtime.dispatcher, "policy_loss", spy)
        learn(runtime, session_of(runtime), make_groups(runtime, REWARDS))

    assert ratios
    assert all((ratio == 1.0).all() for ratio in ratios)


def test_with_several_updates_the_ratio_moves_and_starts_from_one_pass(
    runtimes, session_of, make_groups, monkeypatch
):
    ratios = []
    with runtimes(train={"passes": 2, "mini_batches": 2, "learning_rate": 1e-2}) as runtime:
        real = runtime.dispatcher.policy_loss

        def spy(tokens, session):
            ratios.append(torch.exp(tokens.logp_T - tokens.old_logp_T).detach())
            return real(tokens, session)

        monkeypatch.setattr(runtime.dispatcher, "policy_loss", spy)
        result = learn(runtime, session_of(runtime), make_groups(runtime, REWARDS))

    assert result.updates == 4
    torch.testing.assert_close(ratios[0], torch.ones_like(ratios[0]), atol=1e-5, rtol=0)
    assert (ratios[-1] - 1).abs().max() > 1e-3


def forward_calls(runtime):
    calls = []
    runtime.policy.model.model.register_forward_pre_hook(
        lambda module, arguments, keywords: calls.append(keywords["input_ids"].shape),
        with_kwargs=True,
    )
    return calls


def test_groups_without_signal_cost_no_forward_pass(runtimes, session_of, make_groups):
    with runtimes(train={"micro_batch_tokens": 1}) as runtime:
        calls = forward_calls(runtime)
        learn(runtime, session_of(runtime), make_groups(runtime, [[1.0] * 4, [0.0] * 4]))
        dead = len(calls)
        learn(runtime, session_of(runtime), make_groups(runtime, [[1.0] * 4, [0.0, 0.0, 0.0, 1.0]]))

    assert dead == 0
    assert len(calls) == 4  # one a rollout of the live group


def test_groups_without_signal_cost_nothing_with_several_updates_either(
    runtimes, session_of, make_groups
):
    with runtimes(train={"passes": 2}) as runtime:
        calls = forward_calls(runtime)
        learn(runtime, session_of(runtime), make_groups(runtime, [[1.0] * 4, [0.0] * 4]))

    assert not calls


def test_skipping_dead_groups_leaves_the_update_unchanged(
    runtimes, session_of, make_groups, monkeypatch
):
    with runtimes() as runtime:
        groups = make_groups(runtime, REWARDS)
        skipped, _ = gradients_after(runtime, session_of(runtime), groups)
        runtime.loss_acts_without_advantage = True
        calls = forward_calls(runtime)
        computed, _ = gradients_after(runtime, session_of(runtime), groups)

    assert calls
    assert_same(computed, skipped)


def test_dead_groups_feel_the_penalty_when_there_is_one(runtimes, session_of, make_groups):
    loss = {"ppo-clip": {"kl_coefficient": 0.5}}
    with runtimes(advantage=["grpo", loss]) as runtime:
        with torch.no_grad():
            for parameter in runtime.policy.model.parameters():
                parameter.mul_(1.2)
        moved, result = gradients_after(
            runtime, session_of(runtime), make_groups(runtime, [[1.0] * 4] * 2)
        )

    assert result.updates == 1
    assert max(gradient.abs().max() for gradient in moved.values()) > 0


def test_a_gradient_that_is_not_finite_is_left_out_and_counted(runtimes, session_of, make_groups):
    with runtimes(advantage=["dr-grpo"]) as runtime:
        before = copy.deepcopy(runtime.policy.model.state_dict())
        result = learn(
            runtime, session_of(runtime), make_groups(runtime, [[3e38, -3e38, 0.0, 0.0]])
        )

        assert (result.updates, result.skipped_updates) == (0, 1)
        assert_same(before, runtime.policy.model.state_dict(), tolerance=0)


def test_rollout_and_group_weights_scale_the_loss_but_no_denominator(
    runtimes, session_of, make_groups
):
    with runtimes() as runtime:
        groups = make_groups(runtime, REWARDS)
        plain, _ = gradients_after(runtime, session_of(runtime), groups)
        for group in groups:
            group.weight = 0.5
            for rollout in group.rollouts:
                rollout.loss_weight = 4.0
        weighted, _ = gradients_after(runtime, session_of(runtime), groups)

    assert_same({name: 2 * gradient for name, gradient in plain.items()}, weighted, 1e-5)


def test_completions_that_a_plugin_wrote_stand_in_line_with_sampled_ones(
    runtimes, session_of, make_groups, monkeypatch
):
    """They have no log-probabilities of an engine: the policy's own are put in their place."""
    seen = []
    with runtimes() as runtime:
        groups = make_groups(runtime, REWARDS)
        written = groups[0].rollouts[1]
        written.segments[0].logps = ()
        real = runtime.dispatcher.policy_loss

        def spy(tokens, session):
            seen.append(tokens)
            return real(tokens, session)

        monkeypatch.setattr(runtime.dispatcher, "policy_loss", spy)
        needs = property(lambda _: frozenset({Need.SAMPLER_LOGP}))
        monkeypatch.setattr(type(runtime.dispatcher), "needs", needs)
        _, result = gradients_after(runtime, session_of(runtime), groups)

    own = sampled = 0
    for tokens in seen:
        for index, rollout in enumerate(tokens.rollouts):
            of_rollout = tokens.rollout_T == index
            given = tokens.sampler_logp_T[of_rollout]
            if rollout is written:
                own += 1
                assert torch.equal(given, tokens.old_logp_T[of_rollout])
            else:
                sampled += 1
                assert (given == -1.0).all()
    assert own
    assert sampled
    assert math.isfinite(result.means()["sampler_gap"])


def test_chunked_log_probabilities_equal_whole_ones(monkeypatch):
    from rlvr_core.rl.logps import token_logps

    torch.manual_seed(0)
    head = torch.nn.Linear(16, 50, bias=False)
    token_T = torch.randint(0, 50, (37,))
    found = {}
    for chunk in (1000, 5):
        hidden_TD = torch.randn(37, 16, generator=torch.Generator().manual_seed(1))
        hidden_TD.requires_grad_()
        logp_T, entropy_T = token_logps(
            head, hidden_TD, token_T, temperature=0.7, with_entropy=True, chunk_tokens=chunk
        )
        logp_T.sum().backward()
        found[chunk] = (logp_T, entropy_T, hidden_TD.grad)

    for whole, chunked in zip(found[1000], found[5], strict=True):
        torch.testing.assert_close(chunked, whole)
    expected = (head(hidden_TD) / 0.7).log_softmax(-1)
    torch.testing.assert_close(found[5][0], expected.gather(-1, token_T[:, None])[:, 0])
    torch.testing.assert_close(found[5][1], -(expected.exp() * expected).sum(-1))


def test_mini_batch_statistics_do_not_depend_on_micro_batches(
    runtimes, session_of, make_groups, monkeypatch
):
    """A token plugin that looks at the whole mini-batch, as steer does."""
    found = []
    with runtimes() as runtime:
        for budget in (100_000, 1):
            with_budget(runtime, budget)
            needs = frozenset({Need.MINI_BATCH_STATS, Need.ENTROPY})
            monkeypatch.setattr(type(runtime.dispatcher), "needs", needs)
            seen = []

            def weigh(tokens, session, seen=seen):
                seen.append(len(tokens.logp_T))
                assert not tokens.logp_T.requires_grad
                return tokens.entropy_T / tokens.entropy_T.max()

            monkeypatch.setattr(runtime.dispatcher, "weigh_tokens", weigh)
            groups = make_groups(runtime, REWARDS)
            gradients, _ = gradients_after(runtime, session_of(runtime), groups)
            found.append((seen, gradients))

    assert found[0][0] == found[1][0]
    assert len(found[0][0]) == 1
    assert_same(found[0][1], found[1][1])


def test_policy_loss_of_a_plugin_may_carry_metrics(runtimes, session_of, make_groups, monkeypatch):
    with runtimes() as runtime:

        def loss(tokens, session):
            return PolicyLoss(
                loss_T=-tokens.logp_T, metrics={"seen": torch.ones_like(tokens.logp_T)}
            )

        monkeypatch.setattr(runtime.dispatcher, "policy_loss", loss)
        result = learn(runtime, session_of(runtime), make_groups(runtime, REWARDS))

    assert result.means()["seen"] == pytest.approx(1.0)
