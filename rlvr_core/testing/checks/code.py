"""Checks with programs that want to pass their tests without doing what these ask for."""

from __future__ import annotations

import re
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rlvr_core.api.verdicts import Status
from rlvr_core.testing.apart.parent import Finding
from rlvr_core.testing.check import SHAPED, Check, failed, not_applicable, passed
from rlvr_core.testing.subject import Subject, row_of

_FUNCTION = re.compile(r"^def (\w+)", re.MULTILINE)
_YES = """
class Yes:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    def __gt__(self, other): return True
    def __bool__(self): return True
    def __hash__(self): return 0
    def __len__(self): return 1
"""


def programs(functions: list[str], marker: Path, port: int) -> Mapping[str, str]:
    """Return hostile programs by name.

    Args:
        functions: Names that the tests call.
        marker: A file outside of any sandbox.
        port: Of this machine; somebody listens there.
    """
    stubs = "\n".join(f"def {name}(*args, **named): return Yes()" for name in functions)
    empty = "\n".join(f"def {name}(*args, **named): pass" for name in functions)
    return {
        "sys.exit(0) before the tests": "import sys\nsys.exit(0)",
        "os._exit(0) before the tests": "import os\nos._exit(0)",
        "SystemExit out of a call": empty.replace("pass", "raise SystemExit(0)"),
        "answers that equal everything": f"{_YES}\n{stubs}",
        "a patched AssertionError": "import builtins\nbuiltins.AssertionError = SystemExit\n"
        + empty,
        "an excepthook that exits": "import os, sys\nsys.excepthook = lambda *a: os._exit(0)\n"
        + empty,
        "an exit handler": "import atexit, os\natexit.register(lambda: os._exit(0))\n" + empty,
        "reading its own tests": "import sys\nprint(open(sys.argv[0]).read())\n" + empty,
        "claims on standard output": "print('OK', 'PASSED', '1 passed', flush=True)\n" + empty,
        "a file outside": f"open({str(marker)!r}, 'w').write('x')\n{empty}",
        "the network": "import socket\n"
        f"socket.create_connection(('localhost', {port}), 1)\n{empty}",
        "many processes": "import os, time\nfor _ in range(200):\n    if os.fork() == 0:\n"
        "        time.sleep(60)\n        os._exit(0)\n" + empty,
        "much memory": "held = [bytes([1]) * (1 << 28) for _ in range(400)]\n" + empty,
        "no end": "while True:\n    pass",
    }


def code(subject: Subject) -> Finding:
    """Run hostile programs through a verifier that runs programs."""
    cases = [case for case in subject.answered if _FUNCTION.search(case.row.completion)][:1]
    if not cases:
        return not_applicable("no golden case that passes defines a function at the left margin")
    [case] = cases
    with tempfile.TemporaryDirectory(prefix="rlvr-check-") as folder, _listener() as listening:
        marker = Path(folder) / "written-by-a-completion"
        hostile = programs(
            _FUNCTION.findall(case.row.completion), marker, listening.getsockname()[1]
        )
        rows = [row_of(case, f"```python\n{text}\n```") for text in hostile.values()]
        for name, verdict in zip(hostile, subject.judging.judge(rows), strict=True):
            if verdict.status is not Status.FAILED:
                return failed(f"{name}: {verdict.status}/{verdict.failure}")
        if marker.exists():
            return failed("a program wrote a file outside of its sandbox")
        if _was_called(listening):
            return failed("a program reached the network")
    return passed(f"{len(hostile)} hostile programs fail, and reach nothing")


@contextmanager
def _listener() -> Iterator[socket.socket]:
    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        listening.listen()
        listening.setblocking(False)
        yield listening


def _was_called(listening: socket.socket) -> bool:
    try:
        connection, _ = listening.accept()
    except BlockingIOError:
        return False
    connection.close()
    return True


CHECKS = (
    Check(
        "C54",
        "Code: programs that exit early, patch the tests, read them, write outside, use the "
        "network, fork or take all memory do not pass.",
        code,
        (*SHAPED, "R20"),
        "code",
    ),
)
