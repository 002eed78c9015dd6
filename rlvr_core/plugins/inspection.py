"""Import one plugin in a process of its own and report what it is, or why it cannot be used.

A plugin that hangs, ends its process or breaks the interpreter then does so there.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from rlvr_core.api.errors import PluginError
from rlvr_core.api.plugin import Family, Plugin, Verifier
from rlvr_core.api.verdicts import Json
from rlvr_core.plugins.checks import check_class
from rlvr_core.plugins.hooks import implementations
from rlvr_core.plugins.ref import PluginRef

TIMEOUT_S = 60.0
_MARK = "rlvr-inspection:"


def inspect_apart(ref: PluginRef, timeout_s: float = TIMEOUT_S) -> Mapping[str, Json]:
    """Return what importing `ref` shows.

    Args:
        ref: The plugin; its settings are not looked at.
        timeout_s: After which the process is killed.

    Returns:
        ``{"api", "hooks", "config", "ground_truth"}``, or ``{"error": {…}}`` with the fields of an
        `RlvrError`.
    """
    request = json.dumps(asdict(replace(ref, config={}, members=())))
    with subprocess.Popen(  # noqa: S603 - our own interpreter and our own module
        [sys.executable, "-m", "rlvr_core.plugins.inspection", request],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return _failed(ref, f"its import did not end within {timeout_s:g} s")
    for line in reversed(output.splitlines()):
        if line.startswith(_MARK):
            found: Mapping[str, Json] = json.loads(line.removeprefix(_MARK))
            return found
    last = errors.strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
    return _failed(ref, f"its import ended the process: {last[0]}")


def describe(cls: type[Plugin]) -> dict[str, Json]:
    """Return what a loaded class is; settings and ground truth as JSON Schema."""
    truth: Any = getattr(cls, "GroundTruth", None)
    return {
        "api": cls.api_version,
        "hooks": [
            found.hook + (" (wrapper)" if found.is_wrapper else "")
            for found in implementations(cls)
        ],
        "config": cls.Config.model_json_schema(),
        "ground_truth": truth.model_json_schema() if issubclass(cls, Verifier) and truth else None,
    }


def _main(request: str) -> None:
    fields = json.loads(request)
    ref = PluginRef(**{**fields, "family": Family(fields["family"]), "members": ()})
    try:
        result: Mapping[str, Json] = describe(check_class(ref, ref.load_class()))
    except PluginError as error:
        result = {"error": error.to_json()}
    sys.stdout.write(f"\n{_MARK}{json.dumps(result, default=str)}\n")


def _failed(ref: PluginRef, cause: str) -> Mapping[str, Json]:
    error = PluginError(
        "RLVR-P102",
        f"plugin {ref.plugin!r} could not be imported",
        origin=ref.blame,
        cause=cause,
        report=ref.report_url,
    )
    return {"error": error.to_json()}


if __name__ == "__main__":
    _main(sys.argv[1])
