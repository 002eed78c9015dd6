"""Run folders with known content, written by the real writer from real rollouts and verdicts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from rlvr_core.api import (
    FailureCategory,
    FinishReason,
    Group,
    Message,
    Rollout,
    Row,
    Segment,
    Stage,
    Status,
    Verdict,
)
from rlvr_core.evaluate.record import evaluation_record
from rlvr_core.train.run_folder import RunFolder

HOSTILE = (
    "</script><script>alert(1)</script>",
    '<img src="https://evil.example/x.png" onerror=alert(2)> \\boxed{3}',
    "right \u202eleft-to-right no more\u202c \x00\x1b[31m",
    "lone \ud83d surrogate",
    "{{ 7 * 7 }} {% raw %} ]]> <!-- -->",
)
WORKED_EXAMPLE = (
    Message("user", "What is 2 + 3?"),
    Message("assistant", "The answer is \\boxed{5}."),
)


@dataclass(frozen=True)
class Skill:
    """How good the pretended model is."""

    knows: float
    """Chance of the right number."""
    boxes: float
    """Chance of writing it as asked."""


def make_rows(split: str, count: int) -> list[Row]:
    return [
        Row(
            id=f"{split}-{index:04d}",
            prompt=(*WORKED_EXAMPLE, Message("user", f"What is {index} + {index + 1}?")),
            verifier="math-sympy",
            ground_truth={"answer": str(2 * index + 1)},
        )
        for index in range(count)
    ]


def sample(row: Row, index: int, skill: Skill, rng: random.Random, step: int) -> Rollout:
    answer = row.ground_truth["answer"] if rng.random() < skill.knows else str(rng.randint(90, 99))
    text = f"It is \\boxed{{{answer}}}." if rng.random() < skill.boxes else f"It is {answer}."
    if rng.random() < 0.02:
        text = rng.choice(HOSTILE)
    count = rng.randint(4, 24)
    ids = [rng.randint(0, 40_000) for _ in range(count)]
    return Rollout(
        row=row,
        sample_index=index,
        completion=text,
        segments=[Segment(token_ids=ids, logps=[-rng.random() for _ in ids])],
        finish_reason=FinishReason.LENGTH if count == 24 else FinishReason.STOP,
        weights_version=step,
        sampled_under=row.prompt,
        trained_under=row.prompt,
        entropy=rng.uniform(0.5, 2.0),
    )


def judge(rollout: Rollout, *, lenient: bool = False, rng: random.Random | None = None) -> Verdict:
    """Judge as the demo's verifier would: a boxed answer, or with `lenient` any number."""
    answer, text = rollout.row.ground_truth["answer"], rollout.completion
    common = {
        "verifier": "flexible" if lenient else "math-sympy",
        "version": "0.1.0",
        "latency_s": 1e-4 if rng is None else rng.uniform(5e-5, 2e-3),
    }
    if rng is not None and rng.random() < 0.01:
        return Verdict(
            status=Status.ERROR, failure=FailureCategory.VERIFIER_TIMEOUT, score=None, **common
        )
    if not lenient and "\\boxed{" not in text:
        return Verdict(
            status=Status.FAILED,
            score=0.0,
            failure=FailureCategory.NO_ANSWER,
            stage=Stage.EXTRACT,
            **common,
        )
    passed = f" {answer}." in text.replace("\\boxed{", "").replace("}", "")
    return Verdict(
        status=Status.PASSED if passed else Status.FAILED,
        score=float(passed),
        failure=None if passed else FailureCategory.WRONG_ANSWER,
        stage=Stage.COMPARE,
        diagnostics={"extracted": text[:40]},
        **common,
    )


def collect(rows: Sequence[Row], size: int, skill: Skill, rng: random.Random, step: int, arm: str):
    groups = []
    for row in rows:
        rollouts = [sample(row, index, skill, rng, step - 1) for index in range(size)]
        for rollout in rollouts:
            rollout.verdict = judge(rollout, rng=rng)
            if rollout.verdict.is_judgement:
                is_random = arm == "control"
                rollout.reward = float(rng.randint(0, 1)) if is_random else rollout.verdict.score
        group = Group(row=row, rollouts=rollouts)
        rewards = [r.reward for r in group.valid]
        for rollout in group.valid:
            rollout.advantage = rollout.reward - sum(rewards) / len(rewards)
        groups.append(group)
    return groups


