"""The parent's side of the keeper, which ends workers that outlive the training process."""

from __future__ import annotations

import contextlib
import subprocess

from rlvr_core.verification.processes import start_keeper

_END_DEADLINE_S = 3.0


class Keeper:
    """Tells the keeper process which workers live; starts it again if it is gone."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._pids: set[int] = set()
        self._process = start_keeper(token)

    def watch(self, pid: int) -> None:
        """Have `pid` and its descendants killed when this process dies."""
        self._pids.add(pid)
        self._tell(f"+{pid}\n")

    def forget(self, pid: int) -> None:
        """No longer watch `pid`: it has been reaped, and its number may be used again."""
        self._pids.discard(pid)
        self._tell(f"-{pid}\n")

    def close(self) -> None:
        """End the keeper, which sweeps once more for anything left."""
        with contextlib.suppress(OSError):
            if self._process.stdin:
                self._process.stdin.close()
        try:
            self._process.wait(_END_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _tell(self, line: str) -> None:
        try:
            self._write(line)
        except OSError:
            self.close()
            self._process = start_keeper(self._token)
            self._write("".join(f"+{pid}\n" for pid in sorted(self._pids)))

    def _write(self, text: str) -> None:
        if self._process.stdin:
            self._process.stdin.write(text.encode())
            self._process.stdin.flush()
