"""Watching changes nothing: the same bits of weights after every step, whoever looks on."""

import importlib.util
import io

import pyarrow.parquet as parquet
import pytest
import stacks
from rich.console import Console

from rlvr_core.cli.live import LiveReporter
from rlvr_core.train.prepare import prepare
from rlvr_core.train.run import train

CANARY = {"prompt": "sing", "verifier": "tiny-whenever", "ground_truth": {}}
HAS_TRACKER = importlib.util.find_spec("tensorboard") is not None
VARIANTS = {
    "evaluated after every step": {"evaluate": {"splits": ["dev"], "every": 1}},
    "evaluated with more samples": {
        "evaluate": {"splits": ["dev"], "every": 2, "samples_per_prompt": 3, "temperature": 0.5}
    },
    "evaluated with canaries and a second grader": {
        "evaluate": {"splits": ["dev"], "every": 1, "also": ["tiny-ifeval"]},
        "monitors": [{"tiny-canaries": CANARY}],
        "verifiers": ["tiny-whenever", "tiny-ifeval"],
    },
    "two workers": {"verification": {"workers": 2}},
    "five workers": {"verification": {"workers": 5}},
    "saved after every step": {"train": {"checkpoint_every": 1}},
    "watched by core's monitors": {"monitors": ["verifier-health", "dead-groups", "non-finite"]},
    "watched by one that draws from every global generator": {
        "monitors": ["tiny-meddler"],
        "evaluate": {"splits": ["dev"], "every": 1},
    },
    "watched by one that raises": {"monitors": ["tiny-faulty"]},
    "tracked": {"monitors": [{"tracker": {"to": "tensorboard"}}] if HAS_TRACKER else []},
}

QUICK = ("evaluated after every step", "five workers", "watched by core's monitors")
"""Those that every run of the tests makes."""


class Deaf:
    """A reporter whose other end is gone."""

    def __getattr__(self, name):
        def tell(record):
            raise BrokenPipeError

        return tell


def fingerprints(folder, model, reporter=None, **sections):
    """Train, and return the fingerprint of the weights after every step."""
    rows = {
        split: [
            {"id": f"{split}-{n}", "prompt": f"{split} {n}", "verifier": {"type": "tiny-whenever"}}
            for n in range(12)
        ]
        for split in stacks.SPLITS
    }
    given = {"verifiers": ["tiny-whenever"], "train": {}, **sections}
    given["train"] = {"steps": 3, "learning_rate": 1e-2, **given["train"]}
    rollout = {"group_size": 8, "max_completion_tokens": 3, **given.pop("rollout", {})}
    stack = stacks.write_stack(folder, model, rows, rollout=rollout, **given)
    train(prepare(stack), folder / "run", reporter=reporter)
    records = stacks.read_lines(folder / "run" / "metrics.jsonl")
    assert records[-1]["weights_version"] > 1, "nothing was learnt"
    return [record["weights_fingerprint"] for record in records]


@pytest.fixture(scope="module")
def unwatched(tmp_path_factory, tiny_model):
    """What comes of the run that nobody looks at."""
    return fingerprints(tmp_path_factory.mktemp("unwatched") / "stack", tiny_model)


@pytest.mark.parametrize(
    "variant",
    [one if one in QUICK else pytest.param(one, marks=pytest.mark.slow) for one in VARIANTS],
)
def test_who_watches_changes_no_bit(variant, tmp_path, tiny_model, unwatched):
    if variant == "tracked" and not HAS_TRACKER:
        pytest.skip("make setup installs tensorboard")

    found = fingerprints(tmp_path / "stack", tiny_model, **VARIANTS[variant])

    assert found == unwatched


def test_what_a_run_is_told_to_changes_no_bit(tmp_path, tiny_model, unwatched):
    screen = Console(file=io.StringIO(), force_terminal=True)
    with LiveReporter(screen, "run", 3) as live:
        shown = fingerprints(tmp_path / "shown", tiny_model, live)
    deaf = fingerprints(tmp_path / "deaf", tiny_model, Deaf())

    assert shown == deaf == unwatched


@pytest.mark.slow
def test_how_many_are_decoded_side_by_side_changes_results_by_rounding_only(tmp_path, tiny_model):
    """Draws stay the same; sums of matrix products may be taken in another order."""
    tables = []
    for rows in (256, 3):
        folder = tmp_path / str(rows)
        fingerprints(folder, tiny_model, rollout={"max_rows": rows})
        tables.append(parquet.read_table(folder / "run/rollouts/000001.parquet").to_pylist())

    for one, other in zip(*tables, strict=True):
        [first], [second] = one["segments"], other["segments"]
        assert first["token_ids"] == second["token_ids"]
        assert first["logps"] == pytest.approx(second["logps"], abs=1e-5)
