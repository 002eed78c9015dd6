"""The process that runs an answer and one test, and the runner that stands above it."""
# ruff: noqa: S102, S307 - executing the answer is what it is for

from __future__ import annotations

import builtins
import contextlib
import os
import resource
import sys

from rlvr_plugin_code_docker.guest.values import TooLarge, Writer, guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import CodeType
    from typing import Any, NoReturn

PIPE = 3
"""Descriptor of a child's own pipe; beside it, a child has only its standard ones."""
REFUSED = (SyntaxError, ValueError, OverflowError, MemoryError, RecursionError)
"""What compiling a text may raise."""

# The interpreter starts without `site`, which brings these two.
vars(builtins).update(exit=sys.exit, quit=sys.exit)
PRISTINE = dict(vars(builtins))
BASE_MODULES = dict(sys.modules)
Module = type(sys)


def compiled(source: str, name: str, mode: str = "exec") -> CodeType:
    """Compile a text, with none of the settings of this module."""
    code: CodeType = compile(source, name, mode, dont_inherit=True)
    return code


def compiled_or_text(source: str, name: str, mode: str = "exec") -> CodeType | str:
    """Compile a text of the host's; one that this Python refuses is left, to fail in the child."""
    try:
        return compiled(source, name, mode)
    except REFUSED:
        return source


def with_code(job: dict[str, Any]) -> dict[str, Any]:
    """Return what the host sent with its texts compiled, once for all children.

    Compiling runs nothing of the answer. The code of an answer that cannot be compiled is None.
    """
    source, context = job["source"], job["context"]
    job["context"] = compiled_or_text(context, "<context>") if context else None
    job["code"] = None
    with contextlib.suppress(*REFUSED):
        job["code"] = compiled(source, "<answer>")
        return job
    with contextlib.suppress(*REFUSED):
        if context:
            # It goes on where the context ends.
            job["code"] = compiled(context.rstrip("\n") + "\n" + source, "<answer>")
            job["context"] = None
    return job


def with_compiled(test: dict[str, Any]) -> dict[str, Any]:
    """Return a test with its texts compiled."""
    for name in {"setup", "imports", "body"} & test.keys():
        test[name] = compiled_or_text(test[name], f"<{name}>")
    if "holes" in test:
        test["holes"] = [compiled_or_text(hole, "<hole>", "eval") for hole in test["holes"]]
    return test


class Child:
    """What runs in the forked process: the answer, then one test."""

    def __init__(self, job: Mapping[str, Any], test: Mapping[str, Any]) -> None:
        self.job = job
        self.test = test

    def run(self) -> None:
        """Run the test and say what came of it."""
        kind = self.test["kind"]
        try:
            if kind == "values":
                self.say(b"V", self.values())
            elif kind == "inside":
                self.say(b"P" if self.inside() else b"A", b"")
            else:
                self.program()
        except AssertionError as error:
            self.say(b"A" if kind == "inside" else b"X", type(error).__name__.encode())
        except TooLarge:
            self.say(b"L", b"")
        except BaseException as error:  # noqa: BLE001 - whatever the answer raises
            name = type.__getattribute__(type(error), "__name__")
            self.say(b"X", name.encode("utf-8", "replace")[:100])

    def say(self, letter: bytes, content: bytes) -> None:
        """Tell the supervisor."""
        data = letter + len(content).to_bytes(4, "big") + content
        while data:
            data = data[os.write(PIPE, data) :]

    def answer(self, name: str) -> dict[str, Any]:
        """Execute the answer in a module of its own and return its namespace."""
        code, context = self.job["code"], self.job["context"]
        if code is None:
            self.say(b"S", b"")
            os._exit(1)
        module = Module(name)
        sys.modules[name] = module
        if context is not None:
            exec(context, module.__dict__)
        exec(code, module.__dict__)
        return module.__dict__

    def space(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Return the names that a test sees: the answer's, but no builtin that it replaced."""
        own = self.test["own"]
        names = {
            name: value for name, value in answer.items() if name not in PRISTINE or name in own
        }
        names["__builtins__"] = dict(PRISTINE)
        names["__name__"] = "__main__"
        return names

    def values(self) -> bytes:
        """Return the values of the expressions that were cut out of the test."""
        space = self.space(self.answer("answer"))
        exec(self.test["setup"], space)
        writer = Writer()
        found = [eval(hole, space) for hole in self.test["holes"]]
        writer.write(found)
        return bytes(writer.out)

    def inside(self) -> bool:
        """Run the whole test beside the answer; return whether it ended as it should."""
        modules = dict(sys.modules)
        # The test's imports are copies that the answer never sees.
        sys.modules.clear()
        sys.modules.update(BASE_MODULES)
        imported = {"__builtins__": dict(PRISTINE), "__name__": "__main__"}
        exec(self.test["imports"], imported)
        if "random" in sys.modules:
            sys.modules["random"].seed(0)
        tests_modules = dict(sys.modules)
        sys.modules.clear()
        sys.modules.update(modules)
        answer = self.answer("answer")
        own_module = sys.modules["answer"]
        sys.modules.clear()
        sys.modules.update(tests_modules)
        sys.modules["answer"] = own_module
        main = Module("__main__")
        space = main.__dict__
        for name, value in self.space(answer).items():
            is_call = callable(value) and not isinstance(value, (type, dict))
            space[name] = guarded(value) if is_call else value
        space.update(imported)
        sys.modules["__main__"] = main
        try:
            exec(self.test["body"], space)
        except SystemExit as error:
            return self.test["may_exit"] and not error.code
        return True

    def program(self) -> NoReturn:
        """Run the answer as a program, and end as the interpreter would."""
        code = 0
        sys.modules.pop("__main__", None)
        try:
            self.answer("__main__")
        except SystemExit as error:
            code = error.code if type(error.code) is int else 0 if error.code is None else 1
        except BaseException:  # noqa: BLE001 - a program that raises ends with 1
            code = 1
        try:
            if "threading" in sys.modules:
                sys.modules["threading"]._shutdown()
            if "atexit" in sys.modules:
                sys.modules["atexit"]._run_exitfuncs()
            sys.stdout.flush()
        except BaseException:  # noqa: BLE001 - so does one that cannot end in order
            code = code or 1
        os._exit(code & 0xFF)


def confine(job: Mapping[str, Any], kept: Sequence[int | None]) -> None:
    """Give a child its limits, and no descriptors but four.

    Args:
        job: What the host sent.
        kept: What becomes descriptor 0, 1, 2 and `PIPE`; None for nothing to read or write.
    """
    nothing = os.open("/dev/null", os.O_RDWR)
    for target, source in enumerate(kept):
        os.dup2(nothing if source is None else source, target)
    os.closerange(PIPE + 1, 256)
    for name, value in job["limits"].items():
        number = getattr(resource, "RLIMIT_" + name)
        hard = resource.getrlimit(number)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (value, value))
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass


def stand_between() -> None:
    """Fork; return in the child, and end the parent, the runner, as the child ended.

    An answer that kills its parent gets no credit: it kills the runner, who then cannot confirm.
    """
    child = os.fork()
    if child == 0:
        return
    try:
        os.closerange(0, 3)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        # As shells say it: a signal is an exit code above 128.
        os._exit(code if code >= 0 else 128 - code)
    finally:
        os._exit(1)
