"""What a run writes down, measures and says about itself, and who may disturb it."""

from __future__ import annotations

import io
import json
import math

import pytest
import stacks
import torch
from rich.console import Console

from rlvr_core.api import Action, ActionKind, Aggregation
from rlvr_core.api.events import STEP_METRICS
from rlvr_core.builtin.ppo_clip import PpoClipConfig
from rlvr_core.cli.live import LiveReporter
from rlvr_core.plugins import border
from rlvr_core.plugins.resolve import DEFAULT_ANSWERS
from rlvr_core.train.prepare import prepare
from rlvr_core.train.run import train

from .conftest import HERE, Finished, data_row, write_faulty_stack

ROOT = HERE.parents[1]


@pytest.fixture(scope="module")
def shown():
    """The text that a terminal without colours got from the run below."""
    return io.StringIO()


@pytest.fixture(scope="module")
def finished(tmp_path_factory, tiny_model, shown):
    """Three steps with evaluations; dev has the rows of train, and one prompt with two answers."""
    folder = tmp_path_factory.mktemp("records")
    same = [data_row(number) for number in range(4)]
    twice = [
        data_row(90, prompt="which letter?", verifier={"type": "exact-match", "answer": "a"}),
        data_row(91, prompt="which letter?", verifier={"type": "odd", "does": "half"}),
    ]
    stack = write_faulty_stack(
        folder / "stack",
        tiny_model,
        train_rows=[*same, data_row(7, does="abstain", samples=[0])],
        dev_rows=[*same, *twice],
        verifiers=["odd", "exact-match"],
        evaluate={"splits": ["dev"], "every": 1},
        train={"steps": 3, "learning_rate": 1e-2, "precision": "fp32", "checkpoint_every": 1},
        rollout={"prompts_per_step": 2},
        verification={"workers": 1, "max_error_rate": 1.0},
    )
    with LiveReporter(Console(file=shown, width=200), "run", 3) as reporter:
        outcome = train(prepare(stack), folder / "run", reporter=reporter)
    return Finished(folder / "run", outcome)


def evaluated(finished, step):
    import pyarrow.parquet as parquet

    return parquet.read_table(finished.folder / f"evaluations/{step:06d}-dev.parquet").to_pylist()


def test_every_step_keeps_a_table_of_its_own(finished):
    tables = [finished.rollouts(step) for step in (1, 2, 3)]

    assert [len(table) for table in tables] == [8, 8, 8]
    assert len({tuple(line["completion"] for line in table) for table in tables}) == 3


def test_every_key_of_a_steps_record_is_known_as_cores_own(finished):
    assert finished.metrics[0].keys() - {"clip_low", "clip_high"} == STEP_METRICS


def test_lengths_on_record_are_those_of_what_was_sampled(finished):
    for step, record in enumerate(finished.metrics, start=1):
        table = finished.rollouts(step)
        lengths = [len(line["segments"][0]["token_ids"]) for line in table]
        assert [line["length"] for line in table] == lengths
        assert max(lengths) <= 6
        assert record["length_mean"] == pytest.approx(sum(lengths) / len(lengths))


def test_cut_completions_and_broken_verdicts_are_counted_apart(run, row):
    finished = run(
        train_rows=[row(number, does="raise", samples=[0]) for number in range(4)],
        train={"steps": 1},
        verification={"workers": 1, "max_error_rate": 1.0},
    )

    [record] = finished.metrics
    table = finished.rollouts()
    cut = sum(line["finish_reason"] == "length" for line in table)
    assert record["truncated_rate"] == cut / len(table)
    assert cut > 0
    assert record["errors"] == sum(line["status"] == "error" for line in table) == 4


def test_rollouts_are_sampled_from_the_weights_of_their_own_step(finished):
    made = 0
    for step, record in enumerate(finished.metrics, start=1):
        assert {line["weights_version"] for line in finished.rollouts(step)} == {made}
        made += record["updates"]
    assert made == 3


def test_evaluations_begin_before_the_first_step(finished):
    assert [record["step"] for record in finished.evals] == [0, 1, 2, 3]


def test_one_sample_a_prompt_gives_an_evaluation_without_nan(finished):
    def numbers(value):
        if isinstance(value, dict):
            return [one for item in value.values() for one in numbers(item)]
        return [value] if isinstance(value, int | float) else []

    for record in finished.evals:
        assert record["samples_per_prompt"] == 1
        assert "non_finite" not in record
        assert all(math.isfinite(number) for number in numbers(record))


