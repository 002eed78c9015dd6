"""Runs inside the sandbox, as process 1 of its own process namespace.

It imports nothing of this package: its text is handed to the interpreter of the sandbox. The
supervisor here reads one test at a time from the host and forks a child for each; only the child
ever runs code of the answer. A child is given no descriptor but a pipe of its own, and the nonce that
marks a record is read after the child was forked, so no child can know it. Nothing that a child
says decides alone: the values that it sends are compared on the host.

Process 1 cannot be killed or stopped from inside its namespace, and it cannot be traced, because
it is not dumpable.

Frames, both ways, are four bytes of length (big-endian) and the content. The host executes this text
with a copy of the builtins, so that an answer that replaces builtins does not reach the code here.
"""

import builtins
import marshal
import os
import select
import sys
import time

import _signal

START_BYTE = b"\x01"
NONCE_BYTES = 16
POLL_S = 0.02
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
MAX_DEPTH = 100
MAX_RESULT_BYTES = 1 << 20
MAX_OUTPUT_BYTES = 1 << 20
HEADER_BYTES = 5
MAX_SAID_BYTES = MAX_RESULT_BYTES + 2 * HEADER_BYTES

# The interpreter starts without `site`, which brings these two.
builtins.exit = builtins.quit = sys.exit
PRISTINE = dict(vars(builtins))
BASE_MODULES = dict(sys.modules)
Module = type(sys)


class TooLarge(BaseException):
    """A value that takes more room than any honest one. No `Exception`: answers catch those."""


# --- values, as bytes that say their exact type ---------------------------------------------------


def _number(letter, text):
    return b"%s%s;" % (letter, text.encode("ascii"))


def _sized(letter, data):
    return b"%s%d;%s" % (letter, len(data), data)


def _text(value):
    return _sized(b"s", str.encode(value, "utf-8", "surrogatepass"))


def _integer(value):
    return _number(b"i", "%x" % int.__add__(value, 0))


def _float(value):
    return _number(b"f", float.hex(value))


def _complex(value):
    return b"c" + _float(complex.__add__(value, 0).real) + _float(complex.__add__(value, 0).imag)


SCALARS = {
    type(None): lambda value: b"N",
    bool: lambda value: b"T" if value is True else b"F",
    int: _integer,
    float: _float,
    complex: _complex,
    str: _text,
    bytes: lambda value: _sized(b"b", bytes.__add__(value, b"")),
    bytearray: lambda value: _sized(b"b", bytes(memoryview(value))),
}
CONTAINERS = {
    list: (b"l", list.__len__, list.__iter__),
    tuple: (b"t", tuple.__len__, tuple.__iter__),
    set: (b"e", set.__len__, set.__iter__),
    frozenset: (b"e", frozenset.__len__, frozenset.__iter__),
}
ONCE = (type(_ for _ in ()), map, filter, zip, enumerate, reversed, type(iter([])),
        type(reversed([])), type(iter({})), type(iter(set())), type(iter(range(0))))
SIZED = (range, type({}.keys()), type({}.values()), type({}.items()))


class Writer:
    """Writes a value of any kind; what is no plain value is only named as opaque."""

    def __init__(self):
        self.out = bytearray()

    def write(self, value, depth=0):
        if depth > MAX_DEPTH or len(self.out) > MAX_RESULT_BYTES:
            raise TooLarge
        kind = type(value)
        if kind in ONCE or kind in SIZED or _is_from(kind, "collections", "deque"):
            self._items(b"g" if kind in ONCE else b"v", iter(value), depth)
            return
        # The mro of the real type: an answer can lie with `__class__`, and with every method.
        for base in type.mro(kind):
            if base in SCALARS:
                self.out += SCALARS[base](value)
                if len(self.out) > MAX_RESULT_BYTES:
                    raise TooLarge
                return
            if base in CONTAINERS:
                letter, _, items = CONTAINERS[base]
                self._items(letter, items(value), depth)
                return
            if base is dict:
                pairs = [part for pair in dict.items(value) for part in pair]
                self._items(b"d", iter(pairs), depth)
                return
            if _is_from(base, "fractions", "Fraction"):
                top, bottom = value.numerator, value.denominator
                if type(top) is int and type(bottom) is int:
                    self.out += b"q" + _integer(top) + _integer(bottom)
                    return
            if _is_from(base, "decimal", "Decimal"):
                self.out += _sized(b"m", base.__str__(value).encode("ascii"))
                return
        self.out += b"o"

    def _items(self, letter, items, depth):
        """Write the items, then their end: how many there are is known only afterwards."""
        self.out += letter
        for item in items:
            self.write(item, depth + 1)
        self.out += b"]"


