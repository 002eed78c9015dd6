"""Which precision a run computes in."""

import json

import pytest
from accelerate.state import AcceleratorState

from rlvr_core.train import processes, run
from rlvr_core.train.prepare import prepare


@pytest.fixture(autouse=True)
def fresh_state():
    """Accelerate keeps the first precision of a process for all."""
    AcceleratorState._reset_state(True)
    yield
    AcceleratorState._reset_state(True)


class Said:
    """A reporter that keeps what it is told."""

    def __init__(self):
        self.phases = []

    def phase(self, text):
        self.phases.append(text)

    def step(self, record):
        pass

    evaluation = event = step


@pytest.mark.parametrize("is_native", [True, False])
@pytest.mark.parametrize(
    ("asked", "native", "imitating"),
    [("auto", "bfloat16", "float32"), ("bf16",) + ("bfloat16",) * 2, ("fp32",) + ("float32",) * 2],
)
def test_bfloat16_is_not_imitated_unless_it_is_asked_for(
    write_stack, tmp_path, monkeypatch, asked, native, imitating, is_native
):
    for module in (processes, run):
        monkeypatch.setattr(module, "computes_bf16", lambda device: is_native)
    stack = write_stack(train={"steps": 1, "precision": asked})
    said = Said()

    run.train(prepare(stack), tmp_path / "run", reporter=said)

    found = json.loads((tmp_path / "run" / "manifest.json").read_text())["computation"]
    assert found["matrix_products"] == (native if is_native else imitating)
    warned = [text for text in said.phases if "only imitates bfloat16" in text]
    assert len(warned) == (asked == "bf16" and not is_native)
