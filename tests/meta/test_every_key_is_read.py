"""Every key of a stack file does something: a run reads it.

A key that is checked and then forgotten looks like a setting and is none. So every read of every
section is noted down while a tiny model is planned, trained, and prepared for the gate split.
"""

from __future__ import annotations

import io
import json
import sys

import pytest

from rlvr_core.api import Status, Verdict
from rlvr_core.config import models
from rlvr_core.verification.health import MIN_ERRORS, Record

pytest.importorskip("torch")

from accelerate import Accelerator
from rich.console import Console

from rlvr_core.cli.plan import print_plan
from rlvr_core.train.engines import vllm_options
from rlvr_core.train.prepare import prepare
from rlvr_core.train.run import train

SECTIONS = [
    one
    for one in vars(models).values()
    if isinstance(one, type) and issubclass(one, models.Section) and one is not models.Section
]
KEYS = [(section, key) for section in SECTIONS for key in section.model_fields]

ONLY_ONE_VALUE = {("Stack", "schema_version")}
"""Checked when the file is loaded; with one allowed value there is nothing else to read."""

NOT_A_USE = ("rlvr_core.config.load", "rlvr_core.config.rules", "rlvr_core.plugins.plan")
"""Loading, checking and printing a stack look at every key and use none."""


def write_stack(folder, model):
    for split in ("train", "dev", "transfer", "gate"):
        rows = [
            {
                "id": f"{split}-{number}",
                "prompt": f"{split} {number}",
                "verifier": {"type": "exact-match", "answer": "a"},
            }
            for number in range(4)
        ]
        (folder / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", "utf-8")
    stack = {
        "model": str(model),
        "data": {split: {"path": f"{split}.jsonl"} for split in models.DataSection.model_fields},
        "rollout": {"group_size": 2, "prompts_per_step": 2, "max_completion_tokens": 3},
        "verifiers": ["exact-match"],
        "control": "control-random",
        "train": {"steps": 1, "learning_rate": 1e-3, "precision": "fp32", "checkpoint_every": 1},
        "evaluate": {"splits": ["dev", "transfer"]},
        "verification": {"workers": 1},
    }
    path = folder / "stack.yaml"
    path.write_text(json.dumps(stack), "utf-8")  # JSON is YAML
    return path


@pytest.fixture(scope="module")
def keys_read(tmp_path_factory, tiny_model):
    """The (section, key) pairs that core reads in a plan, a run and before a look at the gate."""
    folder = tmp_path_factory.mktemp("keys")
    stack = write_stack(folder, tiny_model)
    read = set()
    plain = models.Section.__getattribute__

    def noting(self, name):
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if caller.startswith("rlvr_core.") and not caller.startswith(NOT_A_USE):
            read.update((cls.__name__, name) for cls in type(self).__mro__)
        return plain(self, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models.Section, "__getattribute__", noting)
        prepared = prepare(stack)
        print_plan(prepared, Console(file=io.StringIO()), as_json=False)
        train(prepared, folder / "run")
        prepare(stack, splits=["gate"])
        vllm_options(prepared.resolved.stack, Accelerator(mixed_precision="no"))
        break_a_verifier(prepared.resolved.stack.verification)
    return read


def break_a_verifier(settings):
    """Count errors until the budget is looked at, which a healthy run never does."""
    record = Record(instance=None, settings=settings)
    for _ in range(MIN_ERRORS):
        record.add(None, Verdict(status=Status.ERROR))
    assert not record.is_over_budget


@pytest.mark.parametrize(("section", "key"), KEYS, ids=lambda one: getattr(one, "__name__", one))
def test_a_key_of_the_stack_is_read(section, key, keys_read):
    if (section.__name__, key) in ONLY_ONE_VALUE:
        assert len(section.model_fields[key].annotation.__args__) == 1
        return
    assert (section.__name__, key) in keys_read, f"nothing reads {section.__name__}.{key}"


def test_a_key_that_nobody_reads_is_noticed(keys_read):
    assert ("Stack", "made_up") not in keys_read
    assert len(keys_read) > len(KEYS) // 2
