"""What may change between two parts of a run, who must consent, and where it is written down."""

import json
import os
import shutil
import subprocess
import sys

import fixture_resume
import pytest
import stacks
import torch
from safetensors.torch import load_file, save_file
from stacks import read_lines

from rlvr_core.api.errors import PluginError, RunFolderError, StackError
from rlvr_core.cli.main import main
from rlvr_core.report.page import write_report
from rlvr_core.train import checkpoint, manifest, run
from rlvr_core.train.prepare import prepare
from rlvr_core.train.run import train


@pytest.fixture
def learning(write_stack):
    """A stack of 2 steps that learns in each."""

    def write(**sections):
        return write_stack(
            verifiers=["resume-steady"],
            judged_by={"type": "resume-steady"},
            train={"steps": 2, "checkpoint_every": 1, "learning_rate": 1e-2},
            **sections,
        )

    return write


def manifest_of(folder):
    return json.loads((folder / "manifest.json").read_text())


def events(folder, kind):
    return [event for event in read_lines(folder / "events.jsonl") if event["kind"] == kind]


def rates(folder):
    return [record["learning_rate"] for record in read_lines(folder / "metrics.jsonl")]


def assert_same_weights(*folders):
    first, second = (load_file(checkpoint.newest(f) / "model.safetensors") for f in folders)
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.slow
def test_a_run_with_more_steps_continues_as_if_it_had_always_had_them(learning, tmp_path):
    stack, folder = learning(), tmp_path / "run"
    train(prepare(stack, ["train.steps=4"]), tmp_path / "unbroken")
    train(prepare(stack), folder)

    outcome = train(prepare(stack, ["train.steps=4"]), folder, resume=True, allow_changes=True)

    assert outcome.status == "finished"
    assert_same_weights(tmp_path / "unbroken", folder)
    found = manifest_of(folder)
    assert found["budget"]["steps"] == 4
    [entry] = found["resumes"]
    assert entry["at_step"] == 2
    assert entry["changed"] == {"train.steps": [2, 4]}
    assert "surroundings" not in entry
    [event] = events(folder, "changed")
    assert event["reason"] == "continued with changes: train.steps was 2, is 4"


@pytest.mark.slow
def test_both_stacks_stay_and_the_present_one_continues_without_a_flag(learning, tmp_path):
    stack, folder = learning(), tmp_path / "run"
    train(prepare(stack), folder)
    first = (folder / "stack.yaml").read_text()

    for steps in (3, 4):
        changed = prepare(stack, [f"train.steps={steps}"])
        train(changed, folder, resume=True, allow_changes=True)

    assert (folder / "stack.yaml").read_text() == first
    assert manifest_of(folder)["stack_file"] == "stack.003.yaml"
    for name, steps in (("stack.yaml", 2), ("stack.002.yaml", 3), ("stack.003.yaml", 4)):
        assert prepare(folder / name).resolved.stack.train.steps == steps
    outcome = train(prepare(folder / "stack.003.yaml"), folder, resume=True)
    assert outcome.status == "finished"
    with pytest.raises(RunFolderError, match=r"train\.steps was 4, is 2"):
        train(prepare(stack), folder, resume=True)


def test_the_report_says_that_a_run_was_changed_on_its_way(learning, tmp_path):
    stack, folder = learning(), tmp_path / "run"
    train(prepare(stack), folder)
    changed = ["train.steps=3", "train.learning_rate=0.02"]
    train(prepare(stack, changed), folder, resume=True, allow_changes=True)

    summary = write_report([folder], folder / "report.html")

    said = (
        "The verifier arm was continued after step 2 with changes: "
        "train.learning_rate was 0.01, is 0.02; train.steps was 2, is 3."
    )
    assert said in summary.sentences


@pytest.mark.slow
def test_changed_settings_of_the_optimiser_hold_from_then_on(learning, tmp_path, monkeypatch):
    stack, folder = learning(), tmp_path / "run"
    train(prepare(stack), folder)
    seen = []
    real = run.Run.train

    def look(self):
        seen.append(self.runtime.optimizer.param_groups[0]["weight_decay"])
        return real(self)

    monkeypatch.setattr(run.Run, "train", look)
    changed = ["train.steps=3", "train.learning_rate=0.02", "train.weight_decay=0.25"]
    train(prepare(stack, changed), folder, resume=True, allow_changes=True)

    assert seen == [0.25]
    assert rates(folder) == [0.01, 0.01, 0.02]


