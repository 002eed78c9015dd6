"""What only a GPU can prove, in one short script: ``python benchmarks/gpu_check.py``.

Runs the gpu-marked tests, then a few of the demo's steps, and prints their times and the memory.
Not yet run on a GPU.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

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
    with tempfile.TemporaryDirectory() as folder:
        steps = run_demo_steps(Path(folder))
    print(
        f"demo step: {steps[-1]:.2f} s (steps 1 to {STEPS}: {', '.join(f'{s:.2f}' for s in steps)})"
    )
    print(f"peak GPU memory: {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")
    return tests.returncode


def run_demo_steps(folder: Path) -> list[float]:
    from rlvr_core.cli.demo import lay_out
    from rlvr_core.train.prepare import prepare
    from rlvr_core.train.run import train

    stack = lay_out(folder / "demo", 0, "smollm2-arithmetic")
    train(prepare(stack, [f"train.steps={STEPS}", "evaluate.splits=[]"]), folder / "run")
    lines = (folder / "run/metrics.jsonl").read_text().splitlines()
    return [json.loads(line)["step_s"] for line in lines]


if __name__ == "__main__":
    sys.exit(main())
