"""Ending a process whose main thread cannot be woken.

Verifier workers need no farewell: their keeper ends them as soon as this process is gone.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

INTERRUPTED_EXIT_CODE = 130
END_WITHIN_S = 10.0
"""How long a process may take to end in order, once it has been asked to."""
_LAST_ACT_S = 3.0
_SHOW_CURSOR = "\x1b[?25h"


def end_process(message: str, exit_code: int, last_act: Callable[[], None]) -> NoReturn:
    """Do one last thing, if it can be done in a moment, print a message and end this process.

    Args:
        message: For standard error.
        exit_code: Of the process.
        last_act: Called in a thread of its own; what it raises is passed over.
    """

    def act() -> None:
        with suppress(Exception):
            last_act()

    acting = threading.Thread(target=act, daemon=True)
    acting.start()
    acting.join(_LAST_ACT_S)
    with suppress(OSError):
        if os.isatty(sys.__stderr__.fileno() if sys.__stderr__ else 2):
            message = f"{_SHOW_CURSOR}\n{message}"
        # Past Python's own buffers, whose locks the main thread may hold.
        os.write(2, f"{message}\n".encode(errors="replace"))
    os._exit(exit_code)