def step_metrics(step: int, groups: Sequence[Group], kept: Sequence[bool]) -> dict:
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    judged = [r for r in rollouts if r.verdict.is_judgement]
    valid = [r for r in rollouts if r.is_valid]
    failures = Counter(r.verdict.failure.value for r in rollouts if r.verdict.failure)
    return {
        "step": step,
        "epoch": step / 100,
        "reward_mean": sum(r.reward for r in valid) / len(valid),
        "pass_rate": sum(r.verdict.status is Status.PASSED for r in judged) / len(judged),
        "groups": len(groups),
        "useful_groups": sum(not group.is_dead for group in groups),
        "kept_groups": sum(kept),
        "rollouts": len(rollouts),
        "masked": len(rollouts) - len(valid),
        "errors": sum(r.verdict.status is Status.ERROR for r in rollouts),
        "length_mean": sum(r.length for r in rollouts) / len(rollouts),
        "truncated_rate": sum(r.finish_reason is FinishReason.LENGTH for r in rollouts)
        / len(rollouts),
        "entropy": sum(r.entropy for r in rollouts) / len(rollouts),
        "parse_failure_rate": failures["no_answer"] / len(judged),
        "failures": dict(failures),
        "loss": 0.1,
        "grad_norm": 1.0,
        "learning_rate": 2e-5,
        "tokens": 6000,
        "tokens_per_s": 600.0,
        "step_s": 10.0,
        "weights_version": step,
        "rounds": 1,
    }


def evaluate(folder: RunFolder, step: int, split: str, count: int, skill: Skill, samples: int = 1):
    rng = random.Random(f"{folder.path.name}-{step}-{split}")
    rollouts = [
        sample(row, index, skill, rng, step)
        for row in make_rows(split, count)
        for index in range(samples)
    ]
    verdicts = {
        "math-sympy": [judge(rollout, rng=rng) for rollout in rollouts],
        "flexible": [judge(rollout, lenient=True) for rollout in rollouts],
    }
    folder.write_evaluation(step, split, rollouts, verdicts)
    folder.append_eval(
        evaluation_record(
            step=step,
            split=split,
            rollouts=rollouts,
            verdicts=verdicts,
            temperature=1.0,
            max_completion_tokens=24,
            duration_s=1.5,
        )
    )


def make_manifest(arm: str, steps: int) -> dict:
    control = {"name": "control-random", "plugin": "control-random"} if arm == "control" else None
    return {
        "run": f"demo {arm}",
        "status": "running",
        "created": "2026-01-02T03:04:05+00:00",
        "rlvr_core": "0.1.0",
        "api_version": "1.0",
        "model": "smollm2",
        "control": control,
        "budget": {"steps": steps, "prompts_per_step": 3, "group_size": 4},
        "plugins": [
            {
                "name": "math-sympy",
                "plugin": "math-sympy",
                "family": "verifiers",
                "distribution": "rlvr-plugin-math-sympy",
                "version": "0.1.0",
                "digest": "0" * 64,
            }
        ],
        "data": {"train": {"path": "data/train.jsonl", "sha256": "0" * 64, "rows": 600}},
    }


def build_run(
    path: Path,
    arm: str = "verifier",
    *,
    steps: int = 4,
    exam: int = 60,
    prompts: int = 3,
    group_size: int = 4,
    samples: int = 1,
) -> RunFolder:
    """Write a run whose pretended model learns (verifier arm) or stays as it is (control)."""
    rng = random.Random(f"{arm}-{steps}")
    folder = RunFolder.create(path, make_manifest(arm, steps), "model: smollm2\n")
    first, last = Skill(0.25, 0.4), Skill(0.8, 0.97)

    def skill(step: int) -> Skill:
        part = 0.0 if arm == "control" else step / steps
        return Skill(
            first.knows + part * (last.knows - first.knows),
            first.boxes + part * (last.boxes - first.boxes),
        )

    with folder.lock():
        for split in ("dev", "transfer"):
            evaluate(folder, 0, split, exam, skill(0), samples)
        rows = make_rows("train", 40)
        for step in range(1, steps + 1):
            chosen = rng.sample(rows, prompts)
            groups = collect(chosen, group_size, skill(step), rng, step, arm)
            kept = [not group.is_dead for group in groups]
            folder.write_rollouts(step, groups, kept)
            folder.append_metrics(step_metrics(step, groups, kept))
        for split in ("dev", "transfer"):
            evaluate(folder, steps, split, exam, skill(steps), samples)
        folder.append_event({"step": steps, "kind": "warn", "reason": "<b>half</b> dead"})
        folder.update_manifest(status="finished")
    return folder


@pytest.fixture(scope="session")
def arms(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A verifier arm of four steps and a control arm of two, side by side as `rlvr demo` leaves."""
    root = tmp_path_factory.mktemp("demo")
    build_run(root / "verifier", "verifier")
    build_run(root / "control", "control", steps=2)
    return root / "verifier", root / "control"


@pytest.fixture
def new_run() -> Callable[..., RunFolder]:
    return build_run


@pytest.fixture
def some_groups() -> list[Group]:
    return collect(make_rows("train", 3), 4, Skill(0.5, 0.5), random.Random(7), 1, "verifier")
