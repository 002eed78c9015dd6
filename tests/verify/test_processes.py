"""What a worker inherits, and that nothing outlives its reason to live."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import uuid
from pathlib import Path

import psutil
import pytest
from supervision import left_of, living_with, rows, wait_until

from rlvr_core.api import FailureCategory
from rlvr_core.verification.processes import (
    TOKEN_NAME,
    _marked,
    descendants,
    kill_descendants,
    kill_tree,
)

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def test_a_hung_row_takes_its_whole_process_tree_with_it(make_engine):
    marker = str(uuid.uuid4())
    with make_engine("Tricky", timeout_s=1.0) as engine:
        engine.submit("tricky", rows([f"detach {marker}"])[0])
        assert wait_until(lambda: len(living_with(marker)) == 2), "one left its session, one stayed"
        (verdict,) = engine.judge("tricky", rows([f"detach {marker}"]))
        assert verdict.failure is FailureCategory.VERIFIER_TIMEOUT
        assert not living_with(marker)


@linux
def test_what_a_verifier_left_running_ends_with_its_worker(make_engine):
    marker = str(uuid.uuid4())
    with make_engine("Tricky") as engine:
        (verdict,) = engine.judge("tricky", rows([f"detach_and_pass {marker}"]))
        assert verdict.score == 1.0
        assert wait_until(lambda: len(living_with(marker)) == 1)
    assert not living_with(marker)


@linux
@pytest.mark.parametrize("who", ["the worker", "its guardian"])
def test_a_row_whose_worker_is_killed_from_outside_is_judged_again(make_engine, tmp_path, who):
    mark = tmp_path / "mark"
    with make_engine("Tricky", timeout_s=60) as engine:
        asked = rows(["yes", f"hang_once {mark}", "yes"])
        for row in asked:
            engine.submit("tricky", row)
        assert wait_until(mark.exists)
        [guardian] = [w.pid for pool in engine._pump.pools for w in pool.workers if w.chunks]
        [worker] = psutil.Process(guardian).children()
        os.kill(worker.pid if who == "the worker" else guardian, signal.SIGKILL)

        verdicts = engine.judge("tricky", asked)
        assert [verdict.score for verdict in verdicts] == [1.0, 1.0, 1.0]
        assert wait_until(lambda: not worker.is_running())
        assert engine.health()["tricky"].crashes == 1


@linux
def test_what_a_crashed_worker_left_is_ended(judge):
    marker = str(uuid.uuid4())
    (verdict,) = judge("Tricky", [f"detach_and_crash {marker}"])
    assert verdict.failure is FailureCategory.VERIFIER_CRASH
    assert wait_until(lambda: not living_with(marker))


def test_closing_in_the_middle_of_a_row_leaves_nothing(make_engine):
    marker = str(uuid.uuid4())
    engine = make_engine("Tricky", "Patient", "Batch", timeout_s=300)
    with engine:
        engine.submit("tricky", rows([f"detach {marker}"])[0])
        assert wait_until(lambda: len(living_with(marker)) == 2)
    assert not living_with(marker)
    assert not left_of(engine)


def test_secrets_are_not_inherited(make_engine, monkeypatch):
    monkeypatch.setenv("RLVR_TEST_SECRET", "s3cret")
    monkeypatch.setenv("RLVR_TEST_DECLARED", "wanted")
    with make_engine("Tricky", "Secretive") as engine:
        (undeclared,) = engine.judge("tricky", rows(["environment"]))
        (declared,) = engine.judge("secretive", rows(["environment"]))
    assert "PATH" in undeclared.diagnostics["names"]
    assert not {"RLVR_TEST_SECRET", "RLVR_TEST_DECLARED"} & set(undeclared.diagnostics["names"])
    assert set(declared.diagnostics["names"]) - set(undeclared.diagnostics["names"]) == {
        "RLVR_TEST_DECLARED"
    }


def test_a_worker_imports_no_torch_and_computes_on_one_thread(judge):
    modules, threads = judge("Tricky", ["modules torch,transformers,numpy,yaml", "threads"])
    assert modules.diagnostics["found"] == []
    assert threads.diagnostics["omp"] == "1"
    assert threads.diagnostics["session"] != os.getsid(0)


SCRIPT = """
    import signal
    import sys
    # A shell starts background jobs with Ctrl-C ignored, and a child inherits that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path[:0] = {paths!r}
    from supervision import entry, reference, rows
    from rlvr_core.config.models import VerificationSection
    from rlvr_core.verification.engine import VerifyEngine

    ref, slow = reference("Tricky"), reference("Patient")
    entries = [(ref, entry(ref)), (slow, entry(slow))]
    engine = VerifyEngine(entries, VerificationSection(timeout_s=300, workers=2))
    {enter}
        engine.submit("tricky", rows(["detach {marker}"])[0])
        engine.submit("patient", rows(["sleep 300"])[0])
        print(engine._pump._token, flush=True)
        {last}
