"""The folder in which rlvr keeps what it fetched."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

CACHE_VARIABLE = "RLVR_CACHE"
"""Environment variable that names the cache folder in place of the platform's own."""


def cache_folder() -> Path:
    """Return the user's cache folder of rlvr; it need not exist yet."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    return platformdirs.user_cache_path("rlvr", appauthor=False)
