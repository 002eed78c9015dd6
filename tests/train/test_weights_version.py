"""Every rollout says which weights sampled it, and rollouts of other weights are refused."""

import pytest

from rlvr_core.api.errors import RunEndedError
from rlvr_core.train.session import StepSession
from rlvr_core.train.step import collect, learn


def session_of(runtime, version):
    return StepSession(runtime=runtime, step=version + 1, weights_version=version, prompts_drawn=0)


def updated(runtime, make_groups, version):
    """Make one step's updates from made-up groups with signal, and return how many they were."""
    rewards = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0]]
    return learn(runtime, session_of(runtime, version), make_groups(runtime, rewards)).updates


def versions(groups):
    return {rollout.weights_version for group in groups for rollout in group.rollouts}


def test_versions_rise_with_every_update(runtimes, make_groups):
    with runtimes(train={"mini_batches": 2}) as runtime:
        version = 0
        for expected in (2, 4, 6):
            assert versions(collect(runtime, session_of(runtime, version)).groups) == {version}
            version += updated(runtime, make_groups, version)
            assert version == expected


def test_a_step_without_an_update_keeps_the_version(runtimes, make_groups):
    with runtimes() as runtime:
        dead = make_groups(runtime, [[0.0] * 4] * 2)

        assert learn(runtime, session_of(runtime, 0), dead).updates == 0

        assert versions(collect(runtime, session_of(runtime, 0)).groups) == {0}


def test_rollouts_of_stale_weights_are_refused(runtimes, make_groups, monkeypatch):
    with runtimes() as runtime:
        monkeypatch.setattr(type(runtime.engine), "push", lambda self, model, version: None)
        assert updated(runtime, make_groups, 0) == 1

        with pytest.raises(RunEndedError) as refused:
            collect(runtime, session_of(runtime, 1))

    assert refused.value.code == "RLVR-T107"
    assert refused.value.exit_code == 4
    assert "version 0, and the policy has version 1" in str(refused.value)


def test_an_engine_takes_the_weights_of_no_other_model(runtimes):
    with (
        runtimes("one") as runtime,
        runtimes("another") as other,
        pytest.raises(ValueError, match="the model it was made with"),
    ):
        runtime.engine.push(other.policy.model, 1)


def test_the_gap_between_engine_and_policy_is_rounding_at_every_temperature(runtimes, make_groups):
    """A gap of more would be an engine with stale weights, or one that forgot the temperature."""
    for temperature in (0.6, 1.0):
        with runtimes(rollout={"temperature": temperature}) as runtime:
            version = 0
            for _ in range(2):
                groups = collect(runtime, session_of(runtime, version)).groups
                for group in groups:
                    for number, rollout in enumerate(group.rollouts):
                        rollout.reward = float(number % 2)
                result = learn(runtime, session_of(runtime, version), groups)
                version += result.updates

                assert result.means()["sampler_gap"] < 1e-5

            wrong = make_groups(runtime, [[1.0, 0.0, 0.0, 0.0]])  # they all note -1.0
            result = learn(runtime, session_of(runtime, version), wrong)
            assert result.means()["sampler_gap"] > 0.1
