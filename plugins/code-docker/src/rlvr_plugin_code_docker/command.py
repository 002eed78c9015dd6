"""The command line that starts the supervisor, the same in every kind of sandbox."""

from __future__ import annotations

import marshal
from functools import lru_cache
from pathlib import Path

_PACKAGE = "rlvr_plugin_code_docker.guest"
_MODULES = ("values", "child", "supervisor")
"""In the order of their imports."""
_BOOT = f"""
import builtins, marshal, sys
for name, code in marshal.loads(bytes.fromhex(sys.argv[1])):
    module = sys.modules[name] = type(sys)(name)
    module.__builtins__ = dict(vars(builtins))
    exec(compile(code, name, "exec") if type(code) is str else code, module.__dict__)
sys.modules["{_PACKAGE}.supervisor"].main(int(sys.argv[2]), dies_with_parent=sys.argv[3] == "1")
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


def python_command(
    python: str, *, uid: int, dies_with_parent: bool, is_same_python: bool
) -> list[str]:
    """Return the command.

    Args:
        python: The interpreter, as a path in the sandbox. Version 3.11 or later.
        uid: User that the supervisor changes to; 0 for none.
        dies_with_parent: The supervisor is to be killed when its parent ends.
        is_same_python: It is this interpreter, and needs not compile again.
    """
    # No site-packages, nothing from the user's folder or the current one, no bytecode written: what
    # -I does, but for the environment, since the seed of hashes is wanted.
    flags = ["-s", "-S", "-P", "-B"]
    code = _code(is_compiled=is_same_python)
    return [python, *flags, "-c", _BOOT, code, str(uid), str(int(dies_with_parent))]


@lru_cache(maxsize=2)
def _code(*, is_compiled: bool) -> str:
    parts: list[tuple[str, object]] = []
    for module in _MODULES:
        name = f"{_PACKAGE}.{module}"
        source = Path(__file__).with_name("guest").joinpath(f"{module}.py").read_text("utf-8")
        parts.append((name, compile(source, name, "exec") if is_compiled else source))
    # Version 2 of the format is read by every Python, but for code, which only the same one reads.
    return marshal.dumps(parts, marshal.version if is_compiled else 2).hex()
