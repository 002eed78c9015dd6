"""Sandboxes that are containers: Docker's, and Podman's through the same API."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from rlvr_core.api import EnvironmentFault
from rlvr_plugin_code_docker.command import ENVIRONMENT, python_command, supervisor_code
from rlvr_plugin_code_docker.connection import Connection
from rlvr_plugin_code_docker.session import SandboxEndedError, await_start

LABEL = "rlvr.code-docker"
AHEAD = 4
"""Containers that are made ahead, all at the same time."""
API_LIMIT_S = 8.0
"""How long the daemon may take to answer."""
START_LIMIT_S = 8.0
LEFT_OVER_S = 120.0
"""Age from which a container that was made and never started is left over."""
SCRATCH = "rw,nosuid,nodev,noexec,size=64m,nr_inodes=1024,mode=1777"
PROCESSES = 64
_NOBODY = "65534:65534"
_STREAM_HEADER_BYTES = 8
_STDOUT = 1


def daemon_address(backend: str) -> str:
    """Return where the daemon listens: the variable of its own client, or its usual socket."""
    if backend == "docker":
        return os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    own = os.environ.get("CONTAINER_HOST")
    if own:
        return own
    folder = "/run" if os.geteuid() == 0 else os.environ.get("XDG_RUNTIME_DIR", "/run")
    return f"unix://{folder}/podman/podman.sock"


def host_config(memory_bytes: int) -> dict[str, Any]:
    """Return what a container may do, as the daemon's API takes it: as little as there is."""
    return {
        "NetworkMode": "none",
        "IpcMode": "none",
        "ReadonlyRootfs": True,
        "Tmpfs": {"/tmp": SCRATCH},  # noqa: S108 - of the sandbox
        "Memory": memory_bytes,
        "MemorySwap": memory_bytes,
        "NanoCpus": 1_000_000_000,
        "PidsLimit": PROCESSES,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges"],
        "LogConfig": {"Type": "none"},
        "AutoRemove": True,
    }