@pytest.mark.slow
def test_a_changed_learning_rate_holds_when_the_run_breaks_off_before_it_is_saved(
    learning, break_off, tmp_path
):
    stack, folder = learning(), tmp_path / "run"
    train(prepare(stack), folder)
    changed = prepare(stack, ["train.steps=4", "train.learning_rate=0.02"])

    break_off(changed, folder, "step 3: learning", resume=True, allow_changes=True)
    train(changed, folder, resume=True)

    assert rates(folder) == [0.01, 0.01, 0.02, 0.02]


@pytest.mark.slow
def test_what_a_monitor_set_holds_until_the_stack_says_something_else(
    learning, break_off, tmp_path, monkeypatch
):
    governor = {"resume-governor": {"learning_rate": 0.005, "kl": 0.5}}
    penalty = ["grpo", {"ppo-clip": {"kl_coefficient": 0.1}}]
    stack, folder = learning(monitors=[governor], advantage=penalty), tmp_path / "run"
    train(prepare(stack), folder)
    seen = []
    real = run.Run.train

    def look(self):
        controls = self.runtime.controls
        seen.append((controls.learning_rate, controls.kl_coefficient))
        return real(self)

    monkeypatch.setattr(run.Run, "train", look)
    # Each breaks off before it saves, so that all begin with what the first has saved.
    less = {"advantage": ["grpo", {"ppo-clip": {"kl_coefficient": 0.05}}]}
    for number, sections in enumerate(({}, less)):
        given = learning(monitors=[governor], **{"advantage": penalty, **sections})
        for overrides in (["train.steps=3"], ["train.steps=3", "train.learning_rate=0.02"]):
            copied = shutil.copytree(folder, tmp_path / f"{number} {len(overrides)}")
            for _ in range(2):
                break_off(
                    prepare(given, overrides),
                    copied,
                    "step 3: learning",
                    resume=True,
                    allow_changes=True,
                )

    kept, of_stack = (0.005, 0.02), (0.5, None)
    assert seen == [(rate, kl) for kl in of_stack for rate in kept for _ in range(2)]


@pytest.mark.parametrize("name", ["data", "plugin", "core", "model"])
def test_what_changed_is_named_and_refused_and_allowed_with_a_word(
    learning, tmp_path, monkeypatch, name
):
    stack, folder = learning(), tmp_path / "run"
    overrides = ["train.steps=3"]
    train(prepare(stack, [*overrides, "train.steps=2"]), folder)
    if name == "data":
        data = stack.parent / "train.jsonl"
        data.write_text(data.read_text().replace("one", "uno"))
        key = "data.train"
    elif name == "plugin":
        monkeypatch.setattr(manifest, "stamped_version", lambda ref: "0.2.0+abc")
        key = "plugins.resume-steady"
    elif name == "core":
        monkeypatch.setattr(manifest, "__version__", "9.9.9")
        key = "rlvr_core"
    else:
        model = tmp_path / "other-model"
        checkpoint.newest(folder).rename(model)
        overrides.append(f"model={model}")
        key = "model"

    with pytest.raises(RunFolderError) as refused:
        train(prepare(stack, overrides), folder, resume=True)
    before = manifest_of(folder)
    outcome = train(prepare(stack, overrides), folder, resume=True, allow_changes=True)

    assert refused.value.code == "RLVR-T101"
    assert key in refused.value.message
    assert "--allow-changes" in refused.value.fix
    assert before["resumes"] == []
    assert outcome.status == "finished"
    [entry] = manifest_of(folder)["resumes"]
    assert key in entry["changed"]
    train(prepare(stack, overrides), folder, resume=True)  # nothing differs any more


