"""Monitors: core alone applies and logs what they ask for; their faults stay theirs."""

import pytest


def test_a_learning_rate_is_set_from_the_next_update_on_and_logged(run):
    finished = run(
        monitors=[{"tiny-governor": {"at_step": 1, "learning_rate": 0.0001}}], train={"steps": 3}
    )

    [event] = finished.events("set-learning-rate")
    assert (event["step"], event["monitor"]) == (1, "tiny-governor")
    assert (event["before"], event["value"], event["applied"]) == (0.001, 0.0001, True)
    rates = [line["learning_rate"] for line in finished.lines("metrics.jsonl")]
    assert rates == [0.001, 0.0001, 0.0001]


def test_a_kl_coefficient_without_a_reference_is_logged_as_not_applied(run):
    finished = run(monitors=[{"tiny-governor": {"kl": 0.2}}])

    [event] = finished.events("set-kl")
    assert (event["applied"], event["value"], event["before"]) == (False, 0.2, None)
    assert finished.outcome.status == "finished"


def test_a_kl_coefficient_with_a_reference_changes_the_loss(run):
    losses = {}
    for name, kl in (("as-given", None), ("raised", 50.0)):
        finished = run(
            name,
            monitors=[{"tiny-governor": {"kl": kl}}],
            advantage=["grpo", {"ppo-clip": {"kl_coefficient": 0.001}}],
            train={"steps": 3, "learning_rate": 0.01},
        )
        losses[name] = [line["loss"] for line in finished.lines("metrics.jsonl")]
        assert [e["applied"] for e in finished.events("set-kl")] == ([True] if kl else [])

    assert losses["as-given"][0] == losses["raised"][0]
    assert losses["raised"][1] > losses["as-given"][1] + 0.01


def test_a_stop_ends_the_run_with_its_reason_everywhere(run):
    finished = run(monitors=[{"tiny-governor": {"stop_after": 2}}], train={"steps": 5})

    reason = "2 steps are enough"
    assert (finished.outcome.status, finished.outcome.reason) == ("stopped", reason)
    assert finished.manifest["status"] == "stopped"
    assert finished.manifest["ended"]["step"] == 2
    assert finished.manifest["ended"]["reason"] == reason
    [event] = finished.events("stop")
    assert (event["step"], event["reason"], event["applied"]) == (2, reason, True)
    assert len(finished.lines("metrics.jsonl")) == 2


def test_a_monitor_that_raises_is_blamed_and_the_run_goes_on(run):
    finished = run(monitors=["tiny-faulty", {"tiny-governor": {"learning_rate": 0.0005}}])

    faults = finished.events("monitor-fault")
    assert [(fault["step"], fault["monitor"]) for fault in faults] == [
        (1, "tiny-faulty"),
        (2, "tiny-faulty"),
    ]
    assert faults[0]["reason"].startswith("rlvr-plugin-contract 0.1.0: ")
    assert "KeyError: 'no such key'" in faults[0]["traceback"]
    assert finished.outcome.status == "finished"
    assert len(finished.events("set-learning-rate")) == 1, "the monitors after it must be heard"


def test_canaries_are_sampled_and_shown_but_not_counted(run):
    import pyarrow.parquet as pq

    canary = {
        "prompt": "sing",
        "verifier": "tiny-ifeval",
        "ground_truth": {"instructions": [{"kind": "words", "at_least": 1}]},
    }
    records = {}
    for name, monitors in (("without", []), ("with", [{"tiny-canaries": canary}])):
        finished = run(name, monitors=monitors, evaluate={"splits": ["dev"]})
        records[name] = [
            {key: value for key, value in line.items() if key != "duration_s"}
            for line in finished.lines("evals.jsonl")
        ]
    tables = [
        pq.read_table(path).to_pylist() for path in (finished.folder / "evaluations").iterdir()
    ]

    assert len(records["with"]) == 2
    assert records["with"] == records["without"]
    assert all(len(table) == 4 for table in tables)
    said = [event["reason"] for event in finished.events("warn")]
    assert len(said) == 2, said
    assert all(
        text.startswith("tiny-canaries/canary-dev ") and text.endswith(" of 5") for text in said
    )


def test_the_state_of_a_plugin_survives_a_checkpoint_and_a_resume(run, monkeypatch):
    sections = {
        "monitors": [{"tiny-governor": {"stop_after": 4}}],
        "train": {"steps": 6, "checkpoint_every": 2},
    }
    from rlvr_core.train.loop import Run

    real = Run.make_step

    def killed(self):
        if self.step == 3:
            raise KeyboardInterrupt
        return real(self)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "make_step", killed)
        with pytest.raises(KeyboardInterrupt):
            run(**sections)

    finished = run(resume=True, **sections)

    # Two steps before the checkpoint, two after it: four in all, at step 4.
    assert [entry["at_step"] for entry in finished.manifest["resumes"]] == [2]
    assert finished.outcome.reason == "4 steps are enough"
    assert finished.manifest["ended"]["step"] == 4
    assert [line["step"] for line in finished.lines("metrics.jsonl")] == [1, 2, 3, 4]
