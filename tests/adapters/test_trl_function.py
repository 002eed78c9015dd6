"""`trl_reward` as TRL calls it; the real trainer is in test_with_trl.py."""

from __future__ import annotations

import asyncio
import copy
import inspect
import multiprocessing
import pickle

import pytest

from rlvr_core.adapters import trl_reward, trl_reward_async
from rlvr_core.api import DataError, PluginError, StackError

PROMPTS = ["What is 1 + 1?"] * 3
ANSWERS = ["2", "2", "2"]


@pytest.fixture(scope="module")
def reward(opened):
    return opened(trl_reward("exact-match", workers=1))


def test_plain_completions_are_scored_against_the_column_of_the_same_name(reward):
    scores = reward(PROMPTS, ["2", "3", "2 "], completion_ids=[[1]] * 3, answer=ANSWERS)
    assert scores == [1.0, 0.0, 1.0]
    assert reward.__name__ == "exact-match"


def test_the_last_turn_of_a_conversation_is_the_completion(reward):
    prompts = [[{"role": "user", "content": "What is 1 + 1?"}]] * 4
    completions = [
        [{"role": "assistant", "content": "2"}],
        [{"role": "assistant", "content": [{"type": "text", "text": "2"}]}],
        [
            {"role": "assistant", "content": "3", "tool_calls": []},
            {"role": "tool", "content": "2"},
            {"role": "assistant", "content": "2"},
        ],
        [{"role": "assistant", "content": None}],
    ]
    assert reward(prompts=prompts, completions=completions, answer=["2"] * 4) == [1, 1, 1, 0]


def test_a_column_may_have_another_name(opened):
    reward = opened(trl_reward("exact-match", columns={"answer": "solution"}, workers=1))
    assert reward(PROMPTS, ["2", "3", "2"], solution=ANSWERS, answer=["no"] * 3) == [1, 0, 1]


def test_rows_of_our_own_data_are_read_and_those_of_other_verifiers_left_to_them(reward):
    blocks = [
        {"type": "exact-match", "answer": "2", "instructions": None},
        {"type": "ifeval", "answer": None, "instructions": []},
        {"type": "Exact_Match", "answer": "2", "instructions": None},
    ]
    assert reward(PROMPTS, ["2", "2", "3"], verifier=blocks) == [1.0, None, 0.0]


def test_a_missing_column_is_named_and_so_are_those_that_are_there(reward):
    with pytest.raises(DataError) as caught:
        reward(PROMPTS, ["2"] * 3, answers=ANSWERS)
    assert caught.value.code == "RLVR-D102"
    assert "nothing gives 'answer'" in str(caught.value)
    assert "answers" in str(caught.value)
    assert "columns={'answer': " in str(caught.value)


def test_a_misspelt_column_is_named():
    reward = trl_reward("exact-match", columns={"answer": "solutoin"})
    with pytest.raises(DataError, match="no column 'solutoin'; did you mean 'solution'"):
        reward(PROMPTS, ["2"] * 3, solution=ANSWERS)


def test_unusable_ground_truth_gives_none_and_raises_when_there_never_was_any_other(opened):
    reward = opened(trl_reward("exact-match", workers=1))
    with pytest.raises(DataError, match="no ground truth that was given is one of 'exact-match'"):
        reward(PROMPTS, ["2"] * 3, answer=[""] * 3)
    assert reward(PROMPTS, ["2"] * 3, answer=["2", "", "3"]) == [1.0, None, 0.0]
    assert reward(PROMPTS, ["2"] * 3, answer=[""] * 3) == [None, None, None]


def test_what_is_no_judgement_is_none_and_is_logged(opened, tmp_path):
    place = write(
        tmp_path, "def f(completion, answer):\n    return 1 / int(completion == answer)\n"
    )
    reward = opened(trl_reward("python", config={"function": place}, workers=1))
    block = {"type": "python", "answer": "2"}
    logged = []
    scores = reward(
        PROMPTS,
        ["2", "3", "2"],
        verifier=[block, block, {"type": "other"}],
        trainer_state=object(),
        log_metric=lambda name, value: logged.append((name, value)),
    )
    assert scores == [1.0, None, None]
    assert logged == [("python/error", 1 / 3), ("python/abstained", 1 / 3)]


def test_a_verifier_that_breaks_too_often_ends_the_training(opened, tmp_path):
    place = write(tmp_path, "def f(completion, answer):\n    raise RuntimeError('no service')\n")
    reward = opened(trl_reward("python", config={"function": place}, workers=1))
    blocks = [{"type": "python", "answer": "2"}] * 20
    with pytest.raises(PluginError) as caught:
        reward(["?"] * 20, ["2"] * 20, verifier=blocks)
    assert caught.value.code == "RLVR-V101"
    assert "no service" in str(caught.value)


def test_the_async_twin_is_awaited(opened):
    reward = opened(trl_reward_async("exact-match", workers=1))
    assert inspect.iscoroutinefunction(reward.__call__)
    assert not inspect.iscoroutinefunction(trl_reward("exact-match").__call__)

    async def both():
        return await asyncio.gather(
            *(reward(PROMPTS, [text] * 3, answer=ANSWERS) for text in ("2", "3"))
        )

    assert asyncio.run(both()) == [[1.0] * 3, [0.0] * 3]


def test_nothing_starts_before_the_first_completion(opened):
    reward = opened(trl_reward("exact-match", workers=1))
    assert reward.scorer.is_running is False
    reward(PROMPTS, ["2"] * 3, answer=ANSWERS)
    assert reward.scorer.is_running is True


def test_copies_and_pickles_have_workers_of_their_own(reward, opened):
    reward(PROMPTS, ["2"] * 3, answer=ANSWERS)
    for twin in (copy.deepcopy(reward), pickle.loads(pickle.dumps(reward))):
        opened(twin)
        assert twin.scorer is not reward.scorer
        assert twin.scorer.is_running is False
        assert twin(PROMPTS, ["2", "3", "2"], answer=ANSWERS) == [1.0, 0.0, 1.0]
        assert twin.__name__ == "exact-match"


def score_in_child(reward, queue):
    queue.put(reward(PROMPTS, ["2", "3", "2"], answer=ANSWERS))


def test_a_forked_process_has_workers_of_its_own(reward):
    reward(PROMPTS, ["2"] * 3, answer=ANSWERS)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=score_in_child, args=(reward, queue))
    child.start()
    assert queue.get(timeout=30) == [1.0, 0.0, 1.0]
    child.join(30)
    assert child.exitcode == 0
    assert reward(PROMPTS, ["2", "3", "2"], answer=ANSWERS) == [1.0, 0.0, 1.0]


def test_the_processes_of_a_launcher_share_the_cores(opened, monkeypatch):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1000")
    reward = opened(trl_reward("exact-match"))
    assert reward(PROMPTS, ["2"] * 3, answer=ANSWERS) == [1.0] * 3
    assert reward.scorer.health().verdicts == 3


def test_an_unknown_verifier_is_refused_at_once():
    with pytest.raises(StackError) as caught:
        trl_reward("exact-mach")
    assert caught.value.code == "RLVR-S103"


def test_a_plugin_that_judges_nothing_is_refused_at_once():
    with pytest.raises(StackError) as caught:
        trl_reward("control-random")
    assert caught.value.code == "RLVR-V103"


def write(folder, code):
    path = folder / "rewards.py"
    path.write_text(code, "utf-8")
    return f"{path}:f"
