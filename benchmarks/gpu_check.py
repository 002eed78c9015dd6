"""What only a GPU can prove, in one short script: ``python benchmarks/gpu_check.py``.

Runs the gpu-marked tests, then a few of the demo's steps with each engine that is installed, and
prints their times, the memory, and how far the engine's log-probabilities are from the policy's.
Not yet run on a GPU.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
STEPS = 6


def main() -> int:
    import torch

    if not torch.cuda.is_available():
        print("there is no GPU here; nothing was checked")
        return 4
    print(f"device: {torch.cuda.get_device_name(0)}, torch {torch.__version__}")
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "gpu", "tests/gpu", "-q"], cwd=ROOT, check=False
    )
    engines = ["transformers", "vllm"] if find_spec("vllm") else ["transformers"]
    for engine in engines:
        with tempfile.TemporaryDirectory() as folder:
            records = run_demo_steps(Path(folder), engine)
        times = ", ".join(f"{record['step_s']:.2f}" for record in records)
        gaps = ", ".join(f"{record['sampler_gap'] or 0:.2g}" for record in records)
        print(f"{engine}: seconds of demo steps 1 to {STEPS}: {times}")
        print(f"{engine}: difference from the policy, nats a token: {gaps}")
    if "vllm" not in engines:
        print("vLLM is not installed: not checked")
    print(f"peak GPU memory: {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")
    return tests.returncode


def run_demo_steps(folder: Path, engine: str) -> list[dict[str, Any]]:
    from rlvr_core.cli.demo import lay_out
    from rlvr_core.train.prepare import prepare
    from rlvr_core.train.run import train

    stack = lay_out(folder / "demo", 0, "smollm2-arithmetic")
    changes = [f"train.steps={STEPS}", "evaluate.splits=[]", f"rollout.engine={engine}"]
    train(prepare(stack, changes), folder / "run")
    return [json.loads(line) for line in (folder / "run/metrics.jsonl").read_text().splitlines()]


if __name__ == "__main__":
    sys.exit(main())
