"""Two processes over gloo make the update of one."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

SCRIPT = Path(__file__).with_name("two_processes.py")
LIVE, MIXED, DEAD = [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]
MASKED = [None] * 4
PATTERNS = {
    "sampled and judged": None,  # first, since the engine counts updates
    "both have signal": [LIVE, MIXED, MIXED, LIVE],
    "one has nothing but dead groups": [LIVE, MIXED, DEAD, DEAD],
    "no process has signal": [DEAD, DEAD, DEAD, DEAD],
    "one has nothing but masked rollouts": [LIVE, MIXED, MASKED, MASKED],
}
ANY_LETTER = {"type": "exact-match", "answer": [chr(code) for code in range(65, 91)]}
STACK = {
    "advantage": ["grpo", {"ppo-clip": {"aggregation": "token-mean"}}],
    "rollout": {"max_completion_tokens": 1, "group_size": 8, "prompts_per_step": 8},
    "judged_by": ANY_LETTER,
}


def test_two_processes_make_the_update_of_one(write_stack, runtimes, tmp_path):
    spec = importlib.util.spec_from_file_location("two_processes", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    stack = write_stack(**STACK)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    patterns = json.dumps(list(PATTERNS.values()))

    launched = subprocess.run(
        [sys.executable, *launcher, str(SCRIPT), str(stack), patterns, str(tmp_path / "both")],
        env={**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert launched.returncode == 0, launched.stderr[-3000:]
    with runtimes(**STACK) as runtime:
        for number, (name, rewards) in enumerate(PATTERNS.items()):
            weights, facts = script.update_once(runtime, rewards)
            both = [
                json.loads((tmp_path / f"both-{number}.{rank}.json").read_text()) for rank in (0, 1)
            ]
            assert sorted(both[0]["rollouts"] + both[1]["rollouts"]) == sorted(facts["rollouts"])
            for rank, found in enumerate(both):
                assert found["loss"] == pytest.approx(facts["loss"], abs=1e-6), name
                assert found["tokens"] == facts["tokens"], name
                loaded = load_file(tmp_path / f"both-{number}.{rank}")
                for key, weight in weights.items():
                    torch.testing.assert_close(loaded[key], weight, atol=1e-6, rtol=0, msg=key)
            if rewards is None:
                assert facts["tokens"] > 0, "nothing was learnt"


def test_copies_of_a_row_go_to_one_process_also_in_later_rounds(runtimes, session_of):
    with runtimes() as runtime:
        a, b, c, d = runtime.train_rows[:4]
        shares = {}
        for rank in (0, 1):
            runtime.accelerator = SimpleNamespace(num_processes=2, process_index=rank)
            session = session_of(runtime)
            shares[rank] = [session.share([a, b, a, c]), session.share([c, d, b])]

    for first, second in (shares[0], shares[1]):
        assert first
        assert second
    both = [[row.id for row in shares[0][n] + shares[1][n]] for n in (0, 1)]
    assert sorted(both[0]) == sorted(row.id for row in (a, b, a, c))
    assert sorted(both[1]) == sorted(row.id for row in (c, d, b))
    owners = [{row.id for of_round in shares[rank] for row in of_round} for rank in (0, 1)]
    assert not owners[0] & owners[1]
