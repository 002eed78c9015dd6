from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_core.evaluate.statistics import bootstrap_mean, mcnemar, paired_difference, wilson


@pytest.mark.parametrize(
    ("passed", "total", "low", "high"),
    [
        # Printed in the design's section on human audits and on intervals.
        (80, 100, 0.7112, 0.8666),
        (95, 100, 0.8882, 0.9785),
        (0, 150, 0.0, 0.0250),
        (150, 150, 0.9750, 1.0),
        (1, 1, 0.2065, 1.0),
    ],
)
def test_wilson_gives_the_published_intervals(passed, total, low, high):
    assert wilson(passed, total) == pytest.approx((low, high), abs=5e-5)


def test_wilson_knows_nothing_without_trials_and_refuses_impossible_counts():
    assert wilson(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="between 0 and total"):
        wilson(3, 2)


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_share_and_stays_in_range(counts):
    passed, total = counts
    low, high = wilson(passed, total)
    assert 0 <= low <= passed / total <= high <= 1


@pytest.mark.parametrize(
    ("gained", "lost", "p_value"),
    [(0, 0, 1.0), (5, 5, 1.0), (6, 0, 2 / 64), (0, 6, 2 / 64), (10, 2, 2 * 79 / 4096)],
)
def test_mcnemar_is_the_exact_binomial_test(gained, lost, p_value):
    assert mcnemar(gained, lost) == pytest.approx(p_value, rel=1e-12)


@given(st.integers(0, 9), st.integers(0, 9))
def test_mcnemar_equals_counting_every_outcome(gained, lost):
    total = gained + lost
    at_least_as_far = sum(
        abs(2 * sum(coins) - total) >= abs(gained - lost)
        for coins in itertools.product((0, 1), repeat=min(total, 12))
    )
    if total <= 12:
        assert mcnemar(gained, lost) == pytest.approx(at_least_as_far / 2**total)


def test_a_large_paired_gain_is_separated_and_no_change_is_not():
    before = [0.0] * 160 + [1.0] * 40
    after = [0.0] * 60 + [1.0] * 140
    gain = paired_difference(before, after)
    assert gain.difference == pytest.approx(0.5)
    assert (gain.gained, gain.lost, gain.prompts) == (100, 0, 200)
    assert gain.separated
    assert gain.low > 0.4
    same = paired_difference(before, before)
    assert not same.separated
    assert (same.difference, same.p_value) == (0.0, 1.0)
    assert same.resolvable > 0


def test_a_paired_loss_is_separated_downwards():
    loss = paired_difference([1.0] * 50, [0.0] * 20 + [1.0] * 30)
    assert loss.separated
    assert loss.high < 0


def test_masked_prompts_are_left_out_and_none_left_means_no_result():
    paired = paired_difference([0.0, None, 1.0], [1.0, 1.0, None])
    assert (paired.prompts, paired.difference) == (1, 1.0)
    assert paired_difference([None], [1.0]) is None
    with pytest.raises(ValueError, match="argument"):
        paired_difference([0.0], [0.0, 1.0])


def test_the_bootstrap_is_reproducible_and_agrees_with_the_normal_interval():
    values = [1.0] * 30 + [0.0] * 150 + [-1.0] * 20
    assert bootstrap_mean(values) == bootstrap_mean(values)
    low, high = bootstrap_mean(values)
    half = 1.96 * ((50 / 200 - 0.05**2) / 200) ** 0.5
    assert (low, high) == pytest.approx((0.05 - half, 0.05 + half), abs=0.01)


def test_the_resolvable_difference_matches_the_design_table():
    # 306, 620 and 933 prompts show 5 points at 10, 20 and 30 % discordant pairs.
    for prompts, share in ((306, 0.1), (620, 0.2), (933, 0.3)):
        changed = round(prompts * share)
        after = [1.0] * (changed // 2) + [0.0] * (prompts - changed // 2)
        before = [0.0] * (changed // 2) + [1.0] * (changed - changed // 2)
        before += [0.0] * (prompts - changed)
        paired = paired_difference(before, after)
        assert paired.resolvable == pytest.approx(0.05, abs=1e-3)
