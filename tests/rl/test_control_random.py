import os
import subprocess
import sys

import pytest
from oracle import random_arm

from rlvr_core.builtin.control_random import bernoulli


def test_first_draws_are_the_published_ones():
    assert [int(bernoulli(0, "p0", index, 0.5)) for index in range(8)] == [0, 1, 0, 0, 0, 0, 1, 1]


def test_mean_and_share_of_mixed_groups_are_those_of_a_fair_coin():
    groups = [[bernoulli(0, f"p{prompt}", i, 0.5) for i in range(8)] for prompt in range(1000)]

    assert sum(map(sum, groups)) / 8000 == pytest.approx(0.493875)
    assert sum(0 < sum(group) < 8 for group in groups) / 1000 == pytest.approx(0.994)


@pytest.mark.parametrize("rate", [0.0, 0.2, 1.0])
def test_draws_agree_with_the_oracle_at_every_rate(rate):
    for prompt in ("a", "b|c", "多"):
        for index in range(50):
            assert bernoulli(7, prompt, index, rate) == random_arm(7, prompt, index, rate)


def test_draws_do_not_depend_on_the_process():
    code = (
        "from rlvr_core.builtin.control_random import bernoulli;"
        "print([int(bernoulli(3, 'p', i, 0.5)) for i in range(32)])"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert printed == {str([int(bernoulli(3, "p", i, 0.5)) for i in range(32)]) + "\n"}
