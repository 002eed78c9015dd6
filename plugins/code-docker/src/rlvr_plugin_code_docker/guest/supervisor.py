"""Process 1 of the sandbox: takes tests from the host, forks for each, says what came of it.

Only forked children ever run code of the answer. A child is given no descriptor but a pipe of its
own, and the nonce that marks a record is read after the child was forked, so no child can know it.
Nothing that a child says decides alone: the values that it sends are compared on the host.

Process 1 cannot be killed or stopped from inside its namespace, and it cannot be traced, because
it is not dumpable.

Frames, both ways, are four bytes of length (big-endian) and the content.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import select
import signal
import sys
import time

from rlvr_plugin_code_docker.guest.child import (
    Child,
    compiled,
    confine,
    stand_between,
    with_code,
    with_compiled,
)
from rlvr_plugin_code_docker.guest.values import MAX_RESULT_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

START_BYTE = b"\x01"
NONCE_BYTES = 16
HEADER_BYTES = 5
"""What a child says begins with a letter and four bytes of length."""
MAX_SAID_BYTES = MAX_RESULT_BYTES + 2 * HEADER_BYTES
MAX_OUTPUT_BYTES = 1 << 20
COMMON = ("typing", "collections", "itertools", "math", "re")
"""What most answers import."""
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36


class Supervisor:
    """Reads tests from the host, runs each in a child, and says what came of it."""

    def __init__(self, prctl: Callable[..., Any]) -> None:
        self.prctl = prctl
        self.reads = os.dup(0)
        self.writes = os.dup(1)
        self.is_first_process = os.getpid() == 1
        nothing = os.open("/dev/null", os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        os.close(nothing)

    def serve(self) -> None:
        """Serve until the host is gone."""
        # Sandboxes are started ahead of their use, so this time is not waited for.
        preload(COMMON)
        compiled("0", "<warm>")
        self.send(START_BYTE)
        # Warnings about an answer would fill a stream that nobody reads any more.
        os.dup2(0, 2)
        job = with_code(marshal.loads(self.frame()))  # noqa: S302 - from the host
        preload(job["preload"])
        if "random" in sys.modules:
            sys.modules["random"].seed(0)
        while True:
            test = with_compiled(marshal.loads(self.frame()))  # noqa: S302 - from the host
            nonce, letter, content = self.run(job, test)
            self.send(nonce + letter + content)

    def exactly(self, count: int) -> bytes:
        """Return so many bytes from the host; without a host, end."""
        data = b""
        while len(data) < count:
            part = os.read(self.reads, count - len(data))
            if not part:
                os._exit(0)  # the host is gone
            data += part
        return data

    def frame(self) -> bytes:
        """Return the next message of the host."""
        return self.exactly(int.from_bytes(self.exactly(4), "big"))

    def send(self, content: bytes) -> None:
        """Send a message to the host."""
        data = len(content).to_bytes(4, "big") + content
        while data:
            data = data[os.write(self.writes, data) :]

    def run(self, job: Mapping[str, Any], test: Mapping[str, Any]) -> tuple[bytes, bytes, bytes]:
        """Run one test; return its nonce, a letter for what came of it, and content."""
        said, says = os.pipe()
        printed = prints = stdin = None
        if test["kind"] == "program":
            printed, prints = os.pipe()
            stdin = os.memfd_create("stdin")
            rest = test["stdin"]
            while rest:
                rest = rest[os.write(stdin, rest) :]
            os.lseek(stdin, 0, 0)
        runner = os.fork()
        if runner == 0:
            try:
                if not self.is_first_process:
                    os.setsid()
                confine(job, (stdin, prints, None, says))
                self.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
                stand_between()
                Child(job, test).run()
            finally:
                os._exit(0)
        for descriptor in (says, prints, stdin):
            if descriptor is not None:
                os.close(descriptor)
        # Only now: the child holds a copy of all that was known before.
        nonce = self.exactly(NONCE_BYTES)
        ended = os.pidfd_open(runner)
        try:
            return (nonce, *self.watch(runner, ended, said, printed, test["limit_s"]))
        finally:
            self.sweep(runner)
            os.close(ended)
            os.close(said)
            if printed is not None:
                os.close(printed)

    def watch(
        self, runner: int, ended: int, said: int, printed: int | None, limit_s: float
    ) -> tuple[bytes, bytes]:
        """Return what the child said, if its runner lived to see its end, or how they ended."""
        until_s = time.monotonic() + limit_s
        streams = [said] if printed is None else [said, printed]
        received = {stream: bytearray() for stream in streams}
        output = bytearray() if printed is None else received[printed]
        poll = select.poll()
        for descriptor in (*streams, self.reads, ended):
            poll.register(descriptor, select.POLLIN)
        has_ended = False
        while not has_ended:
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return b"T", b""
            for descriptor, _ in poll.poll(1000 * left_s + 1):
                if descriptor == self.reads:
                    os._exit(0)  # nothing is sent while a test runs: the host is gone
                if descriptor == ended:
                    has_ended = True
                elif not take(descriptor, received[descriptor]):
                    poll.unregister(descriptor)
            if len(output) > MAX_OUTPUT_BYTES or len(received[said]) > MAX_SAID_BYTES:
                return b"L", b""
        code = os.waitstatus_to_exitcode(os.waitpid(runner, 0)[1])
        # What a process that is left over still writes does not count.
        for descriptor in streams:
            os.set_blocking(descriptor, False)
            while len(received[descriptor]) <= MAX_SAID_BYTES:
                if not take(descriptor, received[descriptor]):
                    break
        if code < 0:
            # Somebody inside killed the runner: whatever was said, nobody vouches for it.
            return b"K", str(-code).encode()
        if is_whole(received[said]):
            return parts(received[said])
        if len(output) > MAX_OUTPUT_BYTES:
            return b"L", b""
        if printed is not None and code == 0:
            return b"O", bytes(output)
        return b"E", str(code).encode()

    def sweep(self, runner: int) -> None:
        """End and reap whatever a test left."""
        if self.is_first_process:
            # Everything in this namespace but this process.
            kill(-1)
        else:
            self.sweep_own(runner)
        while True:
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return

    def sweep_own(self, runner: int) -> None:
        """Without a namespace: the runner's group, and what was orphaned to this process."""
        kill(-runner)
        own = f"/proc/self/task/{os.getpid()}/children"
        for _ in range(200):
            with open(own) as file:
                left = [int(pid) for pid in file.read().split()]
            for pid in left:
                kill(pid)
            if not left:
                return
            for pid in left:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)


