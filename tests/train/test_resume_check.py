"""``--resume --check``: one step is made again, every bit compared, and nothing changed."""

import json
import shutil
import subprocess
import sys

import pyarrow.parquet as parquet
import pytest
import stacks
from stacks import read_lines

from rlvr_core.api.errors import RunFolderError
from rlvr_core.cli.check_resume import lines
from rlvr_core.cli.main import main
from rlvr_core.train.check_resume import check_resume
from rlvr_core.train.prepare import prepare
from rlvr_core.train.progress import Silent
from rlvr_core.train.recording import read_recording, write_rows
from rlvr_core.train.run import train


@pytest.fixture(scope="module")
def made(tmp_path_factory, tiny_model):
    """A stack and a run of it, made by the command line, which tests may take copies of."""
    folder = tmp_path_factory.mktemp("check")
    judged_by = {"type": "resume-steady"}
    rows = [{"id": f"{n}", "prompt": f"prompt {n}", "verifier": judged_by} for n in range(8)]
    stack = stacks.write_stack(
        folder / "stack",
        tiny_model,
        dict.fromkeys(stacks.SPLITS, rows),
        ["resume-steady"],
        train={"steps": 4, "checkpoint_every": 2, "learning_rate": 1e-2},
        evaluate={"splits": ["dev"], "every": 2},
    )
    train(prepare(stack), folder / "run")
    return stack, folder / "run"


@pytest.fixture
def copied(made, tmp_path):
    """The stack, and a copy of its run."""
    stack, run = made
    return stack, shutil.copytree(run, tmp_path / "run")


def check(stack, run):
    return check_resume(prepare(stack), run, Silent())


def said(found):
    return "\n".join(lines(found))


def rewrite(path, change):
    """Change the rows of a recording, and keep what it was recorded under."""
    rows = parquet.read_table(path).to_pylist()
    conditions = read_recording(path).conditions
    change(rows)
    write_rows(rows, conditions, path)


def everything_in(run):
    return {path: path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}


def test_a_step_of_a_good_run_is_the_same_and_nothing_is_changed(made):
    stack, run = made
    before = everything_in(run)

    found = check(stack, run)

    assert found.is_equal
    assert found.step == 3, "the step after the newest checkpoint that has one"
    assert found.sampled_anew.samples == found.sampled_anew.verdicts == 16
    assert found.replayed is None
    assert said(found).splitlines() == [
        "step 3, made again from checkpoint 000002",
        "  completions       all 16 the same",
        "  verdicts          all 16 the same",
        "  metrics           the same, times left out",
        "  weights after it  the same bits",
        "equal in every bit: a resume makes the run that an unbroken one would be",
    ]
    assert everything_in(run) == before


def test_without_an_older_checkpoint_the_first_step_is_made_again(made, tmp_path):
    at_the_end = ["train.checkpoint_every=0"]
    train(prepare(made[0], at_the_end), tmp_path / "run")

    found = check_resume(prepare(made[0], at_the_end), tmp_path / "run", Silent())

    assert (found.step, found.is_equal) == (1, True)
    assert said(found).startswith("step 1, made again from the beginning")


def test_other_tokens_are_told_from_other_learning(copied):
    stack, run = copied

    def other_token(rows):
        rows[2]["token_ids"][0] = 7

    rewrite(run / "recorded/000003.parquet", other_token)

    found = check(stack, run)

    assert not found.is_equal
    assert found.sampled_anew.other_samples == ["3/" + found.sampled_anew.other_samples[0][2:]]
    assert not found.sampled_anew.other_metrics
    # With the token of the record, the run is not what it was: the record was changed, not the run.
    assert "weights_fingerprint" in found.replayed.other_metrics
    assert "  completions       1 of 16 differ: 3/" in said(found)


