"""Rules of the step that plugins rely on: wrapping, routing, keeping, one answer a hook."""

import pytest

from rlvr_core.api.errors import StackError
from rlvr_core.train.prepare import prepare
from rlvr_core.train.step import collect, learn

INOCULATION = {"samplers": [{"tiny-inoculation": {"sentence": "You are inoculated."}}]}


def test_a_wrapped_prompt_is_sampled_and_trained_under(runtimes, session_of, model_inputs):
    texts = []
    with runtimes(**INOCULATION) as runtime:
        session = session_of(runtime)
        groups = collect(runtime, session).groups
        model_inputs(runtime, texts)
        learn(runtime, session, groups)

    rollouts = [r for group in groups for r in group.rollouts]
    for rollout in rollouts:
        wrapped = f"You are inoculated. {rollout.row.prompt}"
        assert rollout.sampled_under == rollout.trained_under == wrapped
    assert texts
    assert all("You are inoculated." in text for text in texts)


def test_a_wrapped_prompt_never_reaches_an_evaluation(run):
    import pyarrow.parquet as pq

    finished = run(evaluate={"splits": ["dev"]}, **INOCULATION)

    evaluated = pq.read_table(finished.folder / "evaluations" / "000002-dev.parquet").to_pylist()
    trained = pq.read_table(finished.folder / "rollouts" / "000001.parquet").to_pylist()
    assert all("inoculated" in line["sampled_under"] for line in trained)
    assert not any("inoculated" in str(line) for line in evaluated)


def test_a_hint_comes_on_top_of_a_wrapped_prompt(runtimes, session_of, row):
    rows = [row("train", number, "Never", hint="psst") for number in range(4)]
    samplers = [*INOCULATION["samplers"], "tiny-oc-grpo"]
    with runtimes(train_rows=rows, samplers=samplers) as runtime:
        groups = collect(runtime, session_of(runtime)).groups

    for rollout in groups[0].rollouts[4:]:
        wrapped = f"You are inoculated. {rollout.row.prompt}"
        assert rollout.trained_under == wrapped
        assert rollout.sampled_under == f"{wrapped}\npsst"


def test_two_answers_to_a_first_result_hook_are_refused(write_stack):
    with pytest.raises(StackError) as caught:
        prepare(write_stack(advantage=["dr-grpo", "tiny-second-answer"]))

    assert caught.value.code == "RLVR-S104"
    for name in ("dr-grpo", "tiny-second-answer", "rlvr_estimate_advantages"):
        assert name in str(caught.value)


def test_one_third_party_answer_replaces_the_default(runtimes, session_of):
    with runtimes(advantage=["tiny-second-answer"]) as runtime:
        assert runtime.dispatcher.answering("rlvr_estimate_advantages").name == "tiny-second-answer"
        session = session_of(runtime)
        groups = collect(runtime, session).groups
        learn(runtime, session, groups)

    live = [r for group in groups if not group.is_dead for r in group.rollouts]
    assert live
    assert all(r.advantage == r.reward for r in live)


def test_a_wrapper_around_verification_is_applied_to_every_verdict(runtimes, session_of):
    rewards = {}
    for name, verifiers in (
        ("plain", ["tiny-ifeval"]),
        ("wrapped", ["tiny-ifeval", "tiny-halver"]),
    ):
        with runtimes(name, verifiers=verifiers) as runtime:
            groups = collect(runtime, session_of(runtime)).groups
        rewards[name] = [r.reward for group in groups for r in group.rollouts]

    assert any(rewards["plain"])
    assert rewards["wrapped"] == [reward / 2 for reward in rewards["plain"]]


KEEP = {"samplers": ["tiny-dynamic-sampling"]}


def test_too_few_kept_groups_bring_another_round_of_new_prompts(runtimes, session_of, row):
    rows = [row("train", number, "[a-z]" if number % 2 else "Never") for number in range(32)]
    with runtimes(train_rows=rows, rollout={"max_rounds": 9}, **KEEP) as runtime:
        session = session_of(runtime)
        found = collect(runtime, session)

    ids = [group.row.id for group in found.groups]
    assert found.rounds > 1
    assert sum(found.kept) == 4
    assert session.prompts_drawn == len(ids)
    assert len(set(ids)) == len(ids), "later rounds must bring new prompts"
    for group, kept in zip(found.groups, found.kept, strict=True):
        assert kept == (len({r.verdict.score for r in group.rollouts}) > 1)


def test_rounds_are_bounded(runtimes, session_of, row):
    rows = [row("train", number, "Never") for number in range(16)]
    with runtimes(train_rows=rows, rollout={"max_rounds": 3}, **KEEP) as runtime:
        session = session_of(runtime)
        found = collect(runtime, session)

    assert (found.rounds, sum(found.kept), session.prompts_drawn) == (3, 0, 12)


def test_rollouts_that_a_plugin_throws_away_trouble_nobody(runtimes, session_of):
    """As a leak check does with guided rollouts that quote their hint."""
    with runtimes() as runtime:
        rows = runtime.train_rows[:2]
        for step in (1, 2, 3):
            session = session_of(runtime, step)
            thrown_away, kept = session.sample(rows, [8, 2])
            verdicts = session.verdicts(kept)
            del thrown_away
            for rollout, verdict in zip(kept, verdicts, strict=True):
                expected = any("a" <= letter <= "z" for letter in rollout.completion)
                assert verdict.score == expected
