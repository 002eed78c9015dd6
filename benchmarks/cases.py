"""What the speed and memory scripts measure on: three models with their prompts, and our step.

``demo`` is the step of ``rlvr demo`` with 8 prompts: SmolLM2-135M, two worked examples in every
prompt, bfloat16 autocast. ``S`` and ``M`` are random models, small enough that the loop itself
shows, in float32, with prompts and completions of fixed length.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from accelerate import Accelerator
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging as transformers_logging

from rlvr_core.api import Group
from rlvr_core.data.arithmetic import SIZES, make_arithmetic
from rlvr_core.models.source import resolve_model
from rlvr_core.testing.tiny_model import make_tiny_model
from rlvr_core.train.build import load_model, open_runtime
from rlvr_core.train.prepare import prepare
from rlvr_core.train.runtime import Runtime
from rlvr_core.train.session import StepSession
from rlvr_core.train.step import collect

transformers_logging.disable_progress_bar()

DEMO_GROUP = 8
DEMO_PROMPTS = 8
DEMO_COMPLETION = 24
MICRO_BATCH_ROWS = {"demo": 16, "S": 8, "M": 8}
"""Completions in one forward pass of training, where prompts are not shared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One model with its prompts, on disk."""

    name: str
    model: Path
    rows: list[dict]
    """Rows of the data file; of fixed length in S and M."""
    prompts_per_step: int
    group_size: int
    completion_tokens: int
    precision: str
    stops: bool
    """Whether a completion may end before its limit."""

    @property
    def micro_batch_rows(self) -> int:
        return MICRO_BATCH_ROWS[self.name]


def make_case(name: str, folder: Path, *, stops: bool) -> Case:
    """Write the model and the rows of a case to `folder`."""
    if name == "demo":
        make_arithmetic(folder / "data", 0, 2, SIZES, "math-sympy")
        lines = (folder / "data/train.jsonl").read_text("utf-8").splitlines()
        return Case(
            name=name,
            model=Path(resolve_model("smollm2", print, folder)),
            rows=[json.loads(line) for line in lines],
            prompts_per_step=DEMO_PROMPTS,
            group_size=DEMO_GROUP,
            completion_tokens=DEMO_COMPLETION,
            precision="bf16",
            stops=stops,
        )
    hidden, layers, completion, group = {"S": (128, 2, 32, 4), "M": (256, 4, 64, 8)}[name]
    rows = [
        {
            "id": f"row-{number:04d}",
            "prompt": f"{number:04d} is the number of prompt x "[:32].ljust(32, "."),
            "verifier": {"type": "exact-match", "answer": "a"},
        }
        for number in range(400)
    ]
    return Case(
        name=name,
        model=random_model(folder / "model", hidden, layers),
        rows=rows,
        prompts_per_step=16 // group,
        group_size=group,
        completion_tokens=completion,
        precision="fp32",
        stops=False,
    )


def random_model(folder: Path, hidden: int, layers: int) -> Path:
    """Write a random Llama with an untied head and the byte tokenizer without a chat template."""
    make_tiny_model(folder, hidden=32, layers=1, positions=1024)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    tokenizer.chat_template = None
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=round(2.75 * hidden / 16) * 16,
        num_hidden_layers=layers,
        num_attention_heads=4,
        max_position_embeddings=1024,
        tie_word_embeddings=False,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@contextmanager
def our_runtime(case: Case, folder: Path, *, layout: str) -> Iterator[Runtime]:
    """Open the runtime of a real stack for a case.

    Args:
        case: Its rows become the train split.
        folder: For the stack file.
        layout: ``shared`` or ``rows``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in case.rows))
    longest = 512 if case.name == "demo" else 1024
    tokens = {"shared": 640 if case.name == "demo" else longest, "rows": None}[layout]
    stack = {
        "schema_version": 1,
        "model": str(case.model),
        "data": {"train": {"path": "train.jsonl"}},
        "rollout": {
            "group_size": case.group_size,
            "prompts_per_step": case.prompts_per_step,
            "max_completion_tokens": case.completion_tokens,
            "prompt_format": "auto",
        },
        "verifiers": [case.rows[0]["verifier"]["type"]],
        "advantage": ["grpo", {"ppo-clip": {"aggregation": "token-mean"}}],
        "train": {
            "steps": 1000,
            "learning_rate": 2e-5 if case.name == "demo" else 1e-4,
            "precision": case.precision,
            "layout": layout,
            "micro_batch_tokens": tokens or case.micro_batch_rows * rows_width(case),
        },
        "evaluate": {"splits": []},
        "verification": {"workers": 1},
    }
    path = folder / "stack.yaml"
    path.write_text(json.dumps(stack), "utf-8")
    prepared = prepare(path)
    accelerator = Accelerator(mixed_precision="bf16" if case.precision == "bf16" else "no")
    loaded = load_model(case.model)
    rows = prepared.splits["train"]
    with open_runtime(prepared.resolved, loaded, rows, accelerator, str(case.model)) as runtime:
        if not case.stops:
            runtime.engine._stop_ids = frozenset()
        yield runtime


def collect_alive(runtime: Runtime, number: int) -> tuple[StepSession, list[Group]]:
    """Sample and verify the groups of a step; rewards 0, 1, 0, 1, … then keep all of them alive."""
    session = StepSession(
        runtime=runtime,
        step=number,
        weights_version=number - 1,
        prompts_drawn=(number - 1) * runtime.stack.rollout.prompts_per_step,
    )
    runtime.engine.push(runtime.policy.model, number - 1)
    groups = collect(runtime, session).groups
    for group in groups:
        for index, rollout in enumerate(group.rollouts):
            rollout.reward = float(index % 2)
    return session, groups


def rows_width(case: Case) -> int:
    """Return the widest row of a case: the longest prompt and a whole completion."""
    longest = 104 if case.name == "demo" else 32
    return longest + case.completion_tokens