@pytest.fixture(scope="module")
def made(tmp_path_factory, tiny_model):
    """A stack of 1 step and a run of it, which tests take copies of."""
    folder = tmp_path_factory.mktemp("made")
    rows = [{"id": f"{n}", "prompt": f"{n}", "verifier": {"type": "resume-steady"}} for n in "abcd"]
    of_splits = dict.fromkeys(stacks.SPLITS, rows)
    stack = stacks.write_stack(
        folder / "stack", tiny_model, of_splits, ["resume-steady"], train={"steps": 1}
    )
    train(prepare(stack), folder / "run")
    return stack, folder / "run"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("plugins", None),
        ("plugins", [1]),
        ("data", [1]),
        ("data", {"train": 1}),
        ("hardware", [1]),
        ("computation", None),
        ("model", 5),
        ("control", 5),
        ("ended", 5),
        ("status", 5),
        ("stack_file", 5),
        ("stack_file", "../stack.yaml"),
        ("resumes", None),
        ("resumes", [{"at_step": 1, "changed": {"seed": [1]}}]),
    ],
)
def test_a_manifest_of_another_shape_is_refused_before_anything_is_written(
    made, tmp_path, key, value
):
    stack, folder = made[0], shutil.copytree(made[1], tmp_path / "run")
    text = json.dumps({**manifest_of(folder), key: value})
    (folder / "manifest.json").write_text(text)

    with pytest.raises(RunFolderError, match=r"manifest\.json cannot be read") as refused:
        train(prepare(stack, ["train.steps=2"]), folder, resume=True, allow_changes=True)

    assert refused.value.code == "RLVR-T104"
    assert refused.value.cause.startswith(key)
    assert (folder / "manifest.json").read_text() == text
    assert not (folder / "discarded").exists()


def test_a_manifest_that_tells_of_no_resumes_is_continued(made, tmp_path):
    stack, folder = made[0], shutil.copytree(made[1], tmp_path / "run")
    written = manifest_of(folder)
    del written["resumes"], written["stack_sha256"]
    (folder / "manifest.json").write_text(json.dumps(written))

    train(prepare(stack, ["train.steps=2"]), folder, resume=True, allow_changes=True)

    assert len(manifest_of(folder)["resumes"]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("needed_for", ["the policy", "the reference"])
def test_another_model_in_the_same_place_is_noticed(
    learning, break_off, tiny_model, tmp_path, needed_for
):
    model, folder = shutil.copytree(tiny_model, tmp_path / "model"), tmp_path / "run"
    penalty = ["grpo", {"ppo-clip": {"kl_coefficient": 0.1}}]
    sections = {"advantage": penalty} if needed_for == "the reference" else {}
    prepared = prepare(learning(**sections), [f"model={model}"])
    phase = "step 1: learning" if needed_for == "the policy" else "step 2: learning"
    break_off(prepared, folder, phase)
    was = manifest_of(folder)["initial_weights"]
    weights = load_file(model / "model.safetensors")
    other = {name: weight * 2 for name, weight in weights.items()}
    save_file(other, model / "model.safetensors", {"format": "pt"})

    with pytest.raises(RunFolderError, match="initial_weights") as refused:
        train(prepared, folder, resume=True)
    train(prepared, folder, resume=True, allow_changes=True)

    assert refused.value.code == "RLVR-T101"
    [entry] = manifest_of(folder)["resumes"]
    assert entry["changed"] == {"initial_weights": [was, manifest_of(folder)["initial_weights"]]}
    assert entry["changed"]["initial_weights"][1] != was
    assert train(prepared, folder, resume=True).status == "finished"


def test_a_run_keeps_its_control_arm(learning, tmp_path):
    stack, folder = learning(), tmp_path / "run"
    train(prepare(stack), folder)

    with pytest.raises(RunFolderError) as refused:
        train(prepare(stack, ["control=control-random"]), folder, resume=True, allow_changes=True)

    assert "whose control is null, and not control-random" in refused.value.message


def test_other_surroundings_are_warned_of_and_written_down(learning, tmp_path, monkeypatch):
    stack, folder = learning(), tmp_path / "run"
    train(prepare(stack), folder)
    real = manifest.hardware_facts()
    monkeypatch.setattr(
        manifest, "hardware_facts", lambda: {**real, "torch": "9.9", "memory_bytes": 1}
    )

    changed = prepare(stack, ["train.steps=3"])
    train(changed, folder, resume=True, allow_changes=True)

    found = manifest_of(folder)
    assert found["resumes"][0]["surroundings"] == {"torch": [real["torch"], "9.9"]}
    assert found["hardware"]["torch"] == "9.9"
    found["computation"]["attention"] = "by hand"
    (folder / "manifest.json").write_text(json.dumps(found))
    train(prepare(stack, ["train.steps=4"]), folder, resume=True, allow_changes=True)
    assert manifest_of(folder)["resumes"][1]["surroundings"] == {"attention": ["by hand", "sdpa"]}
    warning, _ = events(folder, "warn")
    assert f"torch was {real['torch']}, is 9.9" in warning["reason"]
    assert "not in every bit" in warning["reason"]


@pytest.mark.slow
def test_another_number_of_processes_is_allowed_and_written_down(
    learning, break_off, fixture_path, tmp_path
):
    stack, folder = learning(), tmp_path / "run"
    more = ["train.steps=5"]
    train(prepare(stack, more), tmp_path / "unbroken")
    break_off(prepare(stack, more), folder, "step 3: learning")
    script = tmp_path / "rlvr.py"
    script.write_text("from rlvr_core.cli.main import main; main()")
    command = ["train", str(stack), *more, "--out", str(folder), "--resume"]

    two = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc_per_node=2", str(script), *command),
        ],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(fixture_path),
            "OMP_NUM_THREADS": "1",
            "ACCELERATE_USE_CPU": "true",
        },
        capture_output=True,
        text=True,
        timeout=180,
    )

    assert two.returncode == 0, two.stderr[-3000:]
    [entry] = manifest_of(folder)["resumes"]
    assert entry["surroundings"]["processes"] == [1, 2]
    [replayed] = events(folder, "replayed")
    assert "step 3: 16 of 16 samples and 16 of 16 verdicts" in replayed["reason"]
    first, second = (
        load_file(checkpoint.newest(path) / "model.safetensors")
        for path in (tmp_path / "unbroken", folder)
    )
    for name, weight in first.items():
        torch.testing.assert_close(second[name], weight, atol=1e-4, rtol=0, msg=name)


