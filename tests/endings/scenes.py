"""Stacks whose runs are interrupted, killed and held up, and what is looked for afterwards."""

import json
import time

import psutil
import stacks

BOUND_S = 30.0
"""Long enough for a busy machine; what it bounds would otherwise last a minute or for ever."""

LETTERS = [chr(code) for code in range(ord("A"), ord("Z") + 1)]
EXACT_MATCH = {"type": "exact-match", "answer": LETTERS}


def trouble(hook, how, rank, step=2, **more):
    """Return the stack entry of a plugin that makes trouble."""
    return {"tiny-trouble": {"hook": hook, "how": how, "rank": rank, "step": step, **more}}


def stack_in(folder, model, truth=lambda n: EXACT_MATCH, dev_truth=None, rows=12, **sections):
    """Write a stack that has something to learn in every step, and return its path."""
    truths = {"train": truth, "dev": dev_truth or truth}
    of_splits = {
        split: [
            {"id": f"{split}-{n}", "prompt": f"{split} prompt {n}", "verifier": truths[split](n)}
            for n in range(rows)
        ]
        for split in stacks.SPLITS
    }
    given = {
        "rollout": {"max_completion_tokens": 1, "prompts_per_step": 4, "group_size": 8},
        "train": {"steps": 4, "learning_rate": 3e-2, "precision": "fp32", "checkpoint_every": 1},
        "evaluate": {"splits": ["dev"], "every": 1},
    }
    for section, values in sections.items():
        is_known = section in given
        given[section] = {**given[section], **values} if is_known else values
    verifiers = given.pop("verifiers", ["exact-match"])
    return stacks.write_stack(folder, model, of_splits, verifiers, **given)


def wait_for(condition, bound_s=BOUND_S):
    """Wait until a condition holds, and say whether it does."""
    until_s = time.monotonic() + bound_s
    while time.monotonic() < until_s:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


def family(started):
    """Return the processes that a started one has started itself."""
    return psutil.Process(started.process.pid).children(recursive=True)


def living(processes):
    """Return those that have not ended."""
    return [
        each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE
    ]


def manifest(run):
    """Return the manifest of a run."""
    return json.loads((run / "manifest.json").read_text())