def _is_from(kind, module, name):
    return kind.__module__ == module and kind.__name__ == name


# --- results of calls as plain values, for tests that run beside the answer -----------------------

OPERATORS = frozenset(
    "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __bool__ __len__ __contains__ __getitem__ __iter__ "
    "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__ "
    "__mod__ __pow__ __neg__ __abs__ __round__ __float__ __int__ __index__ __getattr__ "
    "__getattribute__ __instancecheck__".split()
)


def plain(value, depth=0):
    """Return the value as exact builtin types; refuse objects that answer for themselves."""
    if depth > MAX_DEPTH:
        raise TooLarge
    kind = type(value)
    if kind in SCALARS:
        return value
    if kind in ONCE:
        return (plain(item, depth + 1) for item in value)
    if kind in SIZED:
        return value
    for base in type.mro(kind):
        if base in CONTAINERS:
            return base([plain(item, depth + 1) for item in CONTAINERS[base][2](value)])
        if base is dict:
            pairs = list(dict.items(value))
            return {plain(key, depth + 1): plain(item, depth + 1) for key, item in pairs}
        if base is str:
            return str.__str__(value) if kind is str else str.__add__("", value)
        if base in (int, float, complex):
            return base.__add__(value, base(0))
        if base in (bytes, bytearray):
            return base(memoryview(value))
        if base.__module__ in ("fractions", "decimal") and "__eq__" in vars(base):
            return value
        if base is not object and not OPERATORS.isdisjoint(vars(base)):
            raise TypeError("the test is given an object that answers for itself")
    return value


def guarded(function):
    def call(*arguments, **named):
        try:
            return plain(function(*arguments, **named))
        except Exception:
            raise
        except BaseException as error:
            # Only the test itself may end the test.
            raise RuntimeError(type(error).__name__) from None

    return call


# --- the child ------------------------------------------------------------------------------------


def compiled(source, name, mode="exec"):
    return compile(source, name, mode, dont_inherit=True)


class Child:
    """What runs in the forked process: the answer, then one test."""

    def __init__(self, job, test, pipe):
        self.job = job
        self.test = test
        self.pipe = pipe

    def run(self):
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
        except BaseException as error:
            name = type.__getattribute__(type(error), "__name__")
            self.say(b"X", name.encode("utf-8", "replace")[:100])

    def say(self, letter, content):
        data = letter + len(content).to_bytes(4, "big") + content
        while data:
            data = data[os.write(self.pipe, data) :]

    def answer(self, name):
        """Execute the answer in a module of its own and return its namespace."""
        source, context = self.job["source"], self.job["context"]
        try:
            code = compiled(source, "<answer>")
        except (SyntaxError, ValueError, OverflowError, MemoryError, RecursionError):
            code = self.continued(context, source)
            context = ""
        module = Module(name)
        sys.modules[name] = module
        if context:
            exec(compiled(context, "<context>"), module.__dict__)
        exec(code, module.__dict__)
        return module.__dict__

    def continued(self, context, source):
        """Compile an answer that goes on where the context ends."""
        try:
            if context:
                return compiled(context.rstrip("\n") + "\n" + source, "<answer>")
        except (SyntaxError, ValueError, OverflowError, MemoryError, RecursionError):
            pass
        self.say(b"S", b"")
        os._exit(1)

    def space(self, answer):
        """Return the names that a test sees: the answer's, but no builtin that it replaced."""
        own = self.test["own"]
        names = {
            name: value
            for name, value in answer.items()
            if name not in PRISTINE or name in own
        }
        names["__builtins__"] = dict(PRISTINE)
        names["__name__"] = "__main__"
        return names

    def values(self):
        space = self.space(self.answer("answer"))
        exec(compiled(self.test["setup"], "<setup>"), space)
        writer = Writer()
        found = [eval(compiled(hole, "<test>", "eval"), space) for hole in self.test["holes"]]
        writer.write(found)
        return bytes(writer.out)

    def inside(self):
        modules = dict(sys.modules)
        # The test's imports are copies that the answer never sees.
        sys.modules.clear()
        sys.modules.update(BASE_MODULES)
        imported = {"__builtins__": dict(PRISTINE), "__name__": "__main__"}
        exec(compiled(self.test["imports"], "<imports>"), imported)
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
            exec(compiled(self.test["body"], "<test>"), space)
        except SystemExit as error:
            return self.test["may_exit"] and not error.code
        return True

    def program(self):
        code = 0
        sys.modules.pop("__main__", None)
        try:
            self.answer("__main__")
        except SystemExit as error:
            code = error.code if type(error.code) is int else 0 if error.code is None else 1
        except BaseException:
            code = 1
        try:
            if "threading" in sys.modules:
                sys.modules["threading"]._shutdown()
            if "atexit" in sys.modules:
                sys.modules["atexit"]._run_exitfuncs()
            sys.stdout.flush()
        except BaseException:
            code = code or 1
        os._exit(code & 0xFF)


