"""Sandboxes that are processes of this machine: bubblewrap's, and the unsafe local one."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rlvr_core.api import EnvironmentFault
from rlvr_plugin_code_docker.command import ENVIRONMENT, python_command, supervisor_code
from rlvr_plugin_code_docker.connection import Connection
from rlvr_plugin_code_docker.session import SandboxEndedError, await_start

START_LIMIT_S = 5.0
SCRATCH_BYTES = 64 << 20
_NOBODY = 65534
_HOME = ENVIRONMENT["HOME"]
_FIRST_UID = 1 << 30


class ProcessSandbox:
    """A child process and a socket to it."""

    def __init__(self, command: list[str], folder: Path | None = None) -> None:
        self._folder = folder
        ours, theirs = socket.socketpair()
        self._socket = ours
        self._connection = Connection(ours)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                command,
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.PIPE,
                env=dict(ENVIRONMENT),
                cwd=folder or "/",
                start_new_session=True,
            )
        with contextlib.suppress(TimeoutError, SandboxEndedError):  # shows itself at the start
            self.send(supervisor_code(), time.monotonic() + START_LIMIT_S)

    def send(self, data: bytes, until_s: float) -> None:
        """Send all of the data; see `Sandbox`."""
        self._connection.send(data, until_s)

    def receive(self, count: int, until_s: float) -> bytes:
        """Return exactly so many bytes; see `Sandbox`."""
        return self._connection.receive(count, until_s)

    def close(self, *, at_once: bool = False) -> None:
        """Kill the process and reap it. bubblewrap's takes its whole namespace with it."""
        self._socket.close()
        self._process.kill()
        self._process.wait()
        if self._process.stderr:
            self._process.stderr.close()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def complaint(self) -> str:
        """Return what a process that did not start said."""
        self._process.kill()
        said: bytes = self._process.communicate()[1]
        return said.decode("utf-8", "replace").strip()[-500:]


class ProcessBackend:
    """Starts sandboxes of one kind, each one ahead of its use.

    Args:
        kind: ``bubblewrap``, or ``local`` for no sandbox at all.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._spare: ProcessSandbox | None = None

    def take(self) -> ProcessSandbox:
        """Return a fresh sandbox that has started, and begin to start the next.

        Raises:
            EnvironmentFault: RLVR-E101, none can be started.
        """
        taken = self._spare or self._new()
        self._spare = None
        try:
            await_start(taken, time.monotonic() + START_LIMIT_S)
        except (SandboxEndedError, TimeoutError):
            said = taken.complaint()
            taken.close()
            raise EnvironmentFault(
                "RLVR-E101", f"the {self._kind} sandbox does not start: {said or 'it said nothing'}"
            ) from None
        self._spare = self._new()
        return taken

    def check(self) -> None:
        """Raise nothing: processes of this machine end only by what runs in them."""

    def close(self) -> None:
        """End the sandbox that lies ready."""
        if self._spare:
            # Killed while it starts, bubblewrap can leave a child that waits for it for ever.
            with contextlib.suppress(SandboxEndedError, TimeoutError):
                await_start(self._spare, time.monotonic() + START_LIMIT_S)
            self._spare.close()
            self._spare = None

    def _new(self) -> ProcessSandbox:
        if self._kind == "local":
            command = python_command(sys.executable, uid=0, dies_with_parent=True)
            return ProcessSandbox(command, Path(tempfile.mkdtemp(prefix="rlvr-code-")))
        return ProcessSandbox(bubblewrap_command())


def bubblewrap_command() -> list[str]:
    """Return the command line of one sandbox.

    Started by root, it runs as a user that nobody else is, so that its processes are counted alone.
    Started by any other user, it has a user namespace of its own.

    Raises:
        EnvironmentFault: RLVR-E101, bubblewrap is not installed.
    """
    found = shutil.which("bwrap")
    if found is None:
        raise EnvironmentFault(
            "RLVR-E101",
            "bubblewrap is not installed: there is no program `bwrap`",
            fix="install it (Debian, Ubuntu: apt install bubblewrap), or use another backend",
        )
    is_root = os.geteuid() == 0
    if is_root:
        uid = _FIRST_UID + secrets.randbelow(_FIRST_UID)
        user = ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        uid = 0
        user = ["--unshare-user", "--uid", str(_NOBODY), "--gid", str(_NOBODY), "--disable-userns"]
        user += ["--cap-drop", "ALL"]
    # Of a virtual environment, the interpreter that it was made from.
    python = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    return [
        found, "--die-with-parent", "--as-pid-1", "--new-session", *user,
        "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try",
        "--hostname", "sandbox",
        *_system_folders(sys.base_prefix),
        "--proc", "/proc", "--dev", "/dev",
        *_scratch("/dev/shm"),  # noqa: S108 - of the sandbox
        *_scratch(_HOME),
        "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", _HOME,
        "--", *python_command(python, uid=uid, dies_with_parent=True),
    ]  # fmt: skip


def _scratch(folder: str) -> list[str]:
    return ["--perms", "1777", "--size", str(SCRATCH_BYTES), "--tmpfs", folder]


def _system_folders(prefix: str) -> list[str]:
    """Return options that show the system's programs and libraries, and Python, read-only."""
    options = ["--ro-bind", "/usr", "/usr", "--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        folder = Path("/", name)
        if folder.is_symlink():
            options += ["--symlink", os.readlink(folder), str(folder)]
        elif folder.is_dir():
            options += ["--ro-bind", str(folder), str(folder)]
    if not Path(prefix).resolve().is_relative_to("/usr"):
        # Folders on the way there would be made for root alone.
        for parent in reversed(Path(prefix).parents[:-1]):
            options += ["--perms", "0755", "--dir", str(parent)]
        options += ["--ro-bind", prefix, prefix]
    return options


def can_bubblewrap() -> str:
    """Return why bubblewrap cannot be used on this machine; empty when it can."""
    backend = ProcessBackend("bubblewrap")
    try:
        backend.take().close()
    except (EnvironmentFault, OSError) as error:
        return str(getattr(error, "message", error))
    finally:
        with contextlib.suppress(OSError):
            backend.close()
    return ""
