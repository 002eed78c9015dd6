"""rlvr: train language models with verifiable rewards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rlvr_core.api.verdicts import Json, Verdict

__all__ = ["__version__", "verify"]

__version__ = "0.1.0"


def verify(
    plugin: str,
    rows: Iterable[Mapping[str, Any]],
    *,
    config: Mapping[str, Json] | None = None,
    workers: int | None = None,
    timeout_s: float = 10.0,
    on_timeout: Literal["mask", "fail"] = "mask",
) -> list[Verdict]:
    """Judge completions with an installed verifier, in worker processes under a deadline.

    Args:
        plugin: Registered name of the verifier; ``-``, ``_`` and case do not matter.
        rows: Mappings ``{id?, prompt?, completion, ground_truth, config?, expected?}``. `config`
            overrides the verifier's settings for that row; other keys are ignored.
        config: The verifier's settings.
        workers: Worker processes of a verifier that computes. Default: cores - 1, at least 1.
        timeout_s: Deadline of a row in seconds, from the moment work on it starts.
        on_timeout: What a row is that passes its deadline twice: ``mask`` makes it an error,
            ``fail`` a failure with the lowest score.

    Returns:
        One verdict a row, in row order.

    Raises:
        DataError: Rows are not usable; all of them in one message (RLVR-D102).
        StackError: No such verifier is installed, or its settings are not allowed.
        PluginError: It cannot be imported or built, or its workers do not start.
    """
    from rlvr_core.verification.api import verify as judge_rows

    return judge_rows(
        plugin, rows, config=config, workers=workers, timeout_s=timeout_s, on_timeout=on_timeout
    )