def confine(job, kept):
    """Give a child its limits, and no descriptor but 0 to 2 and its own pipe, which becomes 3."""
    import resource

    limits = job["limits"]
    nothing = os.open("/dev/null", os.O_RDWR)
    for target, source in enumerate((*kept, nothing)):
        os.dup2(nothing if source is None else source, target)
    # 0, 1, 2 are set; the pipe is the fourth of `kept`.
    os.closerange(4, 256)
    for name, value in limits.items():
        number = getattr(resource, "RLIMIT_" + name)
        hard = resource.getrlimit(number)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (value, value))
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass


def stand_between():
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


# --- the supervisor -------------------------------------------------------------------------------


class Supervisor:
    """Reads tests from the host, runs each in a child, and says what came of it."""

    def __init__(self, prctl):
        self.prctl = prctl
        self.reads = os.dup(0)
        self.writes = os.dup(1)
        self.is_first_process = os.getpid() == 1
        nothing = os.open("/dev/null", os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        os.close(nothing)

    def serve(self):
        self.send(START_BYTE)
        job = marshal.loads(self.frame())
        for name in job["preload"]:
            try:
                __import__(name)
            except Exception:
                continue
        if "random" in sys.modules:
            sys.modules["random"].seed(0)
        while True:
            test = marshal.loads(self.frame())
            nonce, letter, content = self.run(job, test)
            self.send(nonce + letter + content)

    def exactly(self, count):
        data = b""
        while len(data) < count:
            part = os.read(self.reads, count - len(data))
            if not part:
                os._exit(0)  # the host is gone
            data += part
        return data

    def frame(self):
        return self.exactly(int.from_bytes(self.exactly(4), "big"))

    def send(self, content):
        data = len(content).to_bytes(4, "big") + content
        while data:
            data = data[os.write(self.writes, data) :]

    def run(self, job, test):
        said, says = os.pipe()
        printed = prints = stdin = None
        if test["kind"] == "program":
            printed, prints = os.pipe()
            stdin = os.memfd_create("stdin")
            rest = test["stdin"]
            while rest:
                rest = rest[os.write(stdin, rest) :]
            os.lseek(stdin, 0, 0)
        runner = os.fork()
        if runner == 0:
            try:
                if not self.is_first_process:
                    os.setsid()
                confine(job, (stdin, prints, None, says))
                self.prctl(PR_SET_DUMPABLE, 1)
                stand_between()
                Child(job, test, 3).run()
            finally:
                os._exit(0)
        for descriptor in (says, prints, stdin):
            if descriptor is not None:
                os.close(descriptor)
        # Only now: the child holds a copy of all that was known before.
        nonce = self.exactly(NONCE_BYTES)
        try:
            return (nonce, *self.watch(runner, said, printed, test["limit_s"]))
        finally:
            self.sweep(runner)
            os.close(said)
            if printed is not None:
                os.close(printed)

    def watch(self, runner, said, printed, limit_s):
        """Return what the child said, if its runner lived to see its end, or how they ended."""
        until_s = time.monotonic() + limit_s
        received = {said: bytearray(), printed: bytearray()}
        poll = select.poll()
        for descriptor in (said, printed, self.reads):
            if descriptor is not None:
                poll.register(descriptor, select.POLLIN)
        status = None
        has_closed = False
        while status is None:
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return b"T", b""
            is_ending = is_whole(received[said]) or has_closed
            for descriptor, _ in poll.poll(1 if is_ending else 1000 * min(left_s, POLL_S) + 1):
                if descriptor == self.reads:
                    os._exit(0)  # nothing is sent while a test runs: the host is gone
                if not take(descriptor, received[descriptor]):
                    poll.unregister(descriptor)
                    has_closed = True
            if len(received[printed]) > MAX_OUTPUT_BYTES or len(received[said]) > MAX_SAID_BYTES:
                return b"L", b""
            ended, code = os.waitpid(runner, os.WNOHANG)
            status = code if ended else None
        # What a process that is left over still writes does not count.
        for descriptor in (said, printed):
            if descriptor is not None:
                os.set_blocking(descriptor, False)
                while len(received[descriptor]) <= MAX_OUTPUT_BYTES:
                    if not take(descriptor, received[descriptor]):
                        break
        code = os.waitstatus_to_exitcode(status)
        if code < 0:
            # Somebody inside killed the runner: whatever was said, nobody vouches for it.
            return b"K", b"%d" % -code
        if is_whole(received[said]):
            return parts(received[said])
        if len(received[printed]) > MAX_OUTPUT_BYTES:
            return b"L", b""
        if printed is not None and code == 0:
            return b"O", bytes(received[printed])
        return b"E", b"%d" % code

    def sweep(self, runner):
        """End and reap whatever a test left."""
        if self.is_first_process:
            # Everything in this namespace but this process.
            kill(-1)
        else:
            self.sweep_own(runner)
        while True:
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return

    def sweep_own(self, runner):
        """Without a namespace: the runner's group, and what was orphaned to this process."""
        kill(-runner)
        own = "/proc/self/task/%d/children" % os.getpid()
        for _ in range(200):
            with open(own) as file:
                left = [int(pid) for pid in file.read().split()]
            for pid in left:
                kill(pid)
            if not left:
                return
            for pid in left:
                try:
                    os.waitpid(pid, 0)
                except ChildProcessError:
                    pass


def kill(pid):
    try:
        os.kill(pid, _signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def take(descriptor, received):
    """Read once; return whether there may be more."""
    try:
        data = os.read(descriptor, 65536)
    except BlockingIOError:
        return False
    received += data
    return bool(data)


def is_whole(received):
    if len(received) < HEADER_BYTES:
        return False
    return len(received) >= HEADER_BYTES + int.from_bytes(received[1:HEADER_BYTES], "big")


def parts(received):
    """Return letter and content of what a child said; it may have said anything."""
    size = int.from_bytes(received[1:HEADER_BYTES], "big")
    letter = bytes(received[:1])
    # Letters that only the supervisor may use say nothing from a child.
    if letter not in (b"V", b"P", b"A", b"L", b"X", b"S"):
        letter = b"X"
    return letter, bytes(received[HEADER_BYTES : HEADER_BYTES + size])


def main(uid, dies_with_parent):
    """Take on `uid` where it is not 0, then serve."""
    import ctypes

    prctl = ctypes.CDLL(None).prctl
    if uid:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    if dies_with_parent:
        prctl(PR_SET_PDEATHSIG, _signal.SIGKILL, 0, 0, 0)
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    if os.getpid() != 1:
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    Supervisor(lambda option, value: prctl(option, value, 0, 0, 0)).serve()


if __name__ == "__main__":
    main(int(sys.argv[2]), sys.argv[3] == "1")