def test_slow_answers_of_an_evaluation_are_waited_for(run):
    finished = run(
        dev_rows=[data_row(number, "dev", does="doze") for number in range(2)],
        evaluate={"splits": ["dev"]},
        train={"steps": 1},
    )

    assert len(finished.evals) == 2
    for record in finished.evals:
        grader = record["graders"]["odd"]
        assert (grader["verdicts"], grader["masked"]) == (2, 0)
    assert [line["verdicts"][0]["score"] for line in evaluated(finished, 1)] == [0.5, 0.5]


def test_rows_with_one_prompt_and_different_answers_are_measured_apart(finished):
    lines = {line["row_id"]: line for line in evaluated(finished, 0)}

    assert len(lines) == 6
    first, second = lines["train-90"], lines["train-91"]
    assert first["prompt"] == second["prompt"]
    assert first["completion"] != second["completion"], "each row has randomness of its own"
    assert [line["verdicts"][0]["verifier"] for line in (first, second)] == ["exact-match", "odd"]
    assert [line["verdicts"][0]["score"] for line in (first, second)] == [0.0, 0.5]
    assert finished.evals[0]["prompts"] == 6


def test_equal_ids_in_two_splits_are_kept_apart(finished):
    trained = {line["row_id"]: line["completion"] for line in finished.rollouts()}
    measured = {line["row_id"]: line["completion"] for line in evaluated(finished, 0)}
    both = trained.keys() & measured.keys()

    assert both
    assert all(trained[one] != measured[one] for one in both), "not the same random numbers"


def test_a_prompt_is_the_same_in_training_and_in_evaluation(finished):
    trained = {
        line["row_id"]: line["sampled_under"]
        for step in (1, 2, 3)
        for line in finished.rollouts(step)
    }
    measured = {line["row_id"]: line["sampled_under"] for line in evaluated(finished, 0)}

    assert len(trained.keys() & measured.keys()) >= 3
    assert all(measured[one] == text for one, text in trained.items() if one in measured)


def test_ids_sampled_from_are_the_same_in_training_and_in_evaluation(tmp_path, tiny_model):
    from rlvr_core.train.measuring import measure_share

    asked = []
    path = write_faulty_stack(tmp_path / "stack", tiny_model, dev_rows=[data_row(0)])
    with stacks.open_runtime_of(path) as runtime:
        real = runtime.engine.sample
        runtime.engine.sample = lambda requests, told: (
            asked.append({request.prompt_ids for request in requests}),
            real(requests, told),
        )
        rows = runtime.train_rows[:1]
        stacks.new_session(runtime).sample(rows, 2)
        measure_share(runtime, "dev", rows, weights_version=0)

    assert len(asked) == 2
    assert asked[0] == asked[1]


def test_what_is_shown_of_a_step_is_no_loss_of_zero(finished, shown):
    text = shown.getvalue()
    line = next(line for line in text.splitlines() if "step 1/3" in line)

    assert "useful groups" in line
    assert "reward" in line
    assert "loss" not in line
    record = finished.metrics[0]
    assert record["grad_norm"] > 0
    assert abs(record["loss"]) < 1e-6, "which is right at a ratio of 1, and says nothing"


def test_how_the_model_is_computed_is_shown_and_stored(finished, shown):
    stored = finished.manifest["computation"]

    assert stored["device"] == "cpu"
    assert stored["attention"] in ("sdpa", "eager")
    assert (stored["weights"], stored["matrix_products"]) == ("float32", "float32")
    assert stored["prompts_computed_once"] is True
    assert f"computing on cpu with {stored['attention']} attention" in shown.getvalue()


def test_the_same_seed_makes_the_same_rollouts_and_weights(run):
    sections = {"train": {"steps": 2, "learning_rate": 1e-2}}
    first, second = run("first", **sections), run("second", **sections)

    for step in (1, 2):
        for one, other in zip(first.rollouts(step), second.rollouts(step), strict=True):
            del one["latency_s"], other["latency_s"]
            assert one == other
    for name, weight in first.weights().items():
        assert torch.equal(weight, second.weights()[name]), name