class ContainerSandbox:
    """A running container and the stream to its supervisor."""

    def __init__(self, api: Any, image: str, memory_bytes: int) -> None:
        self._api = api
        self._buffer = b""
        made = api.create_container_from_config(
            {
                "Image": image,
                "Entrypoint": [],
                # The name is looked up in the image's PATH.
                "Cmd": python_command("python3", uid=0, dies_with_parent=False),
                "Env": [f"{name}={value}" for name, value in ENVIRONMENT.items()],
                "User": _NOBODY,
                "WorkingDir": "/tmp",  # noqa: S108 - of the sandbox
                "Hostname": "sandbox",
                "OpenStdin": True,
                # When this process dies, its connection ends, and with it the container.
                "StdinOnce": True,
                "AttachStdin": True,
                "AttachStdout": True,
                "Tty": False,
                "Labels": {LABEL: "1"},
                "HostConfig": host_config(memory_bytes),
            }
        )
        self.id: str = made["Id"]
        streams = {"stdin": 1, "stdout": 1, "stream": 1}
        self._stream = api.attach_socket(self.id, params=streams)
        self._socket: socket.socket = getattr(self._stream, "_sock", self._stream)
        self._connection = Connection(self._socket)
        api.start(self.id)

    def send(self, data: bytes, until_s: float) -> None:
        """Send all of the data; see `Sandbox`."""
        self._connection.send(data, until_s)

    def receive(self, count: int, until_s: float) -> bytes:
        """Return exactly so many bytes of its standard output; see `Sandbox`."""
        while len(self._buffer) < count:
            header = self._connection.receive(_STREAM_HEADER_BYTES, until_s)
            part = self._connection.receive(int.from_bytes(header[4:], "big"), until_s)
            if header[0] == _STDOUT:
                self._buffer += part
        found, self._buffer = self._buffer[:count], self._buffer[count:]
        return found

    def close(self, *, at_once: bool = False) -> None:
        """Leave: the supervisor ends when nobody listens, and the container is removed with it."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._stream.close()
        if at_once:
            with contextlib.suppress(Exception):  # it may be gone already
                self._api.remove_container(self.id, force=True)


class ContainerBackend:
    """Makes containers of one image, some ahead of their use.

    Args:
        backend: ``docker`` or ``podman``.
        image: Id of the image.
        memory_bytes: What all processes of a container may use together; there is no swap.
    """

    def __init__(self, backend: str, image: str, memory_bytes: int) -> None:
        self._backend = backend
        self._image = image
        self._memory_bytes = memory_bytes
        self._own = threading.local()
        self._makers = ThreadPoolExecutor(AHEAD, thread_name_prefix="container")
        self._waiting: deque[Future[ContainerSandbox]] = deque()
        self._is_swept = False

    def take(self) -> ContainerSandbox:
        """Return a fresh container that has started, and begin to make others.

        Raises:
            EnvironmentFault: RLVR-E101, the daemon does not answer, or makes none.
        """
        self._sweep()
        while True:
            is_ready_made = bool(self._waiting)
            taken = self._waiting.popleft() if is_ready_made else self._makers.submit(self._new)
            try:
                sandbox = taken.result(START_LIMIT_S + API_LIMIT_S)
                break
            except SandboxEndedError as error:
                # One that lay ready may be gone with the daemon it came from; a new one tells.
                if not is_ready_made:
                    raise self._fault(f"the container ended at once: {error}") from None
            except Exception as error:  # noqa: BLE001 - whatever the client raises
                self._forget()
                if not is_ready_made:
                    raise self._fault(str(error)) from None
        while len(self._waiting) < AHEAD:
            self._waiting.append(self._makers.submit(self._new))
        return sandbox

    def check(self) -> None:
        """Ask the daemon whether it still lives.

        Raises:
            EnvironmentFault: RLVR-E101, it does not.
        """
        try:
            self._api().ping()
        except Exception as error:  # noqa: BLE001 - whatever the client raises means the same
            raise self._fault(str(error)) from None

    def close(self) -> None:
        """End the containers that lie ready."""
        self._forget()
        self._makers.shutdown(wait=True)

    def _forget(self) -> None:
        for waiting in self._waiting:
            waiting.add_done_callback(_end)
        self._waiting.clear()

    def _new(self) -> ContainerSandbox:
        sandbox = ContainerSandbox(self._api(), self._image, self._memory_bytes)
        try:
            until_s = time.monotonic() + START_LIMIT_S
            sandbox.send(supervisor_code(), until_s)
            await_start(sandbox, until_s)
        except Exception:
            sandbox.close(at_once=True)
            raise
        return sandbox

    def _api(self) -> Any:
        """Return this thread's client."""
        if not hasattr(self._own, "api"):
            import docker  # only here: it takes a quarter of a second, and not everybody needs it

            address = daemon_address(self._backend)
            self._own.api = docker.APIClient(address, version="auto", timeout=API_LIMIT_S)
        return self._own.api

    def _sweep(self) -> None:
        """Remove what a process left that was killed between making a container and starting it."""
        if self._is_swept:
            return
        self._is_swept = True
        with contextlib.suppress(Exception):  # a daemon that does not answer shows itself later
            filters = {"label": LABEL, "status": "created"}
            for one in self._api().containers(all=True, filters=filters):
                if time.time() - one["Created"] > LEFT_OVER_S:
                    self._api().remove_container(one["Id"], force=True)

    def _fault(self, cause: str) -> EnvironmentFault:
        return EnvironmentFault(
            "RLVR-E101",
            f"{self._backend} cannot make a container: {cause[:400]}",
            fix=f"see that the {self._backend} daemon runs and has the image {self._image}; "
            "`rlvr-code-docker build-image` makes one",
        )


def _end(made: Future[ContainerSandbox]) -> None:
    if not made.cancelled() and made.exception() is None:
        made.result().close()
