"""Experiments on importing a plugin: does it load, and what else does that do?"""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from typing import Any

from rlvr_core.api.errors import PluginError, RlvrError, listed
from rlvr_core.api.plugin import Family, Plugin
from rlvr_core.plugins.checks import check_class
from rlvr_core.plugins.ref import PluginRef
from rlvr_core.testing.apart import watching
from rlvr_core.testing.apart.bench import BrokenError

LIMIT_S = 2.0
"""Processor time that an import may take."""
_NETWORK = frozenset({"socket.connect", "socket.getaddrinfo", "socket.bind", "socket.sendto"})
_WRONG_VERSION = "RLVR-P103"
_WRONG_SETTINGS = "RLVR-S102"
_SETTINGS_HINT = "; `config` in [tool.rlvr.check] of pyproject.toml says what it is checked with"


@dataclass(slots=True)
class Import:
    """What happened while a plugin was imported."""

    cls: type[Plugin] | None = None
    error: RlvrError | None = None
    side_effects: list[str] = field(default_factory=list)
    cpu_s: float = 0.0

    def loads(self) -> str:
        """R01: the entry point resolves to a class that fits and can be built."""
        if self.error is not None and self.error.code != _WRONG_VERSION:
            cause = f": {self.error.cause}" if self.error.cause else ""
            hint = _SETTINGS_HINT if self.error.code == _WRONG_SETTINGS else ""
            raise BrokenError(f"{self.error.message}{cause}{hint}")
        return "a plugin class, which was built with its settings"

    def version_fits(self) -> str:
        """R02: this core speaks its API version."""
        if self.error is not None and self.error.code == _WRONG_VERSION:
            raise BrokenError(self.error.message)
        return f"API {getattr(self.cls, 'api_version', '?')}"

    def is_harmless(self) -> str:
        """R04: importing is fast and changes nothing."""
        if self.side_effects:
            raise BrokenError(f"importing it {'; '.join(self.side_effects)}")
        return f"{self.cpu_s:.2f} s of processor time"


def import_watched(ref: PluginRef, *, may_import_torch: bool) -> Import:
    """Import, check and build a plugin, and note what else that does."""
    found = Import()
    before, threads = watching.global_state(), threading.active_count()
    had_torch = "torch" in sys.modules
    with _listening() as heard, _caught_output() as printed:
        started_s = time.process_time()
        try:
            loaded = ref.load_class()
        except RlvrError as error:
            found.error = error
        found.cpu_s = time.process_time() - started_s
    if found.error is not None:
        return found
    _note(found, watching.changes(before, watching.global_state()), threads, heard, printed())
    if not (may_import_torch or had_torch) and "torch" in sys.modules:
        found.side_effects.append("imports torch, which its distribution does not declare")
    try:
        found.cls = check_class(ref, loaded)
        ref.build()
    except RlvrError as error:
        found.error = error
    except Exception as exc:  # noqa: BLE001 - whatever its constructor raises is its answer
        found.error = PluginError("RLVR-P105", "it could not be built", cause=repr(exc))
    return found


def must_not_import_torch(family: Family, requires: list[str]) -> bool:
    """Tell whether a plugin has no business to import torch: a verifier that does not declare it.

    The other families act on training, where torch is.
    """
    return family is Family.VERIFIERS and not any(name.startswith("torch") for name in requires)


def _note(found: Import, changed: list[str], threads: int, heard: list[str], printed: str) -> None:
    if found.cpu_s > LIMIT_S:
        found.side_effects.append(f"takes {found.cpu_s:.1f} s of processor time")
    if changed:
        found.side_effects.append(f"changes {listed(changed)}")
    if threading.active_count() > threads:
        found.side_effects.append("starts a thread")
    if heard:
        found.side_effects.append(f"uses the network ({listed(set(heard))})")
    if printed:
        found.side_effects.append(f"prints {printed[:60]!r}")


@contextmanager
def _listening() -> Iterator[list[str]]:
    """Note every use of the network. An audit hook cannot be removed, only told to be quiet."""
    heard: list[str] = []
    is_on = True

    def hook(event: str, _: Any) -> None:
        if is_on and event in _NETWORK:
            heard.append(event)

    sys.addaudithook(hook)
    try:
        yield heard
    finally:
        is_on = False


@contextmanager
def _caught_output() -> Iterator[Any]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        yield lambda: out.getvalue() + err.getvalue()
