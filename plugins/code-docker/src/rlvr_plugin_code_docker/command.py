"""The command line that starts the supervisor, the same in every kind of sandbox."""

from __future__ import annotations

from pathlib import Path

_SOURCE = Path(__file__).with_name("guest.py").read_text(encoding="utf-8")
_BOOT = (
    "import builtins, sys; exec(compile(sys.argv[1], '<sandbox>', 'exec'), "
    "{'__builtins__': dict(vars(builtins)), '__name__': '__main__'})"
)
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108 - of the sandbox
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    # The same answer gets the same verdict, whatever order its sets have.
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
}
"""The whole environment of the sandbox."""


def python_command(python: str, *, uid: int, dies_with_parent: bool) -> list[str]:
    """Return the command.

    Args:
        python: The interpreter, as a path in the sandbox. Version 3.11 or later.
        uid: User that the supervisor changes to; 0 for none.
        dies_with_parent: The supervisor is to be killed when its parent ends.
    """
    # No site-packages, nothing from the user's folder or the current one, no bytecode written. It is
    # what -I does, but for the environment: the seed of hashes is wanted.
    flags = ["-s", "-S", "-P", "-B"]
    return [python, *flags, "-c", _BOOT, _SOURCE, str(uid), str(int(dies_with_parent))]
