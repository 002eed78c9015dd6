"""Every number of the summary, computed a second time from the files."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from math import comb, sqrt
from pathlib import Path
from statistics import mean

import pyarrow.parquet as pq
import pytest

from rlvr_core.api import RunFolderError
from rlvr_core.evaluate.record import evaluation_record
from rlvr_core.report.read import find_arms, read_run
from rlvr_core.report.summary import CURVES, summarise
from rlvr_core.train.run_folder import RunFolder


@pytest.fixture(scope="module")
def summary(arms):
    return summarise(read_run(arms[0]), read_run(arms[1]))


def table(path: Path, name: str) -> list[dict]:
    return pq.read_table(path / name).to_pylist()


def log(path: Path, name: str) -> list[dict]:
    return [json.loads(line) for line in (path / name).read_text().splitlines()]


def passes(rows: list[dict], grader: str) -> dict[str, bool]:
    found = {}
    for row in rows:
        (verdict,) = [v for v in row["verdicts"] if v["grader"] == grader]
        if verdict["status"] in ("passed", "failed"):
            found[row["row_id"]] = verdict["status"] == "passed"
    return found


def golden_wilson(k, n, z=1.959964):
    p, d = k / n, 1 + z * z / n
    h = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (p + z * z / (2 * n) - h) / d, (p + z * z / (2 * n) + h) / d


def golden_mcnemar(b, c):
    n = b + c
    return min(1.0, 2 * sum(comb(n, i) for i in range(min(b, c) + 1)) / 2**n)


def test_every_accuracy_is_what_the_parquet_files_say(arms, summary):
    for path, arm in zip(arms, summary.arms, strict=True):
        assert len(arm.accuracies) == 2 * 2 * 2
        for point in arm.accuracies:
            rows = table(path, point.file)
            found = passes(rows, point.grader)
            verdicts = [v for r in rows for v in r["verdicts"] if v["grader"] == point.grader]
            unparsed = [v for v in verdicts if v["failure"] in ("no_answer", "malformed")]
            assert point.prompts == len({row["row_id"] for row in rows})
            assert point.verdicts == len(rows)
            assert point.passed == sum(found.values())
            assert point.masked == len(rows) - len(found)
            assert point.accuracy == pytest.approx(mean(found.values()))
            golden = golden_wilson(point.passed, len(found))
            assert (point.low, point.high) == pytest.approx(golden, rel=1e-9)
            assert point.parse_failure_rate == pytest.approx(len(unparsed) / len(found))
            assert point.length_mean == pytest.approx(
                mean(sum(len(s["token_ids"]) for s in row["segments"]) for row in rows)
            )
            cut = [row["finish_reason"] == "length" for row in rows]
            assert point.truncated_rate == pytest.approx(mean(cut))
            assert point.entropy == pytest.approx(mean(row["entropy"] for row in rows))


def test_some_verdicts_of_the_fixture_are_masked(summary):
    assert sum(point.masked for arm in summary.arms for point in arm.accuracies) > 0


def test_every_change_is_paired_by_prompt(arms, summary):
    folders = dict(zip(("verifier", "control"), arms, strict=True))
    assert len(summary.changes) == 8
    for change in summary.changes:
        path = folders[change.arm]
        before = passes(table(path, change.before.file), change.grader)
        after = passes(table(path, change.after.file), change.grader)
        common = before.keys() & after.keys()
        gained = sum(after[row] > before[row] for row in common)
        lost = sum(after[row] < before[row] for row in common)
        paired = change.paired
        assert paired.prompts == len(common)
        assert (paired.gained, paired.lost) == (gained, lost)
        assert paired.difference == pytest.approx((gained - lost) / len(common))
        assert paired.p_value == pytest.approx(golden_mcnemar(gained, lost))
        assert paired.low <= paired.difference <= paired.high
        deviation = sqrt(((gained + lost) / len(common) - paired.difference**2) / len(common))
        assert paired.high - paired.low == pytest.approx(2 * 1.96 * deviation, rel=0.15)


def test_the_verifier_arm_is_separated_and_the_control_arm_is_not(summary):
    verdicts = {(c.arm, c.split, c.grader): c.paired.separated for c in summary.changes}
    assert verdicts["verifier", "dev", "math-sympy"]
    assert not verdicts["control", "dev", "math-sympy"]
    said = "\n".join(summary.sentences)
    assert "a gain that is separated from chance" in said
    assert "not separated from its start" in said
    assert "The arms differ in length (4 and 2 steps)" in said


def test_the_share_of_the_answer_format_is_strict_gain_minus_lenient_gain(arms, summary):
    share = next(s for s in summary.format_shares if (s.arm, s.split) == ("verifier", "dev"))
    tables = [table(arms[0], f"evaluations/{step:06d}-dev.parquet") for step in (0, 4)]
    strict, lenient = (
        [passes(rows, grader) for rows in tables] for grader in ("math-sympy", "flexible")
    )
    common = set.intersection(*(set(found) for found in (*strict, *lenient)))
    gains = [
        mean(after[row] - before[row] for row in common) for before, after in (strict, lenient)
    ]
    assert share.prompts == len(common)
    assert (share.strict_gain, share.lenient_gain) == pytest.approx(gains)
    assert share.format_gain == pytest.approx(gains[0] - gains[1])
    assert share.low <= share.format_gain <= share.high
    assert any("come from writing the answer as asked" in text for text in summary.sentences)


def test_every_curve_is_what_the_rollouts_say(arms, summary):
    for path, arm in zip(arms, summary.arms, strict=True):
        found: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for step in range(1, arm.steps_done + 1):
            rows = table(path, f"rollouts/{step:06d}.parquet")
            judged = [row for row in rows if row["status"] in ("passed", "failed")]
            rewards = [row["reward"] for row in rows if row["reward"] is not None]
            unparsed = [row["failure"] in ("no_answer", "malformed") for row in judged]
            found["reward_mean"].append((step, mean(rewards)))
            found["pass_rate"].append((step, mean(r["status"] == "passed" for r in judged)))
            found["parse_failure_rate"].append((step, mean(unparsed)))
            found["length_mean"].append((step, mean(row["length"] for row in rows)))
            found["entropy"].append((step, mean(row["entropy"] for row in rows)))
        assert set(arm.curves) == set(CURVES)
        for key, points in arm.curves.items():
            assert [step for step, _ in points] == [step for step, _ in found[key]]
            assert [y for _, y in points] == pytest.approx([y for _, y in found[key]]), key


def test_totals_and_verifier_health_are_what_the_rollouts_say(arms, summary):
    for path, arm in zip(arms, summary.arms, strict=True):
        files = sorted(path.glob("rollouts/*.parquet"))
        rows = [row for file in files for row in pq.read_table(file).to_pylist()]
        metrics = log(path, "metrics.jsonl")
        assert arm.rollouts == len(rows)
        assert arm.masked == sum(row["reward"] is None for row in rows)
        assert arm.train_duration_s == sum(line["step_s"] for line in metrics)
        assert arm.tokens_per_s == sum(line["tokens"] for line in metrics) / arm.train_duration_s
        (health,) = arm.health
        assert (health.verifier, health.versions) == ("math-sympy", ["0.1.0"])
        assert health.verdicts == len(rows)
        assert health.statuses == Counter(row["status"] for row in rows)
        assert health.failures == Counter(row["failure"] for row in rows if row["failure"])
        latencies = sorted(row["latency_s"] for row in rows)
        assert health.latency_median_s == latencies[len(rows) // 2]
        assert health.latency_max_s == latencies[-1]
        assert arm.steps_done == len(metrics) == arm.steps_planned
        assert arm.event_kinds == {"warn": 1}


def test_without_a_control_arm_no_cause_is_claimed(arms):
    said = "\n".join(summarise(read_run(arms[0])).sentences)
    assert "no control arm, so nothing can be said about what caused" in said


def test_arms_of_equal_length_are_compared_with_each_other(tmp_path, new_run):
    new_run(tmp_path / "verifier", "verifier", steps=2)
    new_run(tmp_path / "control", "control", steps=2)
    summary = summarise(read_run(tmp_path / "verifier"), read_run(tmp_path / "control"))
    comparison = summary.comparisons[0]
    assert (comparison.split, comparison.grader, comparison.step) == ("dev", "math-sympy", 2)
    name = "evaluations/000002-dev.parquet"
    real, control = (
        passes(table(tmp_path / arm, name), "math-sympy") for arm in ("verifier", "control")
    )
    common = real.keys() & control.keys()
    assert comparison.paired.difference == pytest.approx(
        mean(real[row] - control[row] for row in common)
    )
    assert any("verifier arm minus control arm" in text for text in summary.sentences)


def test_evaluations_under_other_conditions_are_shown_but_not_subtracted(tmp_path, new_run):
    path = new_run(tmp_path / "run").path
    evals = log(path, "evals.jsonl")
    for record in evals[2:]:
        record["temperature"] = 0.2
    (path / "evals.jsonl").write_text("".join(json.dumps(r) + "\n" for r in evals))
    summary = summarise(read_run(path))
    assert {change.paired for change in summary.changes} == {None}
    assert summary.changes[0].why_not == "temperature differs: 1.0 and 0.2"
    assert summary.format_shares == []
    assert any("not subtracted, because temperature differs" in s for s in summary.sentences)


def test_a_run_without_a_single_step_can_be_summarised(tmp_path):
    folder = RunFolder.create(tmp_path / "r", {"run": "r", "budget": {"steps": 5}}, "")
    summary = summarise(read_run(folder.path))
    assert summary.sentences[0].startswith("Incomplete: the verifier arm has 0 of 5 steps")
    assert summary.changes == []


def test_a_repeated_step_counts_once_and_the_last_word_holds(tmp_path):
    folder = RunFolder.create(tmp_path / "r", {"run": "r"}, "")
    for step, reward in ((1, 0.1), (2, 0.2), (2, 0.9)):
        folder.append_metrics({"step": step, "reward_mean": reward})
    assert summarise(read_run(folder.path)).verifier.curves["reward_mean"] == [(1, 0.1), (2, 0.9)]


def test_several_samples_a_prompt_do_not_narrow_the_interval(tmp_path, new_run):
    path = new_run(tmp_path / "run", steps=1, samples=4).path
    record = log(path, "evals.jsonl")[0]
    assert (record["prompts"], record["samples_per_prompt"]) == (60, 4)
    strict = record["graders"]["math-sympy"]
    assert strict["verdicts"] == 240
    golden = golden_wilson(60 * strict["accuracy"], 60)
    assert (strict["low"], strict["high"]) == pytest.approx(golden)
    change = summarise(read_run(path)).changes[0]
    assert change.paired.prompts == 60


def test_an_evaluation_where_nothing_was_judged_has_no_accuracy(some_groups):
    rollouts = some_groups[0].rollouts
    broken = [r.verdict.__class__(status="error", failure=None) for r in rollouts]
    record = evaluation_record(
        step=0,
        split="dev",
        rollouts=rollouts,
        verdicts={"v": broken},
        temperature=1.0,
        max_completion_tokens=24,
        duration_s=1.0,
    )
    said = record["graders"]["v"]
    assert (said["masked"], said["accuracy"], said["low"]) == (4, None, None)


def test_a_damaged_table_is_named(tmp_path, new_run):
    path = new_run(tmp_path / "run", steps=1).path
    (path / "rollouts" / "000001.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(RunFolderError, match=r"000001\.parquet cannot be read"):
        summarise(read_run(path))


def test_a_demo_folder_is_recognised(arms):
    assert find_arms(arms[0].parent) == arms
    assert find_arms(arms[0]) == (arms[0], None)
