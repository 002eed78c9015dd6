"""A real language model as judge, much too small for it: it is measured, and may not train."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from rlvr_plugin_llm_judge.calibration import read_calibration
from rlvr_plugin_llm_judge.command import main

from rlvr_core.api import RlvrError

pytestmark = pytest.mark.slow
torch = pytest.importorskip("torch")

GOLDEN = Path(__file__).parents[1] / "golden.jsonl"
ROWS = 2


@pytest.fixture(scope="module")
def generate():
    """Return a rule: what SmolLM2 replies to the messages of a request."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from rlvr_core.models.source import resolve_model

    folder = resolve_model("smollm2")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    one_at_a_time = threading.Lock()

    def reply(asked):
        assert asked.body["temperature"] == 0
        with one_at_a_time, torch.inference_mode():
            inputs = tokenizer.apply_chat_template(
                asked.body["messages"],
                add_generation_prompt=True,
                return_tensors="pt",
                return_dict=True,
            )
            limit = asked.body["max_tokens"]
            [ids] = model.generate(**inputs, max_new_tokens=limit, do_sample=False)
        new = ids[inputs["input_ids"].shape[1] :]
        return tokenizer.decode(new, skip_special_tokens=True)

    return reply


def test_smollm2_is_calibrated_and_refused_for_training(
    generate, serve, settings, tmp_path, capsys
):
    from rlvr_core.testing.tiny_model import make_tiny_model
    from rlvr_core.train.prepare import prepare
    from rlvr_core.train.run import train

    one = serve(generate, "SmolLM2-135M-Instruct")
    config = settings(one, deadline_s=300)
    config["judges"][0]["max_tokens"] = 32
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    labelled = GOLDEN.read_text("utf-8").splitlines()[: 2 * ROWS : 2]
    (tmp_path / "labelled.jsonl").write_text("\n".join(labelled), "utf-8")
    out = tmp_path / "calibration.json"
    files = [str(tmp_path / "config.json"), str(tmp_path / "labelled.jsonl")]
    code = main(["calibrate", *files, "--out", str(out), "--concurrency", "1"])
    printed = capsys.readouterr().out
    assert code in (1, 4, 5), printed
    assert "It may not train" in printed
    assert len(one.asked) > ROWS

    counts = read_calibration(str(out))
    assert counts.counts.total + counts.errors == ROWS
    row = {"prompt": "6 * 7?", "verifier": {"type": "llm-judge", "reference": "42"}}
    (tmp_path / "train.jsonl").write_text(json.dumps(row), "utf-8")
    stack = {
        "schema_version": 1,
        "model": str(make_tiny_model(tmp_path / "tiny")),
        "data": {"train": {"path": "train.jsonl"}},
        "rollout": {"max_completion_tokens": 6},
        "verifiers": [{"llm-judge": {**config, "calibration": str(out)}}],
        "train": {"steps": 1, "learning_rate": 1e-3, "precision": "fp32"},
        "evaluate": {"splits": []},
    }
    (tmp_path / "stack.yaml").write_text(json.dumps(stack), "utf-8")
    with pytest.raises(RlvrError, match="llm-judge may not train") as caught:
        train(prepare(tmp_path / "stack.yaml", []), tmp_path / "run")
    assert caught.value.code == "RLVR-S107"
