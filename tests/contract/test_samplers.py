"""vigor and rstg: ragged groups with prompt weights (2), a teacher on dead groups (4 and 9)."""

import pytest
import torch

from rlvr_core.api import PluginError
from rlvr_core.testing.tiny_model import make_tiny_model
from rlvr_core.train.step import collect

VIGOR = {"samplers": [{"tiny-vigor": {"start": 2, "step": 2, "most": 8, "mean": 4}}]}


def test_vigor_samples_more_where_the_variance_is(runtimes, session_of, fixture):
    variance = fixture("posterior_variance")
    with runtimes(**VIGOR) as runtime:
        groups = collect(runtime, session_of(runtime)).groups

    sizes = [len(group.rollouts) for group in groups]
    assert sum(sizes) == 4 * 4
    assert len(set(sizes)) > 1, "the groups must be ragged for this test to say anything"
    assert all(2 <= size <= 8 for size in sizes)
    for group in groups:
        assert [r.sample_index for r in group.rollouts] == list(range(len(group.rollouts)))
        assert all(r.verdict is not None and r.reward == r.verdict.score for r in group.rollouts)
    first_two = [sum(r.reward for r in group.rollouts[:2]) for group in groups]
    most = max(range(4), key=lambda place: sizes[place])
    assert variance(first_two[most], 2) == max(variance(sum_, 2) for sum_ in first_two)


def test_vigor_posterior_has_the_golden_numbers(fixture):
    variance = fixture("posterior_variance")

    found = [variance(s, n) for s, n in [(0, 4), (1, 4), (2, 4), (0, 8), (2, 8), (4, 8)]]

    assert found == pytest.approx(
        [0.119048, 0.190476, 0.214286, 0.081818, 0.190909, 0.227273], abs=1e-6
    )


def test_vigor_gives_every_prompt_the_same_mass_in_the_loss(
    runtimes, session_of, gradients_after, expected_gradients, assert_same
):
    with runtimes(**VIGOR) as runtime:
        session = session_of(runtime)
        groups = collect(runtime, session).groups
        found = gradients_after(runtime, session, groups)
        coefficients = [
            (
                rollout,
                [rollout.advantage / (len(groups) * len(group.rollouts) * rollout.length)]
                * rollout.length,
            )
            for group in groups
            for rollout in group.rollouts
        ]
        assert_same(found, expected_gradients(runtime, coefficients))

        for group in groups:
            group.weight = 1.0
        unweighted = gradients_after(runtime, session, groups)
        with pytest.raises(AssertionError):
            assert_same(unweighted, expected_gradients(runtime, coefficients))


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    """Another model with the same tokenizer."""
    return make_tiny_model(tmp_path_factory.mktemp("teacher") / "teacher", seed=7)


def rstg(teacher, row, **config):
    """A stack in which two prompts of four are hopeless and every second one has a teacher."""
    rows = [
        row("train", number, "[a-z]" if number % 2 else "Never", teacher_pass_rate=number % 4 / 2)
        for number in range(4)
    ]
    settings = {"teacher": str(teacher), "top_share": 1.0, **config}
    return {"train_rows": rows, "samplers": [{"tiny-rstg": settings}]}


def test_rstg_gives_tokens_of_negative_groups_the_teachers_log_ratio(
    runtimes, session_of, row, teacher, logps_of, gradients_after, expected_gradients, assert_same
):
    from transformers import AutoModelForCausalLM

    stack = rstg(teacher, row) | {"rollout": {"temperature": 0.7}}
    with runtimes(**stack) as runtime:
        session = session_of(runtime)
        groups = collect(runtime, session).groups
        negative = [group for group in groups if group.row.id == "train-2"]
        without_teacher = [group for group in groups if group.row.id == "train-0"]
        found = gradients_after(runtime, session, groups)
        model = AutoModelForCausalLM.from_pretrained(teacher, dtype=torch.float64)
        student = runtime.policy.model

        coefficients, count = [], sum(len(group.rollouts) for group in groups)
        for group in groups:
            for rollout in group.rollouts:
                advantage = rollout.advantage
                if group in negative:
                    with torch.no_grad():
                        taught, _ = logps_of(runtime, model, rollout, rollout.trained_under)
                        own, _ = logps_of(runtime, student, rollout, rollout.trained_under)
                    expected = 0.5 * (taught - own).clamp(-1.0, 2.0)
                    torch.testing.assert_close(
                        torch.tensor(advantage, dtype=torch.float64), expected, atol=1e-5, rtol=0
                    )
                else:
                    assert isinstance(advantage, float), "mixed groups must be left alone"
                coefficients.append(
                    (rollout, torch.as_tensor(advantage) / (count * rollout.length))
                )
        assert_same(
            found, expected_gradients(runtime, [(r, c.expand(r.length)) for r, c in coefficients])
        )

    assert negative
    assert all(r.reward == 0 for r in negative[0].rollouts)
    assert all(r.advantage == 0 for r in without_teacher[0].rollouts)


def test_rstg_with_the_policy_as_teacher_changes_nothing(
    runtimes, session_of, row, tiny_model, plugin_of
):
    with runtimes(**rstg(tiny_model, row)) as runtime:
        collect(runtime, session_of(runtime))
        ratios = plugin_of(runtime, "tiny-rstg").ratios

    assert len(ratios) == 4
    assert max(abs(a) for of_rollout in ratios.values() for a in of_rollout) < 1e-5


def test_rstg_fades_with_the_steps(runtimes, session_of, row, teacher):
    largest = []
    with runtimes(
        **rstg(teacher, row, anneal_steps=2, clip_negative=0.1, clip_positive=0.1)
    ) as runtime:
        for step in (1, 2, 3):
            session = session_of(runtime, step)
            groups = collect(runtime, session).groups
            advantages = runtime.dispatcher.adjust_advantages(
                groups, runtime.dispatcher.estimate_advantages(groups, session), session
            )
            [line] = [a for g, a in zip(groups, advantages, strict=True) if g.row.id == "train-2"]
            largest.append(max(abs(a) for of_rollout in line for a in of_rollout))

    assert largest == pytest.approx([0.05, 0.025, 0.0])


def test_rstg_refuses_a_teacher_with_another_tokenizer(
    runtimes, session_of, row, tmp_path, teacher
):
    import json
    import shutil

    other = shutil.copytree(teacher, tmp_path / "other")
    tokenizer = json.loads((other / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    names = [name for name in vocabulary if not name.startswith("<")]
    for name, shifted in zip(names, [*names[1:], names[0]], strict=True):
        tokenizer["model"]["vocab"][name] = 3 + (names.index(shifted))
    (other / "tokenizer.json").write_text(json.dumps(tokenizer))

    with runtimes(**rstg(other, row)) as runtime, pytest.raises(PluginError) as caught:
        collect(runtime, session_of(runtime))

    assert caught.value.code == "RLVR-P106"
    assert "another tokenizer" in caught.value.cause
    assert "rlvr-plugin-contract 0.1.0" in caught.value.origin


def test_groups_that_a_teacher_helps_are_not_reported_as_dead(run, row, teacher):
    rows = [row("train", number, "Never", teacher_pass_rate=1.0) for number in range(4)]
    warnings = {}
    for name, samplers in (
        ("alone", []),
        ("taught", [{"tiny-rstg": {"teacher": str(teacher)}}]),
    ):
        finished = run(
            name, train_rows=rows, samplers=samplers, monitors=[{"dead-groups": {"warn_after": 1}}]
        )
        warnings[name] = [event["monitor"] for event in finished.events("warn")]

    assert warnings == {"alone": ["dead-groups"], "taught": []}
