"""`openrlhf_reward` as OpenRLHF calls it: by position, prompt and completion in one text."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rlvr_core.adapters import openrlhf_reward
from rlvr_core.api import DataError

PROMPT = "<|im_start|>user\nWhat is 1 + 1?<|im_end|>\n<|im_start|>assistant\n"


@pytest.fixture(scope="module")
def reward_func(opened):
    return opened(openrlhf_reward("exact-match", workers=1))


def numbers(result):
    """The result with tensors as lists, whether or not another test imported torch."""
    plain = {key: getattr(value, "tolist", lambda v=value: v)() for key, value in result.items()}
    logs = {key: float(value) for key, value in result["extra_logs"].items()}
    return {**plain, "extra_logs": logs}


def test_the_completion_is_what_follows_the_prompt_without_stop_tokens(reward_func):
    queries = [
        PROMPT + "2<|im_end|>",
        PROMPT + "2<|im_end|>\n<|endoftext|>",
        "<s>" + PROMPT + "3</s>",
        PROMPT + "<|im_end|>",
    ]
    result = numbers(reward_func(queries, [PROMPT] * 4, ["2"] * 4))
    assert result["rewards"] == result["scores"] == [1.0, 1.0, 0.0, 0.0]
    assert result["extra_logs"] == {"passed": 0.5, "judged": 1.0}


def test_stop_texts_in_the_middle_stay(opened):
    reward_func = opened(openrlhf_reward("exact-match", stop_texts=["END"], workers=1))
    result = numbers(reward_func(["?a END b END"], ["?"], ["a END b"]))
    assert result["rewards"] == [1.0]


def test_a_million_stop_texts_take_no_time(reward_func):
    text = PROMPT + "2" + "</s> " * 200_000
    assert numbers(reward_func([text], [PROMPT], ["2"]))["rewards"] == [1.0]


def test_a_query_without_its_prompt_is_refused(reward_func):
    with pytest.raises(DataError, match="does not hold its prompt"):
        reward_func(["another text 2"], [PROMPT], ["2"])


def test_unjudged_completions_raise_or_are_worth_what_the_user_said(reward_func, opened):
    lenient = opened(openrlhf_reward("exact-match", unjudged_score=-1.0, workers=1))
    arguments = ([PROMPT + "2"] * 2, [PROMPT] * 2, [{"type": "ifeval"}, "2"])
    with pytest.raises(DataError) as caught:
        reward_func(*arguments)
    assert caught.value.code == "RLVR-V104"
    result = numbers(lenient(*arguments))
    assert result["rewards"] == [-1.0, 1.0]
    assert result["extra_logs"] == {"passed": 0.5, "judged": 0.5}


def test_lists_are_returned_where_torch_was_not_imported():
    code = (
        "import json, sys\n"
        "from rlvr_core.adapters import openrlhf_reward\n"
        "reward_func = openrlhf_reward('exact-match', workers=1)\n"
        "print(json.dumps(reward_func(['?2'], ['?'], ['2'])), 'torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == (
        '{"rewards": [1.0], "scores": [1.0], "extra_logs": {"passed": 1.0, "judged": 1.0}} False'
    ), done.stderr


def test_tensors_are_returned_where_torch_was_imported(reward_func):
    torch = pytest.importorskip("torch")
    result = reward_func(["?2", "?3"], ["?", "?"], ["2", "2"])
    assert torch.equal(result["rewards"], torch.tensor([1.0, 0.0]))
    assert result["rewards"].dtype is torch.float32
    assert result["extra_logs"]["passed"].item() == 0.5
