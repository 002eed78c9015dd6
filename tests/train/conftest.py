"""A real stack on the tiny model, for tests of the step."""

import contextlib

import pytest

torch = pytest.importorskip("torch")

import stacks  # noqa: E402

from rlvr_core.api import FinishReason, Group, Rollout, Segment  # noqa: E402

torch.set_num_threads(1)  # more only get in each other's way on a model this small

PROMPTS = ["one", "a longer prompt", "three", "and the fourth of them"]


@pytest.fixture
def write_stack(tmp_path, tiny_model):
    """Return a function that writes a stack file and its data, and returns the path."""

    def write(name="stack", rows=12, **sections):
        of_splits = {
            split: [
                {
                    "id": f"{split}-{number}",
                    "prompt": PROMPTS[number % 4] + f" {split} {number}",
                    "verifier": {"type": "exact-match", "answer": "a"},
                }
                for number in range(rows)
            ]
            for split in stacks.SPLITS
        }
        return stacks.write_stack(
            tmp_path / name, tiny_model, of_splits, ["exact-match"], **sections
        )

    return write


@pytest.fixture
def runtimes(write_stack):
    """Return a context manager that opens the runtime of a stack."""

    @contextlib.contextmanager
    def open_one(name="stack", overrides=(), **sections):
        with stacks.open_runtime_of(write_stack(name, **sections), overrides) as runtime:
            yield runtime

    return open_one


@pytest.fixture
def session_of():
    """Return a function that makes the session of a step."""
    return stacks.new_session


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
