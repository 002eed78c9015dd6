"""What a worker inherits: a short list of environment variables, and no secrets."""

from __future__ import annotations

import os
from collections.abc import Iterable

from rlvr_core.verification.processes import TOKEN_NAME

ALLOWED = frozenset(
    {
        "PATH",
        "HOME",
        "LANG",
        "LANGUAGE",
        "TMPDIR",
        "LD_LIBRARY_PATH",
        "DYLD_LIBRARY_PATH",
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONPYCACHEPREFIX",
    }
)
"""Names that every worker gets: what it takes to start Python and find libraries."""

ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
"""Names that tell libraries how many threads to start: rows are spread over processes already."""


def worker_environment(declared: Iterable[str], token: str) -> dict[str, str]:
    """Return the environment of a worker.

    Args:
        declared: Names that its verifiers declare in `Verifier.environment`.
        token: Marks the worker and all processes that inherit from it.
    """
    wanted = ALLOWED | set(declared)
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in wanted or name.startswith("LC_")
    }
    fixed = dict.fromkeys(ONE_THREAD, "1")
    # One hash seed for all workers: which of them judges a row must not show in its verdict.
    return {
        **fixed,
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONHASHSEED": "0",
        **kept,
        TOKEN_NAME: token,
    }
