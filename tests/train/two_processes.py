"""Run by `test_processes.py` under a launcher: one update on this process's share of the groups."""

import json
import sys
from pathlib import Path

import torch
from accelerate import Accelerator
from safetensors.torch import save_file

from rlvr_core.api import FinishReason, Group, Rollout, Segment
from rlvr_core.train.build import load_model, open_runtime
from rlvr_core.train.prepare import prepare
from rlvr_core.train.session import StepSession
from rlvr_core.train.step import collect, learn


def make_groups(runtime, rewards):
    groups = []
    for number, (row, of_group) in enumerate(zip(runtime.train_rows, rewards, strict=False)):
        rollouts = [
            Rollout(
                row=row,
                sample_index=index,
                completion="",
                segments=[Segment(token_ids=[5 + number, 9 + index, 17][: 1 + index % 3])],
                finish_reason=FinishReason.STOP,
                weights_version=0,
                sampled_under=row.prompt,
                trained_under=row.prompt,
                reward=reward,
            )
            for index, reward in enumerate(of_group)
        ]
        for rollout in rollouts:
            rollout.segments[0].logps = [-1.0] * rollout.length
        groups.append(Group(row=row, rollouts=rollouts))
    return groups


def update_once(runtime, rewards):
    """Make one plain gradient step from the same weights, and return what came of it.

    Args:
        runtime: Of this process.
        rewards: Of the groups of all processes; None: the groups are sampled and judged.
    """
    model = runtime.policy.model
    before = {name: value.clone() for name, value in model.state_dict().items()}
    runtime.optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    runtime.controls.learning_rate = 1.0
    session = StepSession(runtime=runtime, step=1, weights_version=0, prompts_drawn=0)
    if rewards is None:
        groups = collect(runtime, session).groups
    else:
        groups = runtime.share_of_rank(make_groups(runtime, rewards))
    result = learn(runtime, session, groups)
    after = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(before)
    sampled = [
        [rollout.row.id, rollout.sample_index, rollout.segments[0].token_ids, rollout.reward]
        for group in groups
        for rollout in group.rollouts
    ]
    return after, {"loss": result.loss, "tokens": result.trained_tokens, "rollouts": sampled}


def main(stack, patterns, target):
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    prepared = prepare(Path(stack))
    model = prepared.resolved.stack.model
    with open_runtime(
        prepared.resolved, load_model(model), prepared.splits["train"], accelerator, model
    ) as runtime:
        for number, rewards in enumerate(json.loads(patterns)):
            weights, facts = update_once(runtime, rewards)
            rank = accelerator.process_index
            save_file(weights, f"{target}-{number}.{rank}")
            Path(f"{target}-{number}.{rank}.json").write_text(json.dumps(facts))
    accelerator.end_training()


if __name__ == "__main__":
    main(*sys.argv[1:])
