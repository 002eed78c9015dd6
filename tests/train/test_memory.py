"""A long run needs no more memory at its end than at its beginning."""

import psutil
import pytest
from test_run import LEARNABLE, pay_for_letters

from rlvr_core.train.prepare import prepare
from rlvr_core.train.progress import Silent
from rlvr_core.train.run import train

STEPS = 200
MIB = 1 << 20


class Scales(Silent):
    """Weighs this process after every step."""

    def __init__(self):
        self.mib = []

    def step(self, record):
        self.mib.append(psutil.Process().memory_info().rss / MIB)


@pytest.mark.slow
def test_memory_is_flat_over_two_hundred_steps(write_stack, tmp_path):
    sections = {
        **LEARNABLE,
        "train": {"steps": STEPS, "learning_rate": 1e-4, "precision": "fp32"},
        "evaluate": {"splits": ["dev"], "every": 10},
        "monitors": ["verifier-health", "dead-groups", "non-finite"],
        "verification": {"workers": 1},
    }
    scales = Scales()

    train(
        prepare(pay_for_letters(write_stack(**sections)), ["train.checkpoint_every=20"]),
        tmp_path / "run",
        reporter=scales,
    )

    weighed = {step: round(scales.mib[step - 1], 1) for step in (1, 20, 50, 100, 150, 200)}
    print("resident MiB after step:", weighed)  # noqa: T201 - shown with -s, and on failure
    settled, last = max(scales.mib[20:100]), max(scales.mib[100:])
    assert last - settled < 4, weighed
