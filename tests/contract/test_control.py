"""The control arm: the same run, with rewards that know nothing of the completion."""

from oracle import random_arm

from rlvr_core.train.step import collect


def without_names(manifest):
    """The manifest without what differs between any two runs."""
    kept = {key: value for key, value in manifest.items() if key not in ("created", "run")}
    kept["ended"] = {key: value for key, value in kept["ended"].items() if key != "at"}
    return kept


def test_the_manifests_of_both_arms_differ_in_the_control_alone(run):
    real = run("real", verifiers=["tiny-ifeval", "tiny-bonus"])
    control = run("control", verifiers=["tiny-ifeval", "tiny-bonus"], control="control-random")

    first, second = without_names(real.manifest), without_names(control.manifest)
    assert first.pop("control") is None
    assert second.pop("control")["plugin"] == "control-random"
    assert first == second


def test_the_control_replaces_all_of_stage_5(runtimes, session_of):
    verifiers = ["tiny-ifeval", {"tiny-bonus": {"amount": 10.0}}]
    with runtimes(verifiers=verifiers, control="control-random") as runtime:
        groups = collect(runtime, session_of(runtime)).groups
        seed = runtime.stack.seed

    rollouts = [r for group in groups for r in group.rollouts]
    assert [r.reward for r in rollouts] == [
        random_arm(seed, r.row.id, r.sample_index) for r in rollouts
    ]
    assert {r.reward for r in rollouts} == {0.0, 1.0}
    assert all(r.verdict.is_judgement for r in rollouts), "verification goes on in the control arm"


def test_the_rewards_of_the_control_do_not_depend_on_completions(runtimes, session_of):
    rewards, completions = [], []
    for name, temperature in (("cold", 0.1), ("hot", 2.0)):
        with runtimes(
            name, control="control-random", rollout={"temperature": temperature}
        ) as runtime:
            groups = collect(runtime, session_of(runtime)).groups
        rollouts = [r for group in groups for r in group.rollouts]
        rewards.append([r.reward for r in rollouts])
        completions.append([r.completion for r in rollouts])

    assert completions[0] != completions[1]
    assert rewards[0] == rewards[1]


def test_other_shapers_are_not_asked_in_the_control_arm(runtimes, session_of):
    verifiers = ["tiny-ifeval", {"tiny-bonus": {"amount": 10.0}}]
    control = {"pay": {"plugin": "tiny-bonus", "amount": 1.0}}
    with runtimes(verifiers=verifiers, control=control) as runtime:
        groups = collect(runtime, session_of(runtime)).groups

    rollouts = [r for group in groups for r in group.rollouts]
    assert [r.reward for r in rollouts] == [r.verdict.score + 1 for r in rollouts]
