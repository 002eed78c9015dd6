"""Stack files on the tiny model, and what is opened and read for them."""

import contextlib
import copy
import json

SPLITS = ("train", "dev")


def write_stack(folder, model, rows, verifiers, **sections):
    """Write a small stack with its data, and return the path of the stack file.

    Args:
        folder: Made if it is not there.
        model: Folder of the model.
        rows: Split name to the rows of its data file.
        verifiers: Of the stack.
        **sections: Mappings add to what stands in the section, other values replace it.
    """
    folder.mkdir(exist_ok=True)
    for split in SPLITS:
        write_rows(folder / f"{split}.jsonl", rows[split])
    stack = {
        "schema_version": 1,
        "model": str(model),
        "data": {split: {"path": f"{split}.jsonl"} for split in SPLITS},
        "rollout": {"group_size": 4, "prompts_per_step": 4, "max_completion_tokens": 6},
        "verifiers": verifiers,
        "train": {"steps": 2, "learning_rate": 1e-3, "precision": "fp32"},
        "evaluate": {"splits": []},
        "verification": {"workers": 1},
    }
    for section, values in sections.items():
        if isinstance(values, dict) and isinstance(stack.get(section), dict):
            stack[section] = {**stack[section], **values}
        else:
            stack[section] = values
    path = folder / "stack.yaml"
    path.write_text(json.dumps(stack), "utf-8")  # JSON is YAML
    return path


def write_rows(path, rows):
    """Write JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def read_lines(path):
    """Return the records of JSON lines; none when there is no file."""
    return (
        [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []
    )


@contextlib.contextmanager
def open_runtime_of(path, overrides=(), verify_engine=None):
    """Open the runtime of a stack file."""
    # Here and not above, so that this module can be imported where torch is not installed.
    from accelerate import Accelerator

    from rlvr_core.train.build import load_model, open_runtime
    from rlvr_core.train.prepare import prepare

    prepared = prepare(path, overrides)
    model = prepared.resolved.stack.model
    with open_runtime(
        prepared.resolved,
        load_model(model),
        prepared.splits["train"],
        Accelerator(mixed_precision="no"),
        model,
        verify_engine,
    ) as runtime:
        yield runtime


def made_up_groups(runtime, rewards, seed=0, longest=6):
    """Return groups of made-up rollouts for the first training rows, with these rewards."""
    import torch

    from rlvr_core.api import FinishReason, Group, Rollout, Segment

    generator = torch.Generator().manual_seed(seed)
    groups = []
    for row, of_group in zip(runtime.train_rows, rewards, strict=False):
        rollouts = []
        for index, reward in enumerate(of_group):
            length = int(torch.randint(1, longest + 1, (1,), generator=generator))
            ids = torch.randint(3, 259, (length,), generator=generator).tolist()
            rollouts.append(
                Rollout(
                    row=row,
                    sample_index=index,
                    completion="",
                    segments=[Segment(token_ids=ids, logps=[-1.0] * length)],
                    finish_reason=FinishReason.STOP,
                    weights_version=0,
                    sampled_under=row.prompt,
                    trained_under=row.prompt,
                    reward=reward,
                )
            )
        groups.append(Group(row=row, rollouts=rollouts))
    return groups


def gradients_after(runtime, session, groups):
    """Return the gradient of one update, by way of a plain gradient step of size 1, and its result.

    The weights are put back.
    """
    import torch

    from rlvr_core.train.step import learn

    model = runtime.policy.model
    before = copy.deepcopy(model.state_dict())
    runtime.optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    runtime.controls.learning_rate = 1.0
    with_settings(runtime, "train", max_grad_norm=None)
    result = learn(runtime, session, groups)
    moved = {name: before[name] - value for name, value in model.state_dict().items()}
    model.load_state_dict(before)
    return moved, result


def with_settings(runtime, section, **values):
    """Change settings of a runtime's stack."""
    changed = getattr(runtime.stack, section).model_copy(update=values)
    runtime.stack = runtime.stack.model_copy(update={section: changed})


def new_session(runtime, step=1, prompts_drawn=0):
    """Return the session of a step."""
    from rlvr_core.train.session import StepSession

    return StepSession(runtime=runtime, step=step, weights_version=0, prompts_drawn=prompts_drawn)
