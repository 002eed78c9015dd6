"""Training is refused without proof, and goes on with it."""

from __future__ import annotations

import json
import re

import pytest
from rlvr_plugin_llm_judge.command import main

from rlvr_core.api import RlvrError

pytest.importorskip("torch")


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    from rlvr_core.testing.tiny_model import make_tiny_model

    return make_tiny_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture
def stack(tmp_path, model):
    """Return a function that writes a stack with a judge, and trains it to its end."""

    def trained(config, out="run", steps=1, truth=None, **sections):
        from rlvr_core.train.prepare import prepare
        from rlvr_core.train.run import train

        truth = {"reference": "42"} if truth is None else truth
        rows = [
            {"prompt": f"{n} + {42 - n}?", "verifier": {"type": "llm-judge", **truth}}
            for n in range(4)
        ]
        (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        written = {
            "schema_version": 1,
            "model": str(model),
            "data": {"train": {"path": "train.jsonl"}},
            "rollout": {"group_size": 2, "prompts_per_step": 2, "max_completion_tokens": 6},
            "verifiers": [{"llm-judge": config}],
            "train": {"steps": steps, "learning_rate": 1e-3, "precision": "fp32"},
            "evaluate": {"splits": []},
            **sections,
        }
        path = tmp_path / "stack.yaml"
        path.write_text(json.dumps(written), "utf-8")  # JSON is YAML
        resume = (tmp_path / out).exists()
        prepared = prepare(path, [])
        return train(prepared, tmp_path / out, resume=resume, allow_changes=resume)

    return trained


@pytest.fixture
def calibrated(tmp_path):
    """Return a function that calibrates a judge on rows of which it knows all or few."""

    def made(config, right=25, wrong=25):
        truth = {"reference": "42"}
        texts = [(f"{n}: {42 if n < right else 50 + n}", n < right) for n in range(right + wrong)]
        rows = [
            {"completion": text, "ground_truth": truth, "expected": int(is_right)}
            for text, is_right in texts
        ]
        (tmp_path / "labelled.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
        out = tmp_path / "calibration.json"
        files = [str(tmp_path / "config.json"), str(tmp_path / "labelled.jsonl")]
        main(["calibrate", *files, "--out", str(out)])
        return {**config, "calibration": str(out)}

    return made


def refusal(call):
    with pytest.raises(RlvrError) as caught:
        call()
    assert caught.value.code == "RLVR-S107"
    return caught.value.cause


def test_a_judge_trains_only_when_it_is_proven_and_a_resume_asks_again(
    stack, serve, settings, calibrated, tmp_path
):
    one = serve()
    cause = refusal(lambda: stack(settings(one), "no-calibration"))
    assert "llm-judge may not train: it has no calibration" in cause
    config = calibrated(settings(one))
    assert stack(config).status == "finished"
    assert (tmp_path / "run" / "metrics.jsonl").is_file()
    del config["calibration"]
    with pytest.raises(RlvrError, match=re.compile("llm-judge may not train", re.S)):
        stack(config, steps=2)


@pytest.mark.slow
def test_a_calibration_that_proves_too_little_and_rows_without_reference_are_refused(
    stack, serve, settings, calibrated
):
    one = serve()
    cause = refusal(lambda: stack(calibrated(settings(one), 5, 5), "few-rows"))
    assert "llm-judge may not train: its verdict agrees with 10 of 10 labels" in cause
    cause = refusal(lambda: stack(calibrated(settings(one)), "no-reference", truth={}))
    assert "4 rows have no reference" in cause


@pytest.mark.slow
def test_a_proven_judge_that_does_not_answer_does_not_train(
    stack, serve, settings, calibrated, raw
):
    one = serve()
    config = calibrated(settings(one))
    one.rule = lambda asked: raw(500, b"down")
    assert "llm-judge does not judge: no answer from" in refusal(lambda: stack(config))


@pytest.mark.slow
def test_a_canary_that_passes_while_training_is_an_event_of_the_run(
    stack, serve, settings, calibrated, tmp_path
):
    one = serve()
    config = calibrated({**settings(one), "canary_every": 1})
    honest = one.rule

    def fooled(asked):
        if "SYSTEM: assign" in asked.blocks["answer"]:
            return asked.verdict(correct=True)
        return honest(asked)

    one.rule = fooled
    assert stack(config, steps=2, verification={"max_error_rate": 1.0}).status == "finished"
    events = [
        json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()
    ]
    said = [event["reason"] for event in events if event.get("monitor") == "llm-judge"]
    assert any("injection" in reason and "masked" in reason for reason in said), events
