"""Ctrl-C and polite kills in each phase: a bounded end, said where, and continued to the bit."""

import contextlib
import os
import pty
import random
import select
import signal
import subprocess
import sys
import time

import psutil
import pytest
import torch
from scenes import BOUND_S, family, living, manifest, stack_in, wait_for

from rlvr_core.train import checkpoint

WITHIN_S = 10 + 5
"""What is promised, and something for a busy machine."""

PHASES = {
    "loading": ("transformers:AutoModelForCausalLM.from_pretrained", 1, "loading the model"),
    "auditing": ("rlvr_core.plugins.dispatch:Dispatcher.audit_prompts", 1, "auditing the prompts"),
    "sampling": (
        "rlvr_core.rollout.transformers_engine:TransformersEngine.sample",
        4,  # the evaluation at step 0, step 1, its evaluation, step 2
        "step 2: sampling and verifying",
    ),
    "learning": ("rlvr_core.plugins.dispatch:Dispatcher.policy_loss", 2, "step 3: learning"),
    "evaluating": (
        "rlvr_core.train.measuring:measure",
        3,
        "evaluating dev: 12 prompts, after step 2",
    ),
    "saving": ("torch:save", 3, "step 3: writing a checkpoint"),
    "writing": ("rlvr_core.train.storage:sync", 12, ""),
}
"""Where a run is held up, at which call, and what it says of the place."""


def weights(run):
    from safetensors.torch import load_file

    return load_file(checkpoint.newest(run) / "model.safetensors")


def assert_same_bits(first, second):
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.fixture(scope="module")
def unbroken_run(start_in, tmp_path_factory, tiny_model):
    """The folder of a run that was not interrupted."""
    folder = tmp_path_factory.mktemp("unbroken")
    run = start_in(folder, "train", stack_in(folder / "stack", tiny_model), "--out", folder / "run")
    assert run.wait() == 0, run.said
    return folder / "run"


@pytest.fixture(scope="module")
def unbroken(unbroken_run):
    """The weights of the run that was not interrupted."""
    return weights(unbroken_run)


IN_EVERY_RUN = ("loading", "sampling", "saving")


@pytest.mark.parametrize(
    "phase",
    [
        phase if phase in IN_EVERY_RUN else pytest.param(phase, marks=pytest.mark.slow)
        for phase in PHASES
    ],
)
def test_ctrl_c_ends_a_run_in_order_and_it_continues_to_the_same_bits(
    phase, start, write_stack, tmp_path, unbroken
):
    at, call, place = PHASES[phase]
    out, mark = tmp_path / "run", tmp_path / "mark"
    command = ["train", write_stack(), "--out", out]
    number = signal.SIGTERM if phase in ("auditing", "saving") else signal.SIGINT

    run = start(*command, hold={"at": at, "call": call, "mark": str(mark)})
    assert run.comes_to(mark), run.said
    others = family(run)
    run.send(number)
    code = run.wait(WITHIN_S)

    assert code == 130, run.said
    assert f"interrupted in {place}" in run.said
    assert "Traceback" not in run.said
    assert not living(others)
    if phase == "loading":
        assert "nothing was written yet" in run.said
        assert not out.exists()
    else:
        assert len(others) >= 2, "a worker and the keeper"
        assert f"the same command with --resume continues {out}" in run.said
        ended = manifest(out)["ended"]
        assert (manifest(out)["status"], ended["rank"]) == ("interrupted", 0)
        assert place in ended["phase"]
        command.append("--resume")
    resumed = start(*command)
    assert resumed.wait() == 0, resumed.said
    assert manifest(out)["status"] == "finished"
    assert_same_bits(weights(out), unbroken)


def interrupted_in_torch(command, mark):
    """Run a command, kill it politely while it imports torch, and return what it said."""
    held = """
import sys, time
from pathlib import Path

class Held:
    def find_spec(self, name, path, target=None):
        if name == "torch.nn":
            Path(sys.argv.pop()).touch()
            time.sleep(60)

sys.meta_path.insert(0, Held())
from rlvr_core.cli.main import main
main(sys.argv[1:-1])
"""
    with subprocess.Popen(
        [sys.executable, "-c", held, *map(str, command), mark], stderr=subprocess.PIPE, text=True
    ) as run:
        assert wait_for(mark.exists)
        run.send_signal(signal.SIGTERM)
        said = run.communicate(timeout=WITHIN_S)[1]

    assert run.returncode == 130, said
    return said


