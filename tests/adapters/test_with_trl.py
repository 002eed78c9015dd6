"""Our verifiers as rewards of TRL's own trainer. Run by ``make test-adapters``."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from rlvr_core.adapters import trl_reward, trl_reward_async
from rlvr_core.api import DataError, PluginError

pytestmark = pytest.mark.adapters

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "use-verifiers-in-your-trainer.md"
ROWS = [
    {
        "prompt": f"Say {letter}.",
        "verifier": {"type": "python", "letter": letter, "answer": None},
    }
    for letter in "ab"
]
CODE = '''
def share(completion, letter):
    """Differs from completion to completion; breaks on one prompt."""
    if letter == "b":
        raise RuntimeError("no b")
    return (len(completion.encode()) % 7) / 10
'''


@pytest.fixture
def place(tmp_path):
    path = tmp_path / "rewards.py"
    path.write_text(CODE, "utf-8")
    return f"{path}:share"


@pytest.fixture
def make_trainer(tiny_model, tmp_path):
    def make(rewards, rows=ROWS, **options):
        settings = {
            "output_dir": str(tmp_path / "out"),
            "max_steps": 1,
            "per_device_train_batch_size": 8,
            "num_generations": 4,
            "max_completion_length": 8,
            "learning_rate": 1e-3,
            "logging_steps": 1,
            "report_to": "none",
            "use_cpu": True,
            "save_strategy": "no",
            **options,
        }
        return GRPOTrainer(
            model=str(tiny_model),
            reward_funcs=rewards,
            # A batch holds several prompts, and fewer rows than that are not trained on.
            train_dataset=Dataset.from_list(rows * (4 // len(rows))),
            args=GRPOConfig(**settings),
        )

    return make


class Recorded:
    """A reward function that remembers what it returned."""

    def __init__(self, reward):
        self.reward, self.__name__, self.scores = reward, reward.__name__, []

    def __call__(self, **arguments):
        self.scores.append(self.reward(**arguments))
        return self.scores[-1]


def weights(trainer):
    return [each.detach().clone() for each in trainer.model.parameters()]


def test_one_step_learns_from_the_scores_and_leaves_out_what_has_none(make_trainer, place, opened):
    reward = Recorded(opened(trl_reward("python", config={"function": place}, workers=1)))
    trainer = make_trainer(reward)
    before = weights(trainer)
    trainer.train()
    [scores] = reward.scores
    judged = [score for score in scores if score is not None]
    assert (len(scores), len(judged)) == (8, 4)
    logged = trainer.state.log_history[0]
    assert math.isclose(logged["rewards/python/mean"], sum(judged) / 4, abs_tol=1e-6)
    assert math.isclose(logged["reward"], sum(judged) / 4, abs_tol=1e-6)
    assert (logged["python/error"], logged["python/abstained"]) == (0.5, 0.0)
    assert len(set(judged)) > 1
    assert any((a != b).any() for a, b in zip(before, weights(trainer), strict=True))
    assert all(each.isfinite().all() for each in weights(trainer))


def test_the_asynchronous_twin_gives_the_same_rewards(make_trainer, place, opened):
    settings = {"config": {"function": place}, "workers": 1}
    logged = []
    for make in (trl_reward, trl_reward_async):
        trainer = make_trainer(opened(make("python", **settings)), seed=3)
        trainer.train()
        logged.append(trainer.state.log_history[0])
    assert logged[0]["rewards/python/mean"] == logged[1]["rewards/python/mean"]
    assert logged[0]["grad_norm"] == logged[1]["grad_norm"]


def test_two_verifiers_share_a_data_set_out(make_trainer, place, opened):
    rows = [ROWS[0], {"prompt": "?", "verifier": {"type": "exact-match", "answer": "x"}}]
    rewards = [
        Recorded(opened(trl_reward("python", config={"function": place}, workers=1))),
        Recorded(opened(trl_reward("exact-match", workers=1))),
    ]
    make_trainer(rewards, rows).train()
    for index in range(8):
        given = [reward.scores[0][index] for reward in rewards]
        assert given.count(None) == 1


def test_conversations_are_understood(make_trainer, place, opened):
    reward = Recorded(opened(trl_reward("python", config={"function": place}, workers=1)))
    trainer = make_trainer(reward, [{**ROWS[0], "prompt": [{"role": "user", "content": "Say a."}]}])
    trainer.train()
    assert all(isinstance(score, float) for score in reward.scores[0])


def test_a_missing_column_ends_the_training_at_once(make_trainer):
    trainer = make_trainer(trl_reward("exact-match"), [{"prompt": "?", "solution": "x"}])
    with pytest.raises(DataError, match="nothing gives 'answer'"):
        trainer.train()


def test_a_broken_verifier_ends_the_training(make_trainer, place, opened):
    reward = opened(trl_reward("python", config={"function": place}, workers=1))
    trainer = make_trainer(reward, ROWS[1:], max_steps=5, per_device_train_batch_size=16)
    with pytest.raises(PluginError, match="no b"):
        trainer.train()


def test_the_example_of_the_page_runs(tiny_model, tmp_path, monkeypatch):
    [code] = [
        block
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
        if "GRPOTrainer" in block
    ]
    assert PAGE.name == "use-verifiers-in-your-trainer.md"
    (tmp_path / "my-model").symlink_to(tiny_model)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, PAGE.name, "exec"), {"__name__": "page"})
