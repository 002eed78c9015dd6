"""Rows, references and a search for processes that were left behind."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import psutil

from rlvr_core.api.plugin import Family
from rlvr_core.config.models import PluginEntry
from rlvr_core.plugins.ref import PluginRef
from rlvr_core.verification.engine import VerifyEngine
from rlvr_core.verification.rows import RawRow


def reference(cls: str, name: str | None = None, **config: Any) -> PluginRef:
    """Return a reference to a fixture verifier, as if a distribution had registered it."""
    return PluginRef(
        family=Family.VERIFIERS,
        plugin=cls.lower(),
        name=name or cls.lower(),
        value=f"fixture_verifiers:{cls}",
        distribution="rlvr-plugin-fixtures",
        version="0.1.0",
        config=config,
        report_url="https://example.org/issues",
    )


def entry(ref: PluginRef, **core: Any) -> PluginEntry:
    """Return the stack entry of a reference; `core` are core's words in it."""
    return PluginEntry.model_validate({ref.name: {"plugin": ref.plugin, **core, **ref.config}})


def rows(completions: Sequence[str], prefix: str = "r", **fields: Any) -> list[RawRow]:
    """Return rows with these completions and the ids r0, r1, ..."""
    return [
        RawRow(id=f"{prefix}{index}", completion=text, ground_truth={"answer": "yes"}, **fields)
        for index, text in enumerate(completions)
    ]


def wait_until(condition: Callable[[], object], timeout_s: float = 10.0) -> bool:
    """Wait for a condition and say whether it came true."""
    until_s = time.monotonic() + timeout_s
    while time.monotonic() < until_s:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


def living_with(marker: str) -> list[psutil.Process]:
    """Return the processes, zombies excepted, that carry `marker` on their command line."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        if process.info["status"] != psutil.STATUS_ZOMBIE:
            found += [process] if marker in (process.info["cmdline"] or ()) else []
    return found


def living_workers(parent: int) -> list[psutil.Process]:
    """Return the workers and keepers that process `parent` started."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "status", "environ"])
        if process.info["status"] != psutil.STATUS_ZOMBIE
        and (
            "RLVR_VERIFICATION_TOKEN" in (process.info["environ"] or {})
            or any(part.endswith("processes.py") for part in process.info["cmdline"] or ())
        )
        and is_child_of(process, parent)
    ]


def is_child_of(process: psutil.Process, parent: int) -> bool:
    try:
        return parent in [each.pid for each in process.parents()]
    except psutil.NoSuchProcess:
        return False


def left_of(engine: VerifyEngine) -> list[psutil.Process]:
    """Return living processes that carry the token of a closed engine."""
    pump = engine._pump
    if pump is None:
        return []
    return [
        process
        for process in psutil.process_iter(["environ", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE
        and (process.info["environ"] or {})
        .get("RLVR_VERIFICATION_TOKEN", "")
        .startswith(pump._token)
    ]
