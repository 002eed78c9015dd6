"""harmrlvr: one plugin that audits prompts (0), gates rewards last (6) and stops a run (12)."""

import json

import pytest

from rlvr_core.api import Status
from rlvr_core.api.errors import StackError
from rlvr_core.train.step import collect

# "e" stands for harm in these tests: the tiny model says it often enough.
WEIGHTS = {"weights": dict.fromkeys("aeioulnrst", 60.0)}
QUIET = {"allowed_share": 1.0}
BONUS = {"tiny-bonus": {"amount": 1.0}}


@pytest.fixture
def gated(runtimes, session_of, plugin_of):
    """Collect one step; return the rollouts, their harm verdicts and the plugin."""

    def start(*verifiers, name="stack", **rollout):
        sections = {"verifiers": ["tiny-ifeval", *verifiers]}
        sections["rollout"] = {"group_size": 8, "prompts_per_step": 8, **rollout}
        sections["verification"] = {"max_error_rate": 1.0}
        with runtimes(name, **sections) as runtime:
            session = session_of(runtime)
            groups = collect(runtime, session).groups
            rollouts = [r for group in groups for r in group.rollouts]
            harm = session.verdicts(rollouts, verifier="tiny-harmrlvr")
            return rollouts, harm, plugin_of(runtime, "tiny-harmrlvr")

    return start


@pytest.mark.parametrize("gate_first", [True, False])
def test_the_gate_has_the_last_word_whatever_the_file_order(gated, gate_first):
    plugins = [{"tiny-harmrlvr": WEIGHTS}, BONUS]

    rollouts, harm, _ = gated(*(plugins if gate_first else plugins[::-1]))

    unsafe = [r for r, v in zip(rollouts, harm, strict=True) if v.status is Status.FAILED]
    safe = [r for r, v in zip(rollouts, harm, strict=True) if v.status is Status.PASSED]
    assert unsafe
    assert safe
    assert all(r.reward <= 0 for r in unsafe), "a bonus must not pay for harm"
    assert all(r.reward == r.verdict.score + 1 for r in safe)
    assert all(v.failure == "unsafe" for v in harm if v.status is Status.FAILED)


def test_a_text_that_the_classifier_cannot_read_counts_as_unsafe(gated):
    config = {"weights": {"x": 1.0}, "reads_characters": 5}

    rollouts, harm, plugin = gated({"tiny-harmrlvr": config}, BONUS)

    broken = [r for r, v in zip(rollouts, harm, strict=True) if v.status is Status.ERROR]
    read = [r for r, v in zip(rollouts, harm, strict=True) if v.status is Status.PASSED]
    assert broken
    assert read
    assert all(len(r.completion) > 5 and r.reward == 0 for r in broken)
    assert all(r.reward == r.verdict.score + 1 for r in read)
    assert plugin.unreadable == len(broken)


def test_the_gate_asks_its_own_verifier_and_leaves_the_rows_verdicts_alone(gated):
    rollouts, harm, _ = gated({"tiny-harmrlvr": WEIGHTS})

    assert {v.verifier for v in harm} == {"tiny-harmrlvr"}
    assert {r.verdict.verifier for r in rollouts} == {"tiny-ifeval"}


def test_the_gate_also_binds_the_control_arm(runtimes, session_of):
    verifiers = ["tiny-ifeval", {"tiny-harmrlvr": WEIGHTS}]
    with runtimes(
        verifiers=verifiers,
        control={"control-random": {"rate": 1.0}},
        rollout={"group_size": 8, "prompts_per_step": 8},
    ) as runtime:
        session = session_of(runtime)
        groups = collect(runtime, session).groups
        rollouts = [r for group in groups for r in group.rollouts]
        harm = session.verdicts(rollouts, verifier="tiny-harmrlvr")

    paid = {(v.status, r.reward) for r, v in zip(rollouts, harm, strict=True)}
    assert paid == {(Status.PASSED, 1.0), (Status.FAILED, 0.0)}


def test_an_audit_that_refuses_stops_the_run_before_the_first_step(run, row, tmp_path):
    rows = [row("train", number) for number in range(8)]
    rows[3]["prompt"] = "xxxxxx"
    rows[5]["prompt"] = "xxxx x"

    with pytest.raises(StackError) as caught:
        run(train_rows=rows, verifiers=["tiny-ifeval", "tiny-harmrlvr"])

    assert caught.value.code == "RLVR-S107"
    assert "2 of 8 prompts ask for harm" in caught.value.cause
    folder = tmp_path / "runs" / "run"
    assert not (folder / "metrics.jsonl").exists()
    assert not list((folder / "rollouts").iterdir())
    assert not list((folder / "checkpoints").iterdir())
    assert "train-3" in (folder / "events.jsonl").read_text()
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["status"] == "failed"
    assert "refused" in manifest["ended"]["reason"]


def test_a_harmless_pool_is_audited_and_trained_on(run):
    finished = run(verifiers=["tiny-ifeval", "tiny-harmrlvr"])

    [audit] = finished.events("prompt-audit")
    assert (audit["monitor"], audit["severity"], audit["rows"]) == ("tiny-harmrlvr", "warn", [])
    assert finished.outcome.status == "finished"


def test_a_reward_that_pays_for_harm_is_noticed_and_ends_the_run(run):
    finished = run(
        verifiers=[
            "tiny-ifeval",
            {"tiny-letter-pay": {"letter": "e"}},
            {"tiny-harmrlvr": {"weights": {"e": 30.0}}},
        ],
        rollout={"group_size": 16, "prompts_per_step": 8},
        train={"steps": 6},
    )

    [stop] = finished.events("stop")
    assert stop["monitor"] == "tiny-harmrlvr"
    assert stop["reason"].startswith("rewards and harm correlate: r = ")
    assert finished.outcome.status == finished.manifest["status"] == "stopped"
    assert finished.outcome.reason == finished.manifest["ended"]["reason"] == stop["reason"]
    assert len(finished.lines("metrics.jsonl")) == stop["step"] < 6


def test_the_correlation_has_the_golden_number(fixture):
    found = fixture("correlation")([1, 1, 0, 0, 1, 0], [4, 5, 1, 1, 5, 2])

    assert found == pytest.approx(0.9622505, abs=1e-6)
