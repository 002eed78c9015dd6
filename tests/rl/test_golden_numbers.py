"""The golden numbers of the formulas, and the oracle, in float32 and float64."""

import math

import numpy as np
import pytest
import torch
from oracle import advantages, aggregate, kl, ppo_objective

from rlvr_core.api import Aggregation
from rlvr_core.rl import losses
from rlvr_core.rl.advantages import centred, standardised
from rlvr_core.rl.aggregation import BatchCounts, token_scales

DTYPES = [(torch.float64, 1e-6), (torch.float32, 1e-4)]


@pytest.mark.parametrize(
    ("ddof", "expected"),
    [(0, [1.7320508, -0.5773503, -0.5773503, -0.5773503]), (1, [1.5, -0.5, -0.5, -0.5])],
)
def test_grpo_advantages_of_one_right_answer_in_four(ddof, expected):
    found = standardised([1.0, 0.0, 0.0, 0.0], ddof=ddof, epsilon=1e-12)

    assert found == pytest.approx(expected, abs=1e-6)


def test_both_conventions_of_the_standard_deviation_differ_by_a_constant_factor():
    rewards = [1.0, 0.0, 0.5, 0.25, 0.0]
    population = standardised(rewards, ddof=0, epsilon=1e-12)
    sample = standardised(rewards, ddof=1, epsilon=1e-12)

    ratios = [a / b for a, b in zip(population, sample, strict=True)]

    assert ratios == pytest.approx([math.sqrt(5 / 4)] * 5)


def test_dr_grpo_only_centres():
    assert centred([1.0, 0.0, 0.0, 0.0]) == [0.75, -0.25, -0.25, -0.25]


@pytest.mark.parametrize("reward", [0.1, 0.35, 1 / 3, 1e6 + 0.1])
@pytest.mark.parametrize("size", [2, 3, 8])
def test_equal_rewards_give_exactly_zero(reward, size):
    assert standardised([reward] * size) == [0.0] * size
    assert centred([reward] * size) == [0.0] * size


def test_advantages_agree_with_the_oracle_on_random_groups():
    generator = np.random.default_rng(0)
    for size in (2, 3, 8, 17):
        rewards = generator.normal(size=size).tolist()

        assert standardised(rewards, epsilon=1e-6) == pytest.approx(
            advantages(rewards, epsilon=1e-6), abs=1e-9
        )
        assert sum(standardised(rewards)) == pytest.approx(0, abs=1e-9)


def test_advantages_do_not_change_with_the_scale_and_the_place_of_rewards():
    rewards = [0.0, 1.0, 0.25, 0.5]
    moved = [3.0 * reward - 7.0 for reward in rewards]

    assert standardised(moved, epsilon=1e-12) == pytest.approx(standardised(rewards, epsilon=1e-12))


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize(
    ("ratio", "advantage", "objective", "slope"),
    [(1.5, 1.0, 1.2, 0.0), (0.5, 1.0, 0.5, 1.0), (1.5, -1.0, -1.5, -1.0), (0.5, -1.0, -0.8, 0.0)],
)
def test_clipped_objective_and_its_slope(dtype, tolerance, ratio, advantage, objective, slope):
    ratio_T = torch.tensor([ratio], dtype=dtype, requires_grad=True)

    found_T = losses.ppo_objective(ratio_T, torch.tensor([advantage], dtype=dtype))
    found_T.sum().backward()

    assert found_T.item() == pytest.approx(objective, abs=tolerance)
    assert ratio_T.grad.item() == pytest.approx(slope, abs=tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
def test_dual_clip_floors_a_negative_advantage(dtype, tolerance):
    ratio_T = torch.tensor([5.0], dtype=dtype, requires_grad=True)

    found_T = losses.ppo_objective(ratio_T, -torch.ones(1, dtype=dtype), dual_clip=3.0)
    found_T.sum().backward()

    assert found_T.item() == pytest.approx(-3.0, abs=tolerance)
    assert ratio_T.grad.item() == 0.0


@pytest.mark.parametrize("dual", [None, 3.0])
def test_clipped_objective_agrees_with_the_oracle(dual):
    generator = np.random.default_rng(1)
    ratio, advantage = generator.uniform(0.1, 6, 500), generator.normal(size=500)

    found_T = losses.ppo_objective(
        torch.tensor(ratio), torch.tensor(advantage), clip_low=0.2, clip_high=0.28, dual_clip=dual
    )

    expected = ppo_objective(ratio, advantage, 0.2, 0.28, dual)
    np.testing.assert_allclose(found_T.numpy(), expected, atol=1e-12)


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize(
    ("estimator", "expected", "expectation"),
    [
        ("k1", [0.693147, -0.405465], 0.143841),
        ("k2", [0.240227, 0.082201], 0.161214),
        ("k3", [0.193147, 0.094535], 0.143841),
    ],
)
def test_kl_estimators_on_two_actions(dtype, tolerance, estimator, expected, expectation):
    policy = torch.tensor([0.5, 0.5], dtype=dtype)
    reference = torch.tensor([0.25, 0.75], dtype=dtype)

    found = losses.kl_estimate(policy.log(), reference.log(), estimator)

    assert found.tolist() == pytest.approx(expected, abs=max(tolerance, 1e-6))
    assert (policy * found).sum().item() == pytest.approx(expectation, abs=max(tolerance, 1e-6))
    np.testing.assert_allclose(found, kl(policy.log(), reference.log(), estimator), atol=1e-6)


@pytest.mark.parametrize(("estimator", "expected"), [("k1", 0.0), ("k2", 0.274653), ("k3", 0.25)])
def test_expected_gradient_of_each_kl_estimator_as_a_loss(estimator, expected):
    logits = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    reference_logp = torch.tensor([0.25, 0.75], dtype=torch.float64).log()
    logp = logits.log_softmax(0)

    # The samples' distribution is a constant: the gradient flows through the loss alone.
    expectation = logp.exp().detach() * losses.kl_estimate(logp, reference_logp, estimator)
    expectation.sum().backward()

    assert logits.grad[0].item() == pytest.approx(expected, abs=1e-6)


def test_k3_of_a_tiny_difference_is_exact_in_float32():
    found = losses.kl_estimate(torch.tensor([0.0]), torch.tensor([-1e-4]), "k3")

    assert found.item() == pytest.approx(4.99983e-9, rel=1e-3)


LENGTHS, LOSSES = [2, 8], [-1.0, 1.0]


@pytest.mark.parametrize(
    ("aggregation", "expected", "weights"),
    [
        (Aggregation.SEQUENCE_MEAN, 0.0, [0.25, 0.0625]),
        (Aggregation.TOKEN_MEAN, 0.6, [0.1, 0.1]),
        (Aggregation.CONSTANT_LENGTH, 0.3, [0.05, 0.05]),
        (Aggregation.SEQUENCE_SUM, 3.0, [0.5, 0.5]),
    ],
)
def test_aggregations_of_a_short_and_a_long_rollout(aggregation, expected, weights):
    counts = BatchCounts(tokens=10, rollouts=2, max_completion_tokens=10)

    scales = token_scales(aggregation, LENGTHS, counts)

    assert scales == pytest.approx(weights)
    total = sum(s * n * x for s, n, x in zip(scales, LENGTHS, LOSSES, strict=True))
    assert total == pytest.approx(expected)
    padded = np.zeros((2, 13))
    mask = np.zeros((2, 13))
    for row, (length, loss) in enumerate(zip(LENGTHS, LOSSES, strict=True)):
        padded[row, :length], mask[row, :length] = loss, 1
    assert aggregate(padded, mask, aggregation.value, 10) == pytest.approx(expected)
