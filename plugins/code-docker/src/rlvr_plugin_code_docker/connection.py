"""The bytes between this process and a sandbox, each call under a deadline."""

from __future__ import annotations

import socket
import time

from rlvr_plugin_code_docker.session import SandboxEndedError

_BLOCK_BYTES = 1 << 16


class Connection:
    """A socket to a sandbox."""

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream

    def send(self, data: bytes, until_s: float) -> None:
        """Send all of the data. Raises what `receive` raises."""
        self._wait_at_most(until_s)
        try:
            self._stream.sendall(data)
        except OSError as error:
            raise _cause(error) from None

    def receive(self, count: int, until_s: float) -> bytes:
        """Return exactly so many bytes.

        Raises:
            SandboxEndedError: The other side is gone.
            TimeoutError: It took longer than until `until_s` (`time.monotonic`).
        """
        data = b""
        while len(data) < count:
            self._wait_at_most(until_s)
            try:
                part = self._stream.recv(min(count - len(data), _BLOCK_BYTES))
            except OSError as error:
                raise _cause(error) from None
            if not part:
                raise SandboxEndedError
            data += part
        return data

    def _wait_at_most(self, until_s: float) -> None:
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._stream.settimeout(left_s)


def _cause(error: OSError) -> Exception:
    return TimeoutError() if isinstance(error, TimeoutError) else SandboxEndedError()