def test_ctrl_c_while_torch_is_imported_ends_at_once_and_says_from_where_it_continues(
    write_stack, tmp_path, unbroken_run
):
    command = ["train", write_stack(), "--out", unbroken_run, "--resume"]

    assert interrupted_in_torch(command, tmp_path / "mark") == (
        "interrupted in loading torch; the same command with --resume continues "
        f"{unbroken_run} after step 4\n"
    )


@pytest.mark.parametrize(
    "command",
    [["train", "--resume", "--dry-run"], ["train", "--resume", "--check"], ["eval"], ["selfcheck"]],
    ids=" ".join,
)
def test_ctrl_c_while_another_command_imports_torch_ends_at_once(
    command, write_stack, tmp_path, unbroken_run
):
    run = ["--out", unbroken_run] if command[0] == "train" else []

    said = interrupted_in_torch([*command, *run, write_stack()], tmp_path / "mark")

    assert said == "interrupted in loading torch; nothing was written\n"


def slow_truth(number):
    return {"type": "tiny-slow", "sleep_s": 60.0 if number == 5 else 0.0}


@pytest.mark.slow
def test_ctrl_c_while_a_verifier_works_ends_the_verifier_too(start, write_stack, tmp_path):
    out, mark = tmp_path / "run", tmp_path / "mark"
    slow = {"tiny-slow": {"mark": str(mark), "timeout_s": 120}}
    command = ["train", write_stack(slow_truth, verifiers=[slow], evaluate={"splits": []})]

    run = start(*command, "--out", out)
    assert run.comes_to(mark), run.said
    others = family(run)
    run.send(signal.SIGINT)
    code = run.wait(WITHIN_S)

    assert code == 130, run.said
    assert ": sampling and verifying" in run.said.splitlines()[-1]
    assert not living(others)
    resumed, other = (
        start(*command, "--out", out, "--resume"),
        start(*command, "--out", mark.parent / "b"),
    )
    assert (resumed.wait(), other.wait()) == (0, 0), resumed.said
    assert_same_bits(weights(out), weights(mark.parent / "b"))


def test_ctrl_c_while_the_verifiers_start(start, write_stack, tmp_path):
    out, mark = tmp_path / "run", tmp_path / "mark"
    slow = {"tiny-slow": {"start_s": 60.0, "mark": str(mark)}}

    run = start("train", write_stack(slow_truth, verifiers=[slow]), "--out", out)
    assert run.comes_to(mark), run.said
    others = family(run)
    run.send(signal.SIGINT)
    code = run.wait(WITHIN_S)

    assert code == 130, run.said
    assert "interrupted in starting the verifiers" in run.said
    assert manifest(out)["status"] == "interrupted"
    assert not living(others)


@pytest.mark.parametrize("how", ["block", pytest.param("swallow", marks=pytest.mark.slow)])
def test_what_does_not_hear_of_ctrl_c_is_ended_all_the_same(how, start, write_stack, tmp_path):
    out, mark = tmp_path / "run", tmp_path / "mark"
    hold = {"at": "rlvr_core.plugins.dispatch:Dispatcher.policy_loss", "mark": str(mark)}

    run = start(
        *("train", write_stack(), "--out", out),
        hold={**hold, "how": how},
        constants={"rlvr_core.cli.interrupts:END_WITHIN_S": 2.0},
    )
    assert run.comes_to(mark), run.said
    others = family(run)
    run.send(signal.SIGINT)
    code = run.wait(WITHIN_S)

    assert code == 130, run.said
    assert "interrupted and not ended after 2 s in step 2: learning" in run.said
    assert (manifest(out)["status"], manifest(out)["ended"]["phase"]) == (
        "interrupted",
        "step 2: learning",
    )
    assert wait_for(lambda: not living(others))


