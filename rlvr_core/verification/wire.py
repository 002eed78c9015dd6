"""Messages between a worker and its parent: length-prefixed frames over a socket.

The parent does not trust what a worker sends: that is JSON and fixed structures, never a pickle.
"""

from __future__ import annotations

import json
import pickle
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlvr_core.api import errors
from rlvr_core.api.errors import RlvrError
from rlvr_core.plugins.ref import PluginRef
from rlvr_core.verification.contract import ContractError
from rlvr_core.verification.rows import WireRow

READY = b"R"
FAILED = b"F"
DONE = b"D"

MAX_MESSAGE_BYTES = 1 << 24
"""Far more than the verdicts on one chunk take; a worker that announces more is not listened to."""

_LENGTH = struct.Struct("=I")
_CHUNK = struct.Struct("=q")


@dataclass(frozen=True, slots=True)
class Startup:
    """The first message to a worker."""

    refs: Mapping[str, PluginRef]
    """By instance name."""
    seed: int
    lanes: int
    rows_a_lane: int
    memory_limit_bytes: int | None


@dataclass(frozen=True, slots=True)
class Work:
    """Rows of one verifier, for one lane of a worker."""

    lane: int
    chunk: int
    """Serial number, unique and rising within a pool; at least 1."""
    verifier: str
    rows: list[WireRow]


class ParentChannel:
    """The parent's end: never blocks, since a hung worker does not read."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._socket = end
        self._outgoing = bytearray()
        self._incoming = bytearray()
        self._is_too_long = False

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._socket.fileno()

    @property
    def wants_to_write(self) -> bool:
        """True while something waits for room in the socket."""
        return bool(self._outgoing)

    def send(self, message: Startup | Work) -> None:
        """Queue a message and write what fits."""
        payload = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        self._outgoing += _LENGTH.pack(len(payload))
        self._outgoing += payload
        self.flush()

    def flush(self) -> None:
        """Write what fits; a peer that is gone shows when reading."""
        try:
            while self._outgoing:
                sent = self._socket.send(memoryview(self._outgoing)[: 1 << 18])
                del self._outgoing[:sent]
        except BlockingIOError:
            return
        except OSError:
            self._outgoing.clear()

    def receive(self) -> tuple[list[bytes], bool]:
        """Return the messages that are complete, and whether the worker closed its end.

        One that talks past `MAX_MESSAGE_BYTES` has closed it as well.
        """
        ended = False
        try:
            while not ended:
                data = self._socket.recv(1 << 18)
                self._incoming += data
                ended = not data
        except BlockingIOError:
            pass
        except OSError:
            ended = True
        return self._complete(), ended or self._is_too_long

    def finish(self) -> None:
        """Tell an idle worker to end."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            self._outgoing.clear()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _complete(self) -> list[bytes]:
        messages = []
        at = 0
        while len(self._incoming) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._incoming, at)
            end = at + _LENGTH.size + length
            self._is_too_long = length > MAX_MESSAGE_BYTES
            if len(self._incoming) < end or self._is_too_long:
                break
            messages.append(bytes(self._incoming[at + _LENGTH.size : end]))
            at = end
        del self._incoming[:at]
        return messages


class WorkerChannel:
    """The worker's end: blocks."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(True)
        self._socket = end

    def receive(self) -> Any:
        """Return the next message of the parent, or None when it closed its end."""
        header = self._exactly(_LENGTH.size)
        payload = header and self._exactly(_LENGTH.unpack(header)[0])
        # The parent is this process's own creator and gave it its code.
        return pickle.loads(payload) if payload else None  # noqa: S301

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        """Send one message."""
        self._socket.sendall(_LENGTH.pack(1 + len(payload)) + kind + payload)

    def _exactly(self, size: int) -> bytes:
        buffer = bytearray(size)
        view = memoryview(buffer)
        at = 0
        while at < size:
            count = self._socket.recv_into(view[at:])
            if not count:
                return b""
            at += count
        return bytes(buffer)


def pack_done(chunk: int, records: bytes) -> bytes:
    """Return the payload of a `DONE` message."""
    return _CHUNK.pack(chunk) + records


def unpack_done(payload: bytes) -> tuple[int, bytes]:
    """Return (chunk, records) of the payload of a `DONE` message.

    Raises:
        ContractError: It is none.
    """
    if len(payload) < _CHUNK.size:
        raise ContractError("expected the serial number of a chunk")
    return _CHUNK.unpack_from(payload)[0], payload[_CHUNK.size :]


def pack_error(error: RlvrError) -> bytes:
    """Return an error as the payload of a `FAILED` message."""
    return json.dumps({"class": type(error).__name__, **error.to_json()}).encode()


def unpack_error(payload: bytes) -> RlvrError:
    """Return the error of a `FAILED` message.

    Raises:
        ContractError: It is none.
    """
    try:
        fields: dict[str, Any] = json.loads(payload)
        cls = getattr(errors, fields.pop("class"), RlvrError)
        if not (isinstance(cls, type) and issubclass(cls, RlvrError)):
            raise TypeError(f"{cls!r} is no error of rlvr")
        return cls(fields.pop("code"), fields.pop("message"), **fields)
    except (LookupError, TypeError, ValueError, RecursionError) as exc:
        raise ContractError(f"expected an error, but: {exc}") from exc