def test_a_finished_run_has_nothing_left_to_do_and_says_how_it_goes_on(learning, tmp_path):
    stack, folder = learning(), tmp_path / "run"
    train(prepare(stack), folder)
    (folder / "run.lock").unlink()  # the one file that is written
    before = {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))}

    outcome = train(prepare(stack), folder, resume=True)

    assert outcome.status == "finished"
    assert outcome.reason == (
        "nothing is left to do: 2 of 2 steps are made; to go on, raise train.steps and add "
        "--allow-changes"
    )
    (folder / "run.lock").unlink()
    assert {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))} == before


def test_a_finished_run_measures_what_it_is_asked_to_measure_in_addition(learning, tmp_path):
    stack, folder = learning(), tmp_path / "run"
    train(prepare(stack), folder)

    train(prepare(stack, ["evaluate.splits=[dev]"]), folder, resume=True, allow_changes=True)

    assert [(r["step"], r["split"]) for r in read_lines(folder / "evals.jsonl")] == [(2, "dev")]


def test_a_run_that_never_began_is_not_continued(learning, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()

    for folder in (tmp_path / "run", empty):
        with pytest.raises(RunFolderError, match="there is no run to continue at") as refused:
            train(prepare(learning()), folder, resume=True)
        assert "leave --resume out to begin a new run" in refused.value.fix

    assert not (tmp_path / "run").exists()
    assert not list(empty.iterdir())


def test_fewer_steps_than_were_made_are_refused(learning, tmp_path):
    stack, folder = learning(), tmp_path / "run"
    train(prepare(stack), folder)

    with pytest.raises(StackError, match=r"train\.steps is 1, and the run continues after step 2"):
        train(prepare(stack, ["train.steps=1"]), folder, resume=True, allow_changes=True)


def test_a_kill_between_the_new_stack_and_the_manifest_changes_nothing(learning, tmp_path):
    stack, folder = learning(), tmp_path / "run"
    train(prepare(stack), folder)
    (folder / "stack.002.yaml").write_text("left by a killed process")

    with pytest.raises(RunFolderError):
        train(prepare(stack, ["train.steps=3"]), folder, resume=True)
    train(prepare(stack, ["train.steps=3"]), folder, resume=True, allow_changes=True)

    assert prepare(folder / "stack.002.yaml").resolved.stack.train.steps == 3


def test_a_plugin_that_does_not_take_its_state_back_is_named(
    write_stack, break_off, tmp_path, monkeypatch
):
    stack = write_stack(monitors=["resume-discount"], train={"steps": 2, "checkpoint_every": 1})
    folder = tmp_path / "run"
    monkeypatch.setattr(fixture_resume.Discount, "state", lambda self: {})
    break_off(prepare(stack), folder, "step 2: sampling")

    with pytest.raises(PluginError) as ended:
        train(prepare(stack), folder, resume=True)

    assert ended.value.code == "RLVR-P106"
    assert "resume-discount" in ended.value.message
    assert "KeyError: 'seen'" in ended.value.cause


@pytest.mark.parametrize("raises", ["SystemExit", "GeneratorExit", "Own"])
@pytest.mark.parametrize(("where", "called"), [("state", "state"), ("hook", "rlvr_shape_rewards")])
def test_a_plugin_that_tries_to_leave_is_named(learning, tmp_path, raises, where, called):
    stack = learning(monitors=[{"resume-leaver": {"raises": raises, "where": where}}])

    with pytest.raises(PluginError) as ended:
        train(prepare(stack), tmp_path / "run")

    assert (ended.value.code, ended.value.exit_code) == ("RLVR-P106", 3)
    assert "resume-leaver" in ended.value.message
    assert called in ended.value.message
    assert f"{raises}: 0" in ended.value.cause
    assert manifest_of(tmp_path / "run")["status"] == "failed"


def test_a_dry_run_says_how_the_run_would_be_continued_and_writes_nothing(made, tmp_path, capsys):
    stack, folder = made[0], shutil.copytree(made[1], tmp_path / "run")
    before = {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))}

    def dry_run(*more):
        with pytest.raises(SystemExit) as ended:
            main(["train", str(stack), "--out", str(folder), "--resume", "--dry-run", *more])
        return ended.value.code or 0, capsys.readouterr()

    _, said = dry_run()
    assert "nothing is left to do of its 1 steps" in said.out
    code, said = dry_run("train.steps=2")
    assert code == 2
    assert "RLVR-T101" in said.err
    code, said = dry_run("train.steps=2", "--allow-changes")
    assert code == 0
    assert "The run would go on after step 1 of 2, from its checkpoint." in said.out
    assert "Changed: train.steps was 1, is 2." in said.out
    code, said = dry_run("train.steps=2", "--allow-changes", "--json")
    assert json.loads(said.out)["continues"] == {
        "after_step": 1,
        "changed": {"train.steps": [1, 2]},
        "surroundings": {},
        "is_over": False,
    }
    assert {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))} == before


def test_a_run_folder_given_as_the_stack_is_answered_with_the_command(made, capsys):
    folder = made[1]

    with pytest.raises(SystemExit) as ended:
        main(["train", str(folder), "--resume"])

    assert ended.value.code == 2
    assert f"rlvr train {folder}/stack.yaml --out {folder} --resume" in capsys.readouterr().err


def test_a_check_allows_no_changes(made, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["train", str(made[0]), "--resume", "--check", "--allow-changes"])

    assert ended.value.code == 2
    assert "--allow-changes and --check do not go together" in capsys.readouterr().err


def test_flags_about_a_run_that_is_there_need_resume(learning, tmp_path):
    for flag in ("--check", "--allow-changes"):
        code = "from rlvr_core.cli.main import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code, "train", str(learning()), flag],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=60,
        )
        assert done.returncode == 2
        assert f"{flag} is about a run that is there already" in done.stderr
        assert not (tmp_path / "runs").exists()
