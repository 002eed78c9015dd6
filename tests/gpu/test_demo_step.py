"""The demo's step on a GPU. Not yet run on one: see benchmarks/gpu_check.py."""

import json
import math

import pytest

torch = pytest.importorskip("torch")

from accelerate import Accelerator  # noqa: E402

from rlvr_core.models.source import at_hand  # noqa: E402
from rlvr_core.testing.tiny_model import make_tiny_model  # noqa: E402
from rlvr_core.train.build import load_model, open_runtime  # noqa: E402
from rlvr_core.train.prepare import prepare  # noqa: E402
from rlvr_core.train.run import train  # noqa: E402
from rlvr_core.train.session import StepSession  # noqa: E402
from rlvr_core.train.step import collect, trainable  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU"),
]


@pytest.fixture
def demo_stack(tmp_path):
    """The demo's stack and data, as `rlvr demo` lays them out."""
    from rlvr_core.cli.demo import lay_out

    return lay_out(tmp_path / "demo", 0, "smollm2-arithmetic")


def test_demo_step_runs_on_the_gpu(demo_stack, tmp_path):
    if at_hand("smollm2") is None:
        pytest.skip("smollm2 has not been fetched to this machine")
    prepared = prepare(demo_stack, ["train.steps=2", "evaluate.splits=[dev]"])

    outcome = train(prepared, tmp_path / "run")

    assert outcome.status == "finished"
    records = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").open()]
    assert len(records) == 2
    assert all(r["loss"] is None or math.isfinite(r["loss"]) for r in records)
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert manifest["hardware"]["devices"]


def test_log_probabilities_on_the_gpu_are_those_of_the_cpu(demo_stack, tmp_path):
    model = make_tiny_model(tmp_path / "tiny")
    prepared = prepare(demo_stack, [f"model={model}", "train.precision=fp32"])
    found = {}
    for is_cpu in (True, False):
        Accelerator._shared_state.clear()
        accelerator = Accelerator(cpu=is_cpu)
        with open_runtime(
            prepared.resolved, load_model(model), prepared.splits["train"], accelerator, model
        ) as runtime:
            assert runtime.policy.model.device.type == ("cpu" if is_cpu else "cuda")
            session = StepSession(runtime=runtime, step=1, weights_version=0, prompts_drawn=0)
            rollouts = trainable(collect(runtime, session).groups)
            logps = runtime.policy_logps(rollouts)
            found[is_cpu] = (rollouts, [logps[id(rollout)].cpu() for rollout in rollouts])

    for rollout, logp_T in zip(*found[False], strict=True):
        recorded_T = torch.tensor(rollout.segments[0].logps)
        torch.testing.assert_close(logp_T, recorded_T, atol=1e-3, rtol=0)
    same = [
        one.segments[0].token_ids == other.segments[0].token_ids
        for one, other in zip(found[True][0], found[False][0], strict=True)
    ]
    assert sum(same) / len(same) > 0.95  # a draw next to a boundary may fall on its other side