def preload(names: Iterable[str]) -> None:
    """Import modules, for all children; one that cannot be is left to fail in the answer."""
    for name in names:
        try:
            __import__(name)
        except Exception:  # noqa: BLE001, S112 - a sandbox may have less than the whole library
            continue


def kill(pid: int) -> None:
    """Kill a process, a group (negative) or all others (-1)."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def take(descriptor: int, received: bytearray) -> bool:
    """Read once; return whether there may be more."""
    try:
        data = os.read(descriptor, 65536)
    except BlockingIOError:
        return False
    received += data
    return bool(data)


def is_whole(received: bytearray) -> bool:
    """Return whether a child has said all that it announced."""
    if len(received) < HEADER_BYTES:
        return False
    return len(received) >= HEADER_BYTES + int.from_bytes(received[1:HEADER_BYTES], "big")


def parts(received: bytearray) -> tuple[bytes, bytes]:
    """Return letter and content of what a child said; it may have said anything."""
    size = int.from_bytes(received[1:HEADER_BYTES], "big")
    letter = bytes(received[:1])
    # Letters that only the supervisor may use say nothing from a child.
    if letter not in (b"V", b"P", b"A", b"L", b"X", b"S"):
        letter = b"X"
    return letter, bytes(received[HEADER_BYTES : HEADER_BYTES + size])


def c_function(name: str) -> Callable[..., Any]:
    """Return a function of the C library. All of `ctypes` takes half as long as Python to load."""
    import _ctypes

    class Integer(_ctypes._SimpleCData):  # type: ignore[type-arg] # generic to the checker only
        _type_ = "l"

    class Function(_ctypes.CFuncPtr):
        _flags_ = _ctypes.FUNCFLAG_CDECL
        _restype_ = Integer

    own_program: Any = None
    function: Callable[..., Any] = Function(_ctypes.dlsym(_ctypes.dlopen(own_program, 0), name))
    return function


def main(uid: int, *, dies_with_parent: bool) -> None:
    """Take on `uid` where it is not 0, then serve."""
    prctl = c_function("prctl")
    if uid:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    if dies_with_parent:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    if os.getpid() != 1:
        prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # An answer may import whatever a Python has, and nothing of this.
    for name in [name for name in sys.modules if name.startswith("rlvr_plugin")]:
        del sys.modules[name]
    Supervisor(prctl).serve()
