"""From rewards to an update: what was scaled, counted or masked wrongly in other trainers."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import stacks
import torch
from oracle import advantages, kl

from rlvr_core.api import Aggregation, FinishReason, Group, Rollout, Row, Segment, TokenBatch
from rlvr_core.api.errors import StackError
from rlvr_core.builtin.estimators import DrGrpo, Grpo, GrpoConfig
from rlvr_core.builtin.ppo_clip import PpoClip, PpoClipConfig
from rlvr_core.monitors.dead_groups import DeadGroups
from rlvr_core.train.build import load_model, open_runtime
from rlvr_core.train.prepare import prepare
from rlvr_core.train.step import collect, learn, trainable
from rlvr_core.train.update import update

from .conftest import write_faulty_stack

REWARDS = [[1.0, 0.0, 0.0, 0.5], [0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0], [1.0, 0.25, 0.0, 0.0]]


@pytest.fixture(scope="module")
def open_one(tmp_path_factory, tiny_model):
    """Return a context manager that opens the runtime of a stack."""
    folder = tmp_path_factory.mktemp("learning")

    def open_stack(name="stack", **sections):
        return stacks.open_runtime_of(write_faulty_stack(folder / name, tiny_model, **sections))

    return open_stack


def groups_of(*rewards):
    """Return groups without tokens, for estimators."""
    groups = []
    for number, of_group in enumerate(rewards):
        row = Row(id=str(number), prompt="", verifier="odd", ground_truth={})
        rollouts = [
            Rollout(
                row=row,
                sample_index=index,
                completion="",
                segments=[Segment(token_ids=[1])],
                finish_reason=FinishReason.STOP,
                weights_version=0,
                sampled_under="",
                trained_under="",
                reward=reward,
            )
            for index, reward in enumerate(of_group)
        ]
        groups.append(Group(row=row, rollouts=rollouts))
    return groups


ESTIMATORS = {
    "grpo": Grpo(),
    "grpo-population": Grpo(GrpoConfig(ddof=0)),
    "grpo-floor": Grpo(GrpoConfig(std_floor=0.3)),
    "grpo-epsilon": Grpo(GrpoConfig(epsilon=0.5)),
    "grpo-centred": Grpo(GrpoConfig(scale="none")),
    "dr-grpo": DrGrpo(),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_scaling_of_advantages_is_the_one_that_was_asked_for(name):
    rewards = [1.0, 0.0, 0.0, 0.5]
    centred = np.array(rewards) - np.mean(rewards)
    expected = {
        "grpo": advantages(rewards, epsilon=1e-4),
        "grpo-population": advantages(rewards, ddof=0, epsilon=1e-4),
        "grpo-floor": centred / (max(np.std(rewards, ddof=1), 0.3) + 1e-4),
        "grpo-epsilon": centred / (np.std(rewards, ddof=1) + 0.5),
        "grpo-centred": centred,
        "dr-grpo": centred,
    }[name]

    [found] = ESTIMATORS[name].rlvr_estimate_advantages(groups_of(rewards))

    assert found == pytest.approx(list(expected), abs=1e-12)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_one_reward_that_differs_and_rounding_residue_give_bounded_advantages(name):
    residue = [0.95] * 7 + [0.95 + 1e-9]
    barely = [0.95] * 7 + [0.95 + 1e-6]

    found = ESTIMATORS[name].rlvr_estimate_advantages(
        groups_of([0.0] + [0.95] * 7, residue, barely, [0.1] * 3 + [0.3 - 0.2])
    )

    assert all(abs(one) < 3 for one in found[0])
    assert sum(found[0]) == pytest.approx(0, abs=1e-9)
    assert found[1] == [0.0] * 8
    assert all(abs(one) < 0.05 for one in found[2])
    assert found[3] == [0.0] * 4


@pytest.mark.parametrize("name", ESTIMATORS)
def test_groups_of_uneven_size_are_compared_within_themselves(name):
    whole = [1.0, 0.0, 0.0, 0.5]

    found = ESTIMATORS[name].rlvr_estimate_advantages(
        groups_of(whole, [1.0, None, 0.0], [None, 1.0, None], [None, None])
    )

    [alone] = ESTIMATORS[name].rlvr_estimate_advantages(groups_of(whole))
    [two] = ESTIMATORS[name].rlvr_estimate_advantages(groups_of([1.0, 0.0]))
    assert found[0] == alone
    assert found[1] == [two[0], 0.0, two[1]]
    assert found[2:] == [[0.0] * 3, [0.0] * 2]


def tokens_with(log_ratio, advantage, reference=None):
    """Return a batch of one rollout whose tokens have these log-ratios and advantages."""
    log_ratio_T = torch.tensor(log_ratio)
    logp_T = torch.full_like(log_ratio_T, -1.0).requires_grad_()
    return TokenBatch(
        rollouts=[],
        rollout_T=torch.zeros(len(log_ratio), dtype=torch.long),
        logp_T=logp_T,
        old_logp_T=logp_T.detach() - log_ratio_T,
        advantage_T=torch.tensor(advantage),
        reference_logp_T=None if reference is None else logp_T.detach() + torch.tensor(reference),
    )


@pytest.mark.parametrize("log_ratio", [90.0, -90.0, 300.0])
@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_one_token_with_a_log_ratio_of_90_leaves_loss_and_gradient_finite(log_ratio, advantage):
    plugin = PpoClip(PpoClipConfig(kl_coefficient=0.1))
    tokens = tokens_with([log_ratio, 0.1], [advantage, 1.0], reference=[log_ratio, 0.0])

    loss_T = plugin.rlvr_policy_loss(tokens).loss_T
    loss_T.sum().backward()

    assert loss_T.isfinite().all()
    assert tokens.logp_T.grad.isfinite().all()
    assert tokens.logp_T.grad[1] != 0, "the other token is still learnt from"


CHANGED = {
    "clip_low": 0.05,
    "clip_high": 0.5,
    "dual_clip": 1.5,
    "kl_coefficient": 0.3,
    "kl_estimator": "k2",
}
"""Every setting of the loss but its aggregation, away from its default."""


@pytest.mark.parametrize("key", CHANGED)
def test_every_setting_of_the_loss_changes_the_loss(key):
    assert {*CHANGED, "aggregation"} == set(PpoClipConfig.model_fields)
    base = {"kl_coefficient": 0.1, "kl_estimator": "k3"}
    found = []
    for settings in (base, {**base, key: CHANGED[key]}):
        tokens = tokens_with([0.3, -0.1, 1.5, -0.4], [1.0, -1.0, -1.0, -1.0], [0.5] * 4)
        found.append(PpoClip(PpoClipConfig(**settings)).rlvr_policy_loss(tokens).loss_T.sum())

    assert abs(found[0] - found[1]) > 1e-3


def test_every_aggregation_makes_an_update_of_its_own(open_one):
    with open_one() as runtime:
        norms = set()
        for aggregation in Aggregation:
            runtime.aggregation = aggregation
            groups = stacks.made_up_groups(runtime, REWARDS)
            _, result = stacks.gradients_after(runtime, stacks.new_session(runtime), groups)
            norms.add(round(result.grad_norm, 6))

    assert len(norms) == len(Aggregation)


LOSSES = {
    "core's own": [],
    "a user's": ["grpo", "odd-loss"],
    "with a penalty": ["grpo", {"ppo-clip": {"kl_coefficient": 0.2, "dual_clip": 3.0}}],
}


@pytest.fixture(scope="module")
def updates(open_one):
    """Gradients and results of each loss, for micro-batches of several sizes."""
    found = {}
    for name, advantage in LOSSES.items():
        with open_one(name, advantage=advantage) as runtime:
            if runtime.reference is not None:
                with torch.no_grad():
                    for parameter in runtime.policy.model.parameters():
                        parameter.mul_(1.1)
            groups = stacks.made_up_groups(runtime, REWARDS)
            for budget in (100_000, 200, 1):
                stacks.with_settings(runtime, "train", micro_batch_tokens=budget)
                session = stacks.new_session(runtime)
                found[name, budget] = stacks.gradients_after(runtime, session, groups)
    return found


def assert_same(first, second, tolerance=1e-6):
    for name, gradient in first.items():
        torch.testing.assert_close(second[name], gradient, atol=tolerance, rtol=0, msg=name)


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_is_the_same_for_every_split_into_micro_batches(updates, name):
    whole, first = updates[name, 100_000]
    assert any(gradient.abs().max() > 1e-3 for gradient in whole.values())

    for budget in (200, 1):
        gradients, result = updates[name, budget]
        assert_same(whole, gradients)
        assert result.loss == pytest.approx(first.loss, abs=1e-6)


def test_a_users_copy_of_the_loss_makes_the_very_same_update(updates):
    own, users = updates["core's own", 100_000], updates["a user's", 100_000]

    assert_same(own[0], users[0], tolerance=0)
    assert own[1].loss == users[1].loss


def test_the_divergence_on_record_is_the_mean_over_all_tokens(updates):
    """Not that of the last micro-batch, and not scaled by their number."""
    means = [updates["with a penalty", budget][1].means()["kl"] for budget in (100_000, 200, 1)]

    assert means[0] > 1e-4
    assert means[1:] == pytest.approx(means[:1] * 2, rel=1e-4)


def test_the_divergence_on_record_is_that_of_the_oracle(open_one):
    with open_one("oracle", advantage=LOSSES["with a penalty"]) as runtime:
        with torch.no_grad():
            for parameter in runtime.policy.model.parameters():
                parameter.mul_(1.1)
        groups = stacks.made_up_groups(runtime, REWARDS)
        rollouts = trainable(groups)
        own = runtime.policy_logps(rollouts)
        policy, runtime.policy = runtime.policy, runtime.reference
        reference = runtime.policy_logps(rollouts)
        runtime.policy = policy
        _, result = stacks.gradients_after(runtime, stacks.new_session(runtime), groups)

    each = [
        kl(own[id(rollout)].double().numpy(), reference[id(rollout)].double().numpy(), "k3")
        for rollout in rollouts
    ]
    assert result.means()["kl"] == pytest.approx(np.concatenate(each).mean(), rel=1e-3)


def test_a_plugin_may_not_log_under_a_name_of_cores(run):
    from rlvr_core.api.errors import PluginError

    with pytest.raises(PluginError) as refused:
        run(advantage=["grpo", {"odd-loss": {"metric": "reward_mean"}}])

    assert "plugin 'odd-loss': rlvr_policy_loss is at fault" in str(refused.value)
    assert "got 'reward_mean', which is core's" in str(refused.value)


@pytest.fixture(scope="module")
def collected(open_one):
    """The groups of one step, really sampled, and the micro-batches that are made of them."""
    with open_one("collected") as runtime:
        groups = collect(runtime, stacks.new_session(runtime)).groups
        batches = list(runtime.micro_batches(trainable(groups)))
        again = {
            id(rollout): tuple(
                runtime.tokenizer._tokenizer.encode(rollout.completion, add_special_tokens=False)
            )
            for rollout in trainable(groups)
        }
        yield groups, batches, again


def test_exactly_the_sampled_tokens_are_trained_on(collected):
    _, batches, _ = collected

    for batch in batches:
        sampled = [ids for rollout in batch.rollouts for ids in rollout.segments[0].token_ids]
        assert batch.token_T.tolist() == sampled
        flat = batch.input_ids_BS.flatten()
        follows = [rollout.segments[0].token_ids[:-1] for rollout in batch.rollouts]
        # All but a completion's first token are predicted from the token before it.
        starts = np.cumsum([0, *(rollout.length for rollout in batch.rollouts)])
        for rollout, start in zip(follows, starts, strict=False):
            predictors = batch.predictor_T[start + 1 : start + 1 + len(rollout)]
            assert flat[predictors].tolist() == list(rollout)


def test_sampled_ids_are_never_made_from_text_again(collected):
    groups, _, again = collected
    rollouts = trainable(groups)

    differing = [r for r in rollouts if again[id(r)] != tuple(r.segments[0].token_ids)]

    assert differing, "a byte that is no text comes back as another token"
    trained = [ids for batch in collected[1] for ids in batch.token_T.tolist()]
    assert trained == [ids for rollout in rollouts for ids in rollout.segments[0].token_ids]


def test_a_constant_noise_in_log_probabilities_clips_no_token_of_a_long_completion(open_one):
    """Ratios are taken token by token: 500 times 0.02 does not add up."""
    with open_one("noise", rollout={"max_completion_tokens": 450}) as runtime:
        groups = stacks.made_up_groups(runtime, REWARDS[:2], longest=450)
        rollouts = trainable(groups)
        assert max(rollout.length for rollout in rollouts) > 200
        noisy = {key: logp + 0.02 for key, logp in runtime.policy_logps(rollouts).items()}
        session = stacks.new_session(runtime)
        stacks.gradients_after(runtime, session, groups)  # gives the rollouts their advantages
        result = update(runtime, session, groups, noisy)

    means = result.means()
    assert (means["clip_low"], means["clip_high"]) == (0.0, 0.0)
    assert means["grad_norm"] > 1e-4


def test_clipping_that_leaves_nothing_to_learn_is_reported_and_warned_of(run):
    finished = run(
        advantage=["grpo", {"ppo-clip": {"clip_low": 1e-6, "clip_high": 1e-6}}],
        train={"steps": 2, "passes": 8, "learning_rate": 1e-2},
    )

    shares = [record["clip_low"] + record["clip_high"] for record in finished.metrics]
    assert all(share > 0.5 for share in shares)
    [said] = [reason for reason in finished.reasons() if "were clipped" in reason]
    assert said.startswith(f"step 1: {shares[0]:.0%} of the tokens were clipped and taught nothing")


def test_a_warning_of_clipping_survives_a_resume():
    first, second = DeadGroups(), DeadGroups()
    run = SimpleNamespace(total_steps=9)
    event = SimpleNamespace(
        run=run, step=1, groups=[], metrics={"clip_low": 0.9, "masked": 0, "rollouts": 0}
    )
    [said] = first.rlvr_step_end(event)
    second.load_state(first.state())

    assert "90% of the tokens were clipped" in said.reason
    assert second.rlvr_step_end(event) == []


def test_thresholds_over_a_whole_batch_are_refused_where_processes_share_it(write_stack):
    prepared = prepare(write_stack(advantage=["grpo", "odd-weights"]))
    model = prepared.resolved.stack.model
    two = SimpleNamespace(num_processes=2)

    with (
        pytest.raises(StackError, match="odd-weights must see whole mini-batches") as refused,
        open_runtime(prepared.resolved, load_model(model), [], two, model),
    ):
        pass

    assert refused.value.code == "RLVR-S104"


def test_updates_keep_no_graph_and_no_tensor_alive(open_one):
    import gc

    def tensors():
        gc.collect()
        return sum(issubclass(type(one), torch.Tensor) for one in gc.get_objects())

    with open_one("memory", train={"micro_batch_tokens": 200}) as runtime:
        counts = []
        for step in range(1, 13):
            groups = stacks.made_up_groups(runtime, REWARDS, seed=step)
            result = learn(runtime, stacks.new_session(runtime, step), groups)
            assert math.isfinite(result.loss)
            del groups
            if step in (4, 12):
                counts.append(tensors())

    assert counts[0] == counts[1]