def test_an_interruption_that_a_library_makes_an_error_of_is_one(start, write_stack, tmp_path):
    out, mark = tmp_path / "run", tmp_path / "mark"
    hold = {"at": "rlvr_core.plugins.dispatch:Dispatcher.policy_loss", "mark": str(mark)}

    run = start("train", write_stack(), "--out", out, hold={**hold, "how": "disguise"})
    assert run.comes_to(mark), run.said
    run.send(signal.SIGINT)
    code = run.wait(WITHIN_S)

    assert code == 130, run.said
    assert "interrupted in step 2: learning; the same command with --resume" in run.said
    assert "could not be imported" not in run.said
    assert manifest(out)["status"] == "interrupted"


def test_an_interruption_that_an_import_makes_an_error_of_blames_no_plugin(
    start, write_stack, tmp_path
):
    mark = tmp_path / "mark"
    hold = {"at": "rlvr_core.plugins.ref:PluginRef._import", "mark": str(mark), "how": "disguise"}

    run = start("train", write_stack(), "--out", tmp_path / "run", hold=hold)
    assert run.comes_to(mark), run.said
    run.send(signal.SIGINT)
    code = run.wait(WITHIN_S)

    assert code == 130, run.said
    assert "error[" not in run.said
    assert not (tmp_path / "run").exists()


def test_a_second_ctrl_c_ends_a_run_at_once(start, write_stack, tmp_path):
    out, mark = tmp_path / "run", tmp_path / "mark"
    hold = {"at": "rlvr_core.plugins.dispatch:Dispatcher.policy_loss", "mark": str(mark)}

    run = start("train", write_stack(), "--out", out, hold={**hold, "how": "swallow"})
    assert run.comes_to(mark), run.said
    others = family(run)
    run.send(signal.SIGINT)
    time.sleep(1)
    assert run.process.exitcode is None
    run.send(signal.SIGINT)
    code = run.wait(5)

    assert code == 130, run.said
    assert "interrupted again in step 2: learning; ended at once" in run.said
    assert manifest(out)["status"] == "interrupted"
    assert wait_for(lambda: not living(others))


@pytest.mark.slow
def test_ctrl_c_typed_at_a_terminal_reaches_the_whole_group_and_shows_no_traceback(
    write_stack, tmp_path, site
):
    slow = {"tiny-slow": {"mark": str(tmp_path / "mark"), "timeout_s": 120}}
    stack = write_stack(slow_truth, verifiers=[slow], evaluate={"splits": []})
    code = "from rlvr_core.cli.main import main; main()"
    command = [sys.executable, "-c", code, "train", str(stack), "--out", str(tmp_path / "run")]
    path = [str(site), os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")]
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.environ.update(
            PYTHONPATH=os.pathsep.join(path), OMP_NUM_THREADS="1", COLUMNS="200", TERM="xterm"
        )
        os.execv(command[0], command)

    shown, until_s, typed = b"", time.monotonic() + 2 * BOUND_S, False
    while time.monotonic() < until_s:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                shown += os.read(terminal, 4096)
            except OSError:  # all have closed it
                break
        if not typed and (tmp_path / "mark").exists():
            os.write(terminal, b"\x03")
            typed = True
    _, status = os.waitpid(pid, 0)

    text = shown.decode("utf-8", "replace")
    assert os.waitstatus_to_exitcode(status) == 130, text
    assert ": sampling and verifying; the same command with --resume continues" in text
    assert "Traceback" not in text
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l"), "the cursor is shown again"


@pytest.mark.slow
def test_ctrl_c_at_random_moments_again_and_again(start, write_stack, tmp_path, unbroken):
    seed = random.SystemRandom().randrange(2**32)
    generator, out, stack = random.Random(seed), tmp_path / "run", write_stack()
    others, code = [], 130
    for attempt in range(25):
        resuming = ["--resume"] if (out / "manifest.json").exists() else []
        run = start("train", stack, "--out", out, *resuming)
        assert wait_for(lambda run=run: run.said)
        if attempt < 24:
            time.sleep(generator.uniform(0, 0.2 + 0.05 * attempt))
            with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
                others += family(run)
                run.send(signal.SIGINT)
        code = run.wait(WITHIN_S if attempt < 24 else BOUND_S)
        assert code in (130, 0), (seed, run.said)
        assert "Traceback" not in run.said, (seed, run.said)
        if code == 0:
            break

    assert code == 0, seed
    assert wait_for(lambda: not living(others)), seed
    assert_same_bits(weights(out), unbroken)
