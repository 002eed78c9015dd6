"""Stack files on the tiny model, and what is opened and read for them."""

import contextlib
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
def open_runtime_of(path, overrides=()):
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
    ) as runtime:
        yield runtime


def new_session(runtime, step=1, prompts_drawn=0):
    """Return the session of a step."""
    from rlvr_core.train.session import StepSession

    return StepSession(runtime=runtime, step=step, weights_version=0, prompts_drawn=prompts_drawn)