@pytest.mark.parametrize("how", ["raise", "exit"])
def test_a_monitor_that_breaks_at_every_hook_disturbs_nothing(run, how):
    finished = run(
        monitors=[{"odd-watcher": {"how": how}}], evaluate={"splits": ["dev"]}, train={"steps": 1}
    )

    assert finished.outcome.status == "finished"
    hooks = [reason.split("rlvr_", 1)[1].split()[0] for reason in finished.reasons("monitor-fault")]
    assert hooks == [
        "run_start",
        *["eval_prompts", "eval_end"],
        "step_end",
        *["eval_prompts", "eval_end"],
        "run_end",
    ]
    assert len(finished.evals) == 2


def test_an_action_that_cannot_be_applied_is_the_monitors_fault(run):
    finished = run(
        monitors=[{"odd-acts": {"kind": "set-learning-rate", "value": "nan"}}], train={"steps": 1}
    )

    assert finished.outcome.status == "finished"
    [said] = finished.reasons("monitor-fault")
    assert "expected a finite number of at least 0 for set-learning-rate, got float nan" in said
    assert finished.metrics[0]["learning_rate"] == 1e-3


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        (ActionKind.SET_LEARNING_RATE, -1.0, "got float -1.0"),
        (ActionKind.SET_LEARNING_RATE, "1.0", "got str '1.0'"),
        (ActionKind.SET_LEARNING_RATE, None, "got None"),
        (ActionKind.SET_KL, math.inf, "expected a finite number of at least 0 for set-kl"),
        ("dance", 1.0, "expected an ActionKind, got str 'dance'"),
    ],
)
def test_an_action_must_be_one_that_core_knows_with_a_value_it_can_use(kind, value, says):
    with pytest.raises(border.Unfit) as refused:
        border.actions(Action(kind=kind, value=value, reason="because"))

    assert says in str(refused.value)


def test_a_plugin_is_imported_once_in_each_process(tmp_path, tiny_model, monkeypatch):
    log = tmp_path / "imports.log"
    site = tmp_path / "site"
    info = site / "rlvr_plugin_noisy-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: rlvr-plugin-noisy\nVersion: 0.1.0\n"
    )
    (info / "entry_points.txt").write_text("[rlvr.verifiers]\nnoisy = noisy_verifier:Noisy\n")
    (site / "noisy_verifier.py").write_text(
        "import os\n"
        "from fixture_faults import Odd\n"
        f"with open({str(log)!r}, 'a') as file:\n"
        "    file.write(f'{os.getpid()}\\n')\n"
        "class Noisy(Odd):\n"
        "    api_version = '1.0'\n"
    )
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.chdir(tmp_path)
    rows = [data_row(n, verifier={"type": "noisy"}) for n in range(4)]
    stack = write_faulty_stack(
        tmp_path / "stack",
        tiny_model,
        rows,
        verifiers=["odd", "noisy", {"again": {"plugin": "noisy"}}],
        verification={"workers": 2},
    )

    train(prepare(stack), tmp_path / "run")

    processes = log.read_text().split()
    assert len(processes) == len(set(processes)), "no process imports a module twice"
    assert 2 <= len(processes) <= 3, "this one and up to two workers, as many as were needed"


def test_the_page_of_the_step_states_the_formula_of_every_estimator_and_loss():
    page = (ROOT / "docs/explanation/the-step.md").read_text("utf-8")

    assert {plugin for _, plugin in DEFAULT_ANSWERS.values()} >= {"grpo", "ppo-clip"}
    for name in ("grpo      A_i", "dr-grpo   A_i", "objective = min", "kl_coefficient · KL"):
        assert name in page
    for aggregation in Aggregation:
        assert f"\n{aggregation.value} " in page, "with its denominator"
    kinds = PpoClipConfig.model_fields["kl_estimator"].annotation.__args__
    assert all(f"({kind})" in page for kind in kinds)
    assert "Denominators are counts" in page


def test_a_failure_says_where_and_why_in_the_manifest(run, row):
    from rlvr_core.api.errors import PluginError

    with pytest.raises(PluginError):
        run(verifiers=["odd", {"odd-shaper": {"value": "nan"}}])

    ended = run.read().manifest["ended"]
    assert "plugin 'odd-shaper'" in ended["reason"]
    assert "got float nan" in ended["cause"]
    assert json.dumps(ended)
