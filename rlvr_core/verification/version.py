"""The version stamped on verdicts: it changes when code, settings or the plugin API change."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

from rlvr_core.api.plugin import API_VERSION
from rlvr_core.plugins.ref import PluginRef


def stamped_version(ref: PluginRef) -> str:
    """Return ``<distribution version>+<12 hex digits>``.

    The digits are of a SHA-256 over the plugin's source files, its settings and the API version.
    The class of `ref` must have been imported.
    """
    digest = hashlib.sha256()
    for name, content in _sources(ref.value.partition(":")[0].strip()):
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    digest.update(json.dumps(dict(ref.config), sort_keys=True, default=str).encode())
    digest.update(API_VERSION.encode())
    return f"{ref.version}+{digest.hexdigest()[:12]}"


def _sources(module: str) -> list[tuple[str, bytes]]:
    """Return (relative name, content) of the module's file, or of its whole package.

    Of core's own package only the module itself counts: anything else there changes with every
    release.
    """
    top = module.partition(".")[0]
    package = sys.modules.get(top)
    own = [Path(file)] if (file := getattr(sys.modules[module], "__file__", None)) else []
    folders = [Path(folder) for folder in getattr(package, "__path__", ())]
    if top == __package__.partition(".")[0] or not folders:
        return [(path.name, path.read_bytes()) for path in own if path.is_file()]
    return [
        (path.relative_to(folder).as_posix(), path.read_bytes())
        for folder in folders
        for path in sorted(folder.rglob("*.py"))
    ]
