"""What the machine or a launcher adds to a run: memory that ends, settings that go unheeded."""

from __future__ import annotations

import pytest
import stacks
import torch

from rlvr_core.api.errors import PluginError, StackError
from rlvr_core.cli.main import main
from rlvr_core.config.load import load_stack
from rlvr_core.rollout.transformers_engine import TransformersEngine
from rlvr_core.train.processes import SHARDING, make_accelerator


@pytest.mark.parametrize("variable", SHARDING)
def test_a_launcher_that_asks_for_sharding_is_refused(write_stack, monkeypatch, variable):
    stack = load_stack(write_stack()).stack
    monkeypatch.setenv(variable, "true")

    with pytest.raises(StackError) as refused:
        make_accelerator(stack)

    assert refused.value.code == "RLVR-S106"
    assert SHARDING[variable] in str(refused.value)


def test_accumulation_steps_of_a_launcher_do_not_scale_the_gradient(write_stack, monkeypatch):
    found = {}
    for steps in ("1", "4"):
        monkeypatch.setenv("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", steps)
        with stacks.open_runtime_of(write_stack(steps)) as runtime:
            assert runtime.accelerator.gradient_accumulation_steps == int(steps)
            groups = stacks.made_up_groups(runtime, [[1.0, 0.0, 0.0, 0.5]])
            found[steps], _ = stacks.gradients_after(runtime, stacks.new_session(runtime), groups)

    assert any(gradient.any() for gradient in found["1"].values())
    for name, gradient in found["1"].items():
        assert torch.equal(gradient, found["4"][name]), name


def test_an_engine_that_fails_is_no_plugins_fault(run, monkeypatch):
    def fail(engine, rows, told):
        raise RuntimeError("device lost")

    monkeypatch.setattr(TransformersEngine, "_decode", fail)

    with pytest.raises(RuntimeError, match="device lost") as raised:
        run()

    assert not isinstance(raised.value, PluginError), "it is not the sampler's, which called it"


def test_memory_that_runs_out_is_named_with_what_to_lower(
    write_stack, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    stack = write_stack(advantage=["grpo", {"odd-loss": {"hoards": True}}])

    with pytest.raises(SystemExit) as ended:
        main(["train", str(stack), "--out", str(tmp_path / "run")])

    said = capsys.readouterr().err
    assert ended.value.code == 4
    assert "error[RLVR-E105] memory ran out" in said
    assert "can't allocate memory" in said
    assert "train.micro_batch_tokens" in said
