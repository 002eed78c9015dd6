"""Where memory goes in a step, and how much TRL takes: ``python benchmarks/memory.py [CASE]``.

Each side has a process of its own. Ours is looked at stage by stage. TRL takes part where it is
installed (``make bench-trl``). Resident memory in MiB, or the GPU's where there is one; the
libraries alone take a few hundred.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
from cases import collect_alive, make_case, our_runtime
from measuring import PeakMemory, resident_mib

from rlvr_core.train.step import learn


def ours(case_name: str, steps: int, layout: str) -> None:
    start = resident_mib()
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        folder = Path(scratch)
        case = make_case(case_name, folder, stops=True)
        runtime = stack.enter_context(our_runtime(case, folder / "ours", layout=layout))
        print(f"  libraries {start:6.0f} MiB, model loaded {resident_mib():6.0f} MiB")
        highest = 0.0
        for number in range(1, steps + 1):
            with PeakMemory() as sampling:
                session, groups = collect_alive(runtime, number)
            with PeakMemory() as learning:
                learn(runtime, session, groups)
            highest = max(highest, sampling.mib, learning.mib)
            print(
                f"  step {number}: sampling {sampling.mib:6.0f} MiB, learning "
                f"{learning.mib:6.0f} MiB, after it {resident_mib():6.0f} MiB"
            )
        weights = sum(p.numel() * p.element_size() for p in runtime.policy.model.parameters())
        print(f"  (the weights alone are {weights / 2**20:.0f} MiB, AdamW's state twice that)")
        print(f"  peak {highest:.0f} MiB")


def trl(case_name: str, steps: int) -> None:
    from step_vs_trl import make_trainer
    from transformers import AutoTokenizer

    with tempfile.TemporaryDirectory() as scratch, PeakMemory() as peak:
        folder = Path(scratch)
        case = make_case(case_name, folder, stops=True)
        tokenizer = AutoTokenizer.from_pretrained(case.model)
        trainer, _pair = make_trainer(case, folder, tokenizer, steps)
        trainer.train()
    print(f"  peak {peak.mib:.0f} MiB")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("case", nargs="?", choices=["demo", "S", "M"], default="demo")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--side", choices=["shared", "rows", "trl"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.side == "trl":
        trl(arguments.case, arguments.steps)
    elif arguments.side:
        ours(arguments.case, arguments.steps, arguments.side)
    else:
        names = {
            "shared": "ours, prompt once a group",
            "rows": "ours, prompt once a completion",
            "trl": "TRL",
        }
        for side, name in names.items():
            if side == "trl" and find_spec("trl") is None:
                print("TRL is not installed here")
                continue
            print(f"{arguments.case}, {name}", flush=True)
            subprocess.run([sys.executable, *sys.argv, "--side", side], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
