"""A real stack on the tiny model, for tests of the step."""

import contextlib
import json

import pytest

torch = pytest.importorskip("torch")

from accelerate import Accelerator  # noqa: E402

from rlvr_core.api import FinishReason, Group, Rollout, Segment  # noqa: E402
from rlvr_core.train.build import load_model, open_runtime  # noqa: E402
from rlvr_core.train.prepare import prepare  # noqa: E402
from rlvr_core.train.session import StepSession  # noqa: E402

torch.set_num_threads(1)  # more only get in each other's way on a model this small

PROMPTS = ["one", "a longer prompt", "three", "and the fourth of them"]


@pytest.fixture
def write_stack(tmp_path, tiny_model):
    """Return a function that writes a stack file and its data, and returns the path."""

    def write(name="stack", rows=12, **sections):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        for split in ("train", "dev"):
            lines = [
                json.dumps(
                    {
                        "id": f"{split}-{number}",
                        "prompt": PROMPTS[number % 4] + f" {split} {number}",
                        "verifier": {"type": "exact-match", "answer": "a"},
                    }
                )
                for number in range(rows)
            ]
            (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
        stack = {
            "schema_version": 1,
            "model": str(tiny_model),
            "data": {"train": {"path": "train.jsonl"}, "dev": {"path": "dev.jsonl"}},
            "rollout": {"group_size": 4, "prompts_per_step": 4, "max_completion_tokens": 6},
            "verifiers": ["exact-match"],
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

    return write


@pytest.fixture
def runtimes(write_stack):
    """Return a context manager that opens the runtime of a stack."""

    @contextlib.contextmanager
    def open_one(name="stack", overrides=(), **sections):
        prepared = prepare(write_stack(name, **sections), overrides)
        model = prepared.resolved.stack.model
        with open_runtime(
            prepared.resolved,
            load_model(model),
            prepared.splits["train"],
            Accelerator(mixed_precision="no"),
            model,
        ) as runtime:
            yield runtime

    return open_one


@pytest.fixture
def session_of():
    """Return a function that makes the session of a step."""

    def make(runtime, step=1, prompts_drawn=0):
        return StepSession(
            runtime=runtime, step=step, weights_version=0, prompts_drawn=prompts_drawn
        )

    return make


@pytest.fixture
def make_groups():
    """Return a function that makes groups of made-up rollouts with given rewards."""

    def make(runtime, rewards, seed=0, longest=6):
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

    return make