"""
HOLD = 'engine.judge("tricky", rows(["detach {marker}", "hold"]))'


@pytest.fixture
def start_trainer():
    """Start a process that waits for a verdict which never comes."""
    started = []

    def start(last: str, enter: str = "with engine:") -> tuple[subprocess.Popen[str], str, str]:
        marker = str(uuid.uuid4())
        here = Path(__file__).parent
        script = textwrap.dedent(SCRIPT).format(
            paths=[str(here), str(here.parents[1])],
            marker=marker,
            enter=enter,
            last=last.format(marker=marker),
        )
        trainer = subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(trainer)
        token = trainer.stdout.readline().strip()
        assert token, trainer.stderr.read()
        assert wait_until(lambda: len(living_with(marker)) == 2)
        return trainer, token, marker

    yield start
    for trainer in started:
        trainer.kill()
        trainer.communicate()


def of_token(token: str) -> list[psutil.Process]:
    """Return the living workers and the keeper of an engine."""
    found = []
    for process in psutil.process_iter(["environ", "cmdline", "status"]):
        environ, cmdline = process.info["environ"] or {}, process.info["cmdline"] or []
        is_ours = environ.get("RLVR_VERIFICATION_TOKEN", "").startswith(token) or token in cmdline
        if is_ours and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


@linux
def test_a_killed_trainer_leaves_no_worker_even_one_that_hangs_in_c(start_trainer):
    trainer, token, marker = start_trainer(HOLD)
    assert len(of_token(token)) >= 4, "two cpu workers, one io worker, the keeper"
    trainer.send_signal(signal.SIGKILL)
    trainer.wait()
    assert wait_until(lambda: not of_token(token) and not living_with(marker), 5)


def test_ctrl_c_leaves_nothing(start_trainer):
    trainer, token, marker = start_trainer(HOLD)
    os.killpg(trainer.pid, signal.SIGINT)
    _, errors = trainer.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
    assert not of_token(token)
    assert not living_with(marker)


def test_leaving_without_closing_leaves_nothing(start_trainer):
    trainer, token, marker = start_trainer("input()", "if engine.start() is None:")
    trainer.communicate(timeout=60)
    assert not of_token(token)
    assert not living_with(marker)


@linux
def test_a_keeper_that_was_killed_is_replaced(make_engine):
    with make_engine("Tricky") as engine:
        keeper = engine._pump._keeper
        keeper._process.kill()
        keeper._process.wait()
        engine.judge("tricky", rows(["exit 1"]))
        assert keeper._process.poll() is None


ALWAYS_FORKING = """
import mmap, os, sys, time
from rlvr_core.verification.processes import adopt_orphans
adopt_orphans()
if os.fork() == 0:
    # The more memory, the longer the system takes to copy a process, which it cannot be stopped in.
    held = mmap.mmap(-1, 64 << 20)
    held.madvise(mmap.MADV_NOHUGEPAGE)
    held[:] = bytes(len(held))
    print("ready", flush=True)
    while True:
        if os.fork() == 0:
            os.setsid()
            os.execv(sys.executable, ["python", "-c", "import time; time.sleep(60)", sys.argv[1]])
os.wait()
"""


@linux
def test_a_child_that_was_being_made_when_its_parent_was_killed_is_killed_too():
    marker = str(uuid.uuid4())
    for _ in range(5):
        command = [sys.executable, "-c", ALWAYS_FORKING, marker]
        root = subprocess.Popen(command, stdout=subprocess.PIPE)
        try:
            assert root.stdout.readline() == b"ready\n"
            kill_descendants(root.pid)
            assert descendants(root.pid) == []
        finally:
            kill_tree(root.pid)
            root.wait()
            root.stdout.close()


HEIR = """
import os, sys, threading, time
from rlvr_core.verification.processes import adopt_orphans
adopt_orphans()
if os.fork() == 0:
    os.setsid()
    print(os.getpid(), flush=True)
    sys.stdin.readline()
    if os.fork():
        os._exit(0)
    time.sleep(60)
time.sleep(60)
"""


@linux
@pytest.mark.parametrize("how", ["by its parents", "by its mark"])
def test_a_process_that_makes_another_and_ends_while_we_look_does_not_hide_it(monkeypatch, how):
    token = str(uuid.uuid4())
    with subprocess.Popen(
        [sys.executable, "-c", HEIR],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, TOKEN_NAME: token} if how == "by its mark" else None,
    ) as root:
        try:
            middle = int(root.stdout.readline())
            listdir = os.listdir

            def listed_just_before_it_forked(path):
                names = listdir(path)
                monkeypatch.setattr(os, "listdir", listdir)
                root.stdin.write(b"\n")
                root.stdin.flush()
                assert wait_until(lambda: psutil.Process(middle).status() == psutil.STATUS_ZOMBIE)
                return names

            monkeypatch.setattr(os, "listdir", listed_just_before_it_forked)
            if how == "by its parents":
                found = descendants(root.pid)
            else:
                found = [pid for pid in _marked(token) if pid != root.pid]
            [heir] = found
            assert heir != middle
        finally:
            kill_tree(root.pid)


HEADLESS = """
import ctypes, subprocess, sys, threading, time

def live_on():
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    time.sleep(1)
    print("ready", flush=True)
    time.sleep(60)

threading.Thread(target=live_on).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@linux
def test_a_process_that_lives_on_without_its_first_thread_is_found_with_its_children():
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HEADLESS!r}])"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as root:
        try:
            assert root.stdout.readline() == b"ready\n"
            assert len(descendants(root.pid)) == 2
        finally:
            kill_tree(root.pid)
