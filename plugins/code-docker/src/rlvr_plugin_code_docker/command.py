"""How the supervisor gets into a sandbox: a short command line, and its code as the first input."""

from __future__ import annotations

import importlib.util
import marshal
from functools import cache
from pathlib import Path

_PACKAGE = "rlvr_plugin_code_docker.guest"
_MODULES = ("values", "child", "supervisor")
"""In the order of their imports."""
_BOOT = f"""
import builtins, marshal, os, sys
def exactly(count):
    data = b""
    while len(data) < count:
        part = os.read(0, count - len(data))
        if not part:
            os._exit(0)
        data += part
    return data
magic, modules = marshal.loads(exactly(int.from_bytes(exactly(4), "big")))
is_same = sys.modules["_frozen_importlib_external"].MAGIC_NUMBER == magic
for name, source, code in modules:
    module = sys.modules[name] = type(sys)(name)
    module.__builtins__ = dict(vars(builtins))
    exec(marshal.loads(code) if is_same else compile(source, name, "exec"), module.__dict__)
main = sys.modules["{_PACKAGE}.supervisor"].main
del magic, modules, name, source, code, module
main(int(sys.argv[1]), dies_with_parent=sys.argv[2] == "1")
"""
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
    """Return the command. What it runs first reads `supervisor_code` from its standard input.

    Args:
        python: The interpreter, as a path in the sandbox. Version 3.11 or later.
        uid: User that the supervisor changes to; 0 for none.
        dies_with_parent: The supervisor is to be killed when its parent ends.
    """
    # No site-packages, nothing from the user's folder or the current one, no bytecode written: what
    # -I does, but for the environment, since the seed of hashes is wanted.
    flags = ["-s", "-S", "-P", "-B"]
    return [python, *flags, "-c", _BOOT, str(uid), str(int(dies_with_parent))]


@cache
def supervisor_code() -> bytes:
    """Return the frame that holds the supervisor's modules.

    Each comes as source, and compiled for a sandbox that has the same Python as this process: to
    compile them anew takes longer than a test.
    """
    modules = []
    for module in _MODULES:
        name = f"{_PACKAGE}.{module}"
        source = Path(__file__).with_name("guest").joinpath(f"{module}.py").read_text("utf-8")
        modules.append((name, source, marshal.dumps(compile(source, name, "exec"))))
    # Version 2 of the format is read by every Python.
    data = marshal.dumps((importlib.util.MAGIC_NUMBER, modules), 2)
    return len(data).to_bytes(4, "big") + data