def test_a_verifier_that_changes_its_mind_is_found_and_learning_is_cleared(write_stack, tmp_path):
    stack = write_stack(
        verifiers=[{"resume-witness": {"log": str(tmp_path / "asked")}}],
        judged_by={"type": "resume-witness", "answer": "a"},
        train={"steps": 1, "learning_rate": 1e-2},
    )
    train(prepare(stack), tmp_path / "run")

    found = check(stack, tmp_path / "run")

    assert not found.is_equal
    assert not found.sampled_anew.other_samples
    assert found.sampled_anew.other_verdicts
    assert "weights_fingerprint" in found.sampled_anew.other_metrics
    assert found.replayed.is_equal
    assert "different, but only in what is sampled and judged" in said(found)


def test_another_loss_is_shown_with_both_values(copied):
    stack, run = copied
    records = read_lines(run / "metrics.jsonl")
    records[2] |= {"loss": 0.5, "weights_fingerprint": "0" * 32}
    (run / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))

    found = check(stack, run)

    assert not found.is_equal
    assert found.replayed is None
    assert "    loss: 0.5 in the run, " in said(found)
    assert "  weights after it  other bits" in said(found)
    assert said(found).endswith(
        "different: a resume does not make the run that an unbroken one would be"
    )


def test_a_run_with_nothing_to_compare_says_so(copied):
    stack, run = copied
    shutil.rmtree(run / "recorded")

    with pytest.raises(RunFolderError) as refused:
        check(stack, run)

    assert refused.value.code == "RLVR-T102"


def test_a_changed_stack_is_not_checked(made):
    stack, run = made

    with pytest.raises(RunFolderError) as refused:
        check_resume(prepare(stack, ["seed=1"]), run, Silent())

    assert refused.value.code == "RLVR-T101"


def test_the_command_exits_with_1_where_something_differs(copied, capsys):
    stack, run = copied
    command = ["train", str(stack), "--out", str(run), "--resume", "--check", "--json"]
    main_ends_with(0, command)
    records = read_lines(run / "metrics.jsonl")
    records[2]["grad_norm"] = 0.0
    (run / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    capsys.readouterr()

    main_ends_with(1, command)

    found = json.loads(capsys.readouterr().out)
    assert found["is_equal"] is False
    assert list(found["sampled_anew"]["other_metrics"]) == ["grad_norm"]


def test_a_step_that_learnt_is_preferred_and_one_that_did_not_is_said(made, tmp_path):
    run, keeping = tmp_path / "run", ["train.keep_checkpoints=3"]
    train(prepare(made[0], keeping), run)
    records = read_lines(run / "metrics.jsonl")

    def without_updates(*steps):
        changed = [{**r, "updates": 0} if r["step"] in steps else r for r in records]
        (run / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in changed))

    said_of_none = "nothing was learnt in this step"
    found = check_resume(prepare(made[0], keeping), run, Silent())
    assert (found.step, found.updates) == (3, 1)
    assert said_of_none not in said(found)
    without_updates(3)
    found = check_resume(prepare(made[0], keeping), run, Silent())
    assert (found.step, found.updates) == (1, 1)
    assert said_of_none not in said(found)
    without_updates(1, 3)
    found = check_resume(prepare(made[0], keeping), run, Silent())
    assert (found.step, found.updates) == (3, 0)
    assert said_of_none in said(found)


def test_a_run_that_another_process_writes_to_is_not_checked(made):
    stack, run = made
    code = (
        "import sys; from pathlib import Path; from rlvr_core.train.run_lock import exclusive\n"
        "with exclusive(Path(sys.argv[1])): print(flush=True), sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(run)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        writer.stdout.readline()
        with pytest.raises(RunFolderError) as refused:
            check(stack, run)
        writer.stdin.close()

    assert refused.value.code == "RLVR-T105"
    assert f"process {writer.pid} " in refused.value.cause


def main_ends_with(code, command):
    with pytest.raises(SystemExit) as ended:
        main(command)
    assert (ended.value.code or 0) == code
