"""cue-grpo and steer: advantages by kind of solution (9), token weights by entropy change (10)."""

import math

import pytest
import torch

from rlvr_core.train.step import collect, learn

CUES = {"letter": "[a-z]", "digit": "[0-9]"}
CUE = {
    "rollout": {"group_size": 16, "prompts_per_step": 3},
    "advantage": ["grpo", {"tiny-cue-grpo": {"cues": CUES, "gamma": 1.0}}],
}


@pytest.fixture
def cue_runs(runtimes, session_of, row):
    """Collect with cue-grpo and learn; return groups, plain and adjusted advantages."""
    # A character of any kind but upper-case letters: easy enough that some cues differ.
    rows = [row("train", number, "[^A-Z\ufffd]") for number in range(6)]

    def start(gamma=1.0):
        sections = {**CUE, "advantage": ["grpo", {"tiny-cue-grpo": {"cues": CUES, "gamma": gamma}}]}
        with runtimes(f"gamma-{gamma}", train_rows=rows, **sections) as runtime:
            session = session_of(runtime)
            groups = collect(runtime, session).groups
            plain = runtime.dispatcher.estimate_advantages(groups, session)
            learn(runtime, session, groups)
        return groups, plain, [[r.advantage for r in group.rollouts] for group in groups]

    return start


def test_cue_grpo_conserves_the_positive_mass_and_leaves_negatives_alone(cue_runs):
    groups, plain, adjusted = cue_runs()

    assert plain != adjusted, "some group must hold two kinds of solutions"
    for group, before, after in zip(groups, plain, adjusted, strict=True):
        assert math.fsum(a for a in after if a > 0) == pytest.approx(
            math.fsum(a for a in before if a > 0), rel=1e-12
        )
        assert math.fsum(after) == pytest.approx(0, abs=1e-9)
        for b, a, rollout in zip(before, after, group.rollouts, strict=True):
            assert a == b if rollout.reward == 0 else a > 0


def test_cue_grpo_at_gamma_0_changes_no_bit(cue_runs):
    _, plain, adjusted = cue_runs(gamma=0.0)

    assert adjusted == plain


@pytest.mark.parametrize(
    ("gamma", "common", "rare"), [(0.5, 0.8333333, 1.6666667), (1.0, 0.625, 2.5)]
)
def test_cue_weights_have_the_golden_numbers(fixture, gamma, common, rare):
    signatures = [("a",)] * 4 + [("b",)]

    weights = fixture("cue_weights")(signatures, [0.7745967] * 5, gamma)

    assert weights == pytest.approx([common] * 4 + [rare], abs=1e-6)


def test_no_cue_is_no_rarity(fixture):
    assert fixture("cue_weights")([("a",)] * 4 + [()], [1.0] * 5, 1.0) == pytest.approx([1.0] * 5)


def test_steer_sees_the_whole_mini_batch_and_its_entropies(
    runtimes, session_of, plugin_of, logps_of, gradients_after, expected_gradients, assert_same
):
    sections = {
        "advantage": ["grpo", "tiny-steer"],
        "train": {"micro_batch_tokens": 1},
        "rollout": {"temperature": 0.7},
    }
    with runtimes(**sections) as runtime:
        session = session_of(runtime)
        groups = collect(runtime, session).groups
        found = gradients_after(runtime, session, groups)
        trained = [r for group in groups for r in group.rollouts if r.advantage]
        assert len(list(runtime.micro_batches(trained))) == len(trained) > 4
        [seen] = plugin_of(runtime, "tiny-steer").seen
        changes, entropies = [], []
        for rollout in trained:
            with torch.no_grad():
                logp_T, logp_TV = logps_of(
                    runtime, runtime.policy.model, rollout, rollout.trained_under
                )
            entropy_T = -(logp_TV.exp() * logp_TV).sum(-1)
            entropies.append(entropy_T)
            # On the first update pi_old is pi: A / p * p (1 - p) (ln p + H).
            changes.append((rollout.advantage * (1 - logp_T.exp()) * (logp_T + entropy_T)).abs())
        assert list(seen.rollouts) == trained
        torch.testing.assert_close(seen.entropy_T.double(), torch.cat(entropies), atol=1e-5, rtol=0)
        change_T = torch.cat(changes)
        weight_T = 1.2 - (change_T - change_T.min()) * 0.4 / (change_T.max() - change_T.min())
        count = sum(len(group.rollouts) for group in groups)
        coefficients = [
            (rollout, weight * rollout.advantage / (count * rollout.length))
            for rollout, weight in zip(
                trained, weight_T.split([r.length for r in trained]), strict=True
            )
        ]
        assert_same(found, expected_gradients(runtime, coefficients))


def test_steer_weights_have_the_golden_numbers(fixture):
    change_T = torch.tensor([0.133543, 0.646095, 1.350690])

    weight_T = fixture("steer_weights")(change_T, 0.8, 1.2)

    assert weight_T.tolist() == pytest.approx([1.2, 1.0315556, 0.8], abs=1e-6)
    assert fixture("steer_weights")(torch.zeros(3), 0.8, 1.2).tolist() == pytest.approx([1.0] * 3)


def test_entropies_are_not_computed_when_nobody_needs_them(runtimes, session_of, monkeypatch):
    seen = []
    with runtimes() as runtime:
        real = runtime.dispatcher.policy_loss

        def spy(tokens, session):
            seen.append(tokens)
            return real(tokens, session)

        monkeypatch.setattr(runtime.dispatcher, "policy_loss", spy)
        session = session_of(runtime)
        learn(runtime, session, collect(runtime, session).groups)

    assert seen
    assert all(t.entropy_T is None and t.sampler_logp_T is None for t in seen)
