"""What makes sandboxes: daemons that die, workers that die, the unsafe local kind, the image."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import docker
import pytest
from rlvr_plugin_code_docker import CodeDocker
from rlvr_plugin_code_docker.cli import main
from rlvr_plugin_code_docker.image import write_archive
from rlvr_plugin_code_docker.process import can_bubblewrap

from rlvr_core.api import EnvironmentFault, VerifyRow

IMAGE = "sha256:" + "0" * 64
TRUTH = {"tests": ["assert double(2) == 4"]}
ANSWER = "```python\ndef double(x):\n    return 2 * x\n```"


def row(completion=ANSWER, truth=TRUTH):
    made = CodeDocker.GroundTruth.model_validate(truth)
    return VerifyRow(id="row", prompt="", completion=completion, ground_truth=made)


@pytest.mark.parametrize("backend", ["docker", "podman"])
def test_a_daemon_that_is_not_there_is_an_error_and_no_score(monkeypatch, tmp_path, backend):
    for name in ("DOCKER_HOST", "CONTAINER_HOST"):
        monkeypatch.setenv(name, f"unix://{tmp_path}/nobody.sock")
    verifier = CodeDocker(CodeDocker.Config(backend=backend, image=IMAGE))
    with pytest.raises(EnvironmentFault, match=f"{backend} cannot make a container"):
        verifier.verify_row(row())
    verifier.close()


def test_a_daemon_that_says_nonsense_is_an_error_and_no_score(monkeypatch, tmp_path):
    path = tmp_path / "nonsense.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        code = (
            "import socket, sys\ns = socket.socket(fileno=int(sys.argv[1]))\n"
            "while True:\n    c, _ = s.accept()\n    c.sendall(b'hello')\n    c.close()"
        )
        command = [sys.executable, "-c", code, str(listener.fileno())]
        daemon = subprocess.Popen(command, pass_fds=[listener.fileno()])
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    verifier = CodeDocker(CodeDocker.Config(backend="docker", image=IMAGE))
    try:
        with pytest.raises(EnvironmentFault):
            verifier.verify_row(row())
    finally:
        verifier.close()
        daemon.kill()
        daemon.wait()


def test_without_bubblewrap_there_is_an_error_that_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    verifier = CodeDocker(CodeDocker.Config(backend="bubblewrap"))
    with pytest.raises(EnvironmentFault, match="not installed"):
        verifier.verify_row(row())


def test_the_unsafe_local_kind_judges_too_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    verifier = CodeDocker(CodeDocker.Config(unsafe_local=True))
    assert verifier.verify_row(row()).score == 1.0
    mark = f"{time.time_ns()}"
    detached = (
        "import os, sys, time\nif os.fork() == 0:\n    os.setsid()\n"
        f"    os.execv(sys.executable, ['python', '-c', 'import time; time.sleep(99)', '{mark}'])\n"
        "def double(x):\n    time.sleep(0.3)\n    return 4\n"
    )
    code = f"```python\n{detached}```"
    assert verifier.verify_row(row(code)).score == 1.0
    verifier.close()
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not any(mark.encode() in line for line in lines)


def test_a_sandbox_ends_with_the_process_that_made_it(sandbox):
    code = (
        "import json, os, signal, sys\nfrom rlvr_plugin_code_docker import CodeDocker\n"
        "v = CodeDocker(CodeDocker.Config(**json.loads(sys.argv[1])))\n"
        "s = v._backend.take()\nprint(getattr(s, 'id', ''), flush=True)\nsignal.pause()"
    )
    command = [sys.executable, "-c", code, json.dumps(sandbox)]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    container = worker.stdout.readline().strip()
    own = supervisors_of(worker.pid, container)
    assert own
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    worker.stdout.close()
    until_s = time.monotonic() + 15
    while own & supervisors() and time.monotonic() < until_s:
        time.sleep(0.1)
    assert not own & supervisors()


CLOSES_EARLY = """
import os, time
from rlvr_core.verification.processes import adopt_orphans, descendants
from rlvr_plugin_code_docker.process import ProcessBackend
adopt_orphans()
for number in range(150):
    backend = ProcessBackend("bubblewrap")
    backend.take().close()
    time.sleep(number % 40 / 4000)
    backend.close()
time.sleep(0.5)
print(descendants(os.getpid()))
"""


@pytest.mark.slow
def test_closing_while_the_next_sandbox_starts_leaves_nothing():
    if why := can_bubblewrap():
        pytest.skip(f"bubblewrap does not work here: {why}")
    command = [sys.executable, "-c", CLOSES_EARLY]
    left = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert left == "[]\n"


def supervisors_of(worker, container):
    """Return the supervisors that a worker started, or the one in its container."""
    if container:
        inspected = docker.APIClient(version="auto").inspect_container(container)
        return {inspected["State"]["Pid"]} & supervisors()
    return {one for one in supervisors() if worker in ancestors(one)}


def ancestors(process):
    found = []
    while process:
        status = Path(f"/proc/{process}/status").read_text()
        process = int(status.split("PPid:")[1].split()[0])
        found.append(process)
    return found


def supervisors():
    """Return the ids of the processes that are supervisors of sandboxes."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes()
            if b"rlvr_plugin_code_docker.guest.supervisor" in line:
                found.add(int(folder.name))
        except OSError:
            continue
    return found


def test_an_image_archive_is_the_same_bytes_for_the_same_files(tmp_path):
    for name in ("b/file", "a"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
        os.utime(path, (7, 7))
    os.utime(tmp_path / "b", (7, 7))
    archives = [io.BytesIO(), io.BytesIO()]
    for archive in archives:
        write_archive(tmp_path, "tag", archive)
    assert archives[0].getvalue() == archives[1].getvalue()
    archives[0].seek(0)
    with tarfile.open(fileobj=archives[0]) as tar:
        (manifest,) = json.load(tar.extractfile("manifest.json"))
        with tarfile.open(fileobj=tar.extractfile(manifest["Layers"][0])) as layer:
            assert [(one.name, one.uid) for one in layer] == [("a", 0), ("b", 0), ("b/file", 0)]


def test_making_an_image_without_a_daemon_says_what_to_do(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    assert main(["build-image"]) == 4
    assert "start the docker daemon" in capsys.readouterr().err


@pytest.mark.docker
def test_an_image_that_the_daemon_lacks_is_an_error_and_no_score():
    verifier = CodeDocker(CodeDocker.Config(backend="docker", image=IMAGE))
    with pytest.raises(EnvironmentFault, match="cannot make a container"):
        verifier.verify_row(row())
    verifier.close()


@pytest.mark.docker
def test_an_image_that_the_daemon_has_is_checked_and_named(capsys):
    assert main(["build-image", "--image", os.environ["RLVR_CODE_IMAGE"]]) == 0
    assert os.environ["RLVR_CODE_IMAGE"] in capsys.readouterr().out
    assert main(["build-image", "--image", "nobody-has-this"]) == 4
