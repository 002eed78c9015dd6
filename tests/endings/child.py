"""What a child of the fork server does: run the command line, and be held up somewhere.

The server has imported torch already, so a run begins at once.
"""

import contextlib
import ctypes
import functools
import importlib
import io
import os
import signal
import sys
import time
from pathlib import Path


def command_line(arguments, output, environment=(), hold=None, constants=()):
    """Run ``rlvr`` with its output in a file.

    Args:
        arguments: Of the command line.
        output: File that standard output and error go to.
        environment: Variables to set.
        hold: What to hold it up at; see `hold_up`.
        constants: ``module:NAME`` to a value to use in its place, such as a shorter time.
    """
    os.setsid()
    # A shell that runs tests in the background has it ignored, and so would every child.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for descriptor in (1, 2):
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND), descriptor)
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), line_buffering=True)
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), line_buffering=True)
    os.environ.update(environment)
    import torch

    torch.set_num_threads(1)
    for name, value in dict(constants).items():
        module, _, constant = name.partition(":")
        setattr(importlib.import_module(module), constant, value)
    if hold:
        hold_up(**hold)
    from rlvr_core.cli.main import main

    sys.stdout.write("began\n")
    main(arguments)


def hold_up(at, mark, how="sleep", call=1, rank=0):
    """Hold this process up when it comes somewhere, and let `mark` say that it has.

    Args:
        at: ``module:function``, or ``module:Class.method``.
        mark: This file is made when it is held up.
        how: See `HOW`.
        call: At which call.
        rank: In which process of a run.
    """
    if int(os.environ.get("RANK", "0")) != rank:
        return
    module, _, name = at.partition(":")
    owner = importlib.import_module(module)
    *outer, name = name.split(".")
    for part in outer:
        owner = getattr(owner, part)
    real = getattr(owner, name)
    calls = 0

    @functools.wraps(real)
    def held(*arguments, **keywords):
        nonlocal calls
        calls += 1
        if calls == call:
            Path(mark).touch()
            HOW[how]()
        return real(*arguments, **keywords)

    setattr(owner, name, held)


def _sleep():
    time.sleep(60)


def _spin():
    until_s = time.monotonic() + 60
    while time.monotonic() < until_s:
        pass


def _swallow():
    """Do as a plugin does that catches everything."""
    until_s = time.monotonic() + 60
    while time.monotonic() < until_s:
        with contextlib.suppress(BaseException):
            time.sleep(0.1)


def _disguise():
    """Do as a library does that makes an error of its own of whatever comes."""
    try:
        time.sleep(60)
    except BaseException as exc:
        raise ImportError("could not be imported") from exc


def _block():
    """Wait in C for what never comes; signals do not end it."""
    libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    libc.pthread_mutex_lock(mutex)
    libc.pthread_mutex_lock(mutex)


def _fail():
    raise RuntimeError("it broke")


HOW = {
    "sleep": _sleep,
    "spin": _spin,
    "swallow": _swallow,
    "disguise": _disguise,
    "block": _block,
    "fail": _fail,
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
}
