"""How the time and memory of a step grow: ``python benchmarks/scaling.py``.

A random model of four layers; prompts a step, group size, prompt length and completion length are
doubled one at a time. Each point has a process of its own, so that the peaks are its own.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
from cases import collect_alive, make_case, our_runtime
from measuring import Clock, PeakMemory, Times

from rlvr_core.train.step import learn

BASE = {"prompts": 4, "group": 8, "prompt_tokens": 64, "completion_tokens": 32}
DOUBLINGS = 3


def measure(point: dict[str, int], steps: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        case = make_case("M", folder, stops=False)
        rows = [
            {**row, "prompt": row["prompt"].ljust(point["prompt_tokens"], ".")} for row in case.rows
        ]
        case = dataclasses.replace(
            case,
            rows=rows,
            prompts_per_step=point["prompts"],
            group_size=point["group"],
            completion_tokens=point["completion_tokens"],
        )
        with our_runtime(case, folder / "ours", layout="shared") as runtime:
            collecting, learning = Times(), Times()
            with PeakMemory() as peak:
                for number in range(1, steps + 1):
                    clock = Clock()
                    session, groups = collect_alive(runtime, number)
                    collecting.add(clock.read())
                    clock = Clock()
                    learn(runtime, session, groups)
                    learning.add(clock.read())
    values = "  ".join(f"{value:13}" for value in point.values())
    print(
        f"{values}  {statistics.median(collecting.wall[1:]):9.3f}  "
        f"{statistics.median(learning.wall[1:]):9.3f}  {peak.mib:8.0f}",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--point", type=int, nargs=len(BASE), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.point:
        measure(dict(zip(BASE, arguments.point, strict=True)), arguments.steps)
        return 0
    names = "  ".join(f"{name.replace('_tokens', ' len'):>13}" for name in BASE)
    print(f"{names}  sample, s   learn, s  peak, MiB", flush=True)
    points = [BASE] + [
        {**BASE, name: BASE[name] * 2**doubling}
        for name in BASE
        for doubling in range(1, DOUBLINGS + 1)
    ]
    for point in points:
        options = ["--point", *map(str, point.values())]
        subprocess.run([sys.executable, *sys.argv, *options], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
