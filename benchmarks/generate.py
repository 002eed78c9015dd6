"""Where the time of sampling goes: ``python benchmarks/generate.py [demo|S|M]``.

Our engine on the prompts of one step, with the prompt computed once a group and once a completion,
beside the library's ``generate`` on the same prompts; then the parts of our engine's time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections import defaultdict
from functools import wraps
from pathlib import Path
from time import perf_counter

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
from cases import Case, make_case
from measuring import Clock, PeakMemory
from transformers import AutoModelForCausalLM, AutoTokenizer

from rlvr_core.rollout import transformers_engine
from rlvr_core.rollout.engine import SampleRequest
from rlvr_core.rollout.tokens import PromptTokenizer, stop_ids


class Generation:
    """The prompts of a case's first step, sampled in three ways."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.tokenizer = AutoTokenizer.from_pretrained(case.model)
        self.model = AutoModelForCausalLM.from_pretrained(case.model, dtype=torch.float32).eval()
        encode = PromptTokenizer(self.tokenizer).encode
        rows = case.rows[: case.prompts_per_step]
        self.prompts = [encode(_as_prompt(row["prompt"])) for row in rows]
        self.requests = [
            SampleRequest(
                prompt_ids=ids,
                max_tokens=case.completion_tokens,
                temperature=1.0,
                key=(0, number, sample),
            )
            for number, ids in enumerate(self.prompts)
            for sample in range(case.group_size)
        ]

    def autocast(self):
        return torch.autocast("cpu", torch.bfloat16, enabled=self.case.precision == "bf16")

    def ours(self, *, share_prompts: bool) -> int:
        engine = transformers_engine.TransformersEngine(
            self.model,
            stop_ids=stop_ids(self.model, self.tokenizer) if self.case.stops else [],
            max_rows=len(self.requests),
            autocast=self.autocast,
            share_prompts=share_prompts,
        )
        samples: dict[int, object] = {}
        engine.sample(self.requests, samples.__setitem__)
        return sum(len(sample.token_ids) for sample in samples.values())

    def library(self) -> int:
        pad = self.tokenizer.pad_token_id
        width = max(map(len, self.prompts))
        size = self.case.group_size
        rows = [[pad] * (width - len(p)) + list(p) for p in self.prompts for _ in range(size)]
        mask = [[0] * (width - len(p)) + [1] * len(p) for p in self.prompts for _ in range(size)]
        least = None if self.case.stops else self.case.completion_tokens
        with torch.no_grad(), self.autocast():
            found = self.model.generate(
                input_ids=torch.tensor(rows),
                attention_mask=torch.tensor(mask),
                max_new_tokens=self.case.completion_tokens,
                min_new_tokens=least,
                do_sample=True,
                top_k=0,
                pad_token_id=pad,
            )
        return int((found[:, width:] != pad).sum())


def _as_prompt(prompt):
    from rlvr_core.api import Message

    return prompt if isinstance(prompt, str) else tuple(Message(**turn) for turn in prompt)


def parts_of_ours(generation: Generation) -> dict[str, float]:
    """Return the seconds of one call that go into the model, by positions a row, and drawing."""
    spent: dict[str, float] = defaultdict(float)
    forward, draw = generation.model.forward, transformers_engine.draw_tokens

    @wraps(forward)  # the engine looks at its arguments
    def timed_forward(*args, **kwargs):
        started = perf_counter()
        result = forward(*args, **kwargs)
        spent["decoding" if kwargs["input_ids"].shape[1] == 1 else "prompts"] += (
            perf_counter() - started
        )
        return result

    def timed_draw(*args):
        started = perf_counter()
        result = draw(*args)
        spent["drawing"] += perf_counter() - started
        return result

    generation.model.forward, transformers_engine.draw_tokens = timed_forward, timed_draw
    try:
        started = perf_counter()
        generation.ours(share_prompts=True)
        spent["the rest"] = perf_counter() - started - sum(spent.values())
    finally:
        generation.model.forward, transformers_engine.draw_tokens = forward, draw
    return dict(spent)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("case", nargs="?", choices=["demo", "S", "M"], default="demo")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--stops", action="store_true", help="let completions end early")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        case = make_case(arguments.case, Path(folder), stops=arguments.stops)
        generation = Generation(case)
        ways = {
            "library generate": generation.library,
            "ours, prompt once a completion": lambda: generation.ours(share_prompts=False),
            "ours, prompt once a group": lambda: generation.ours(share_prompts=True),
        }
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        tokens, peaks = {}, {}
        for _ in range(arguments.repeats + 1):
            for name, way in ways.items():  # in turn, so that all see the same machine
                clock = Clock()
                with PeakMemory() as peak:
                    tokens[name] = way()
                times[name].append(clock.read())
                peaks[name] = peak.mib
        rows = len(generation.requests)
        print(f"{case.name}: {rows} completions, {torch.get_num_threads()} threads")
        for name in ways:
            wall, cpu = zip(*times[name][1:], strict=True)
            middle = statistics.median(wall)
            print(
                f"  {name:31} median {middle:7.3f} s ({min(wall):.3f} to {max(wall):.3f}), "
                f"CPU {statistics.median(cpu):7.3f} s, {tokens[name] / middle:7.0f} tokens/s, "
                f"peak {peaks[name]:5.0f} MiB"
            )
        print("  parts of ours, prompt once a group:")
        for name, seconds in sorted(parts_of_ours(generation).items(), key=lambda item: -item[1]):
            print(f"    {name:9} {seconds:7.3f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
