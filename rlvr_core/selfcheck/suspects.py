"""Whom to suspect of a failed check: it is made again without each plugin that takes part."""

from __future__ import annotations

from collections.abc import Sequence

from rlvr_core.api.errors import RlvrError, listed
from rlvr_core.selfcheck.bench import Bench
from rlvr_core.selfcheck.checks import Check
from rlvr_core.selfcheck.result import Outcome


def suspects(check: Check, bench: Bench) -> tuple[tuple[str, ...], str]:
    """Return the plugins to suspect, and why.

    Args:
        check: One that failed.
        bench: Of the whole stack.
    """
    possible = bench.removable(check.hooks)
    if not possible:
        return (), "no plugin that the stack names takes part: please report this to rlvr"
    guilty = [name for name in possible if _holds_without(check, bench, [name])]
    if guilty:
        return tuple(guilty), f"the check holds without {listed(guilty)}"
    if len(possible) > 1 and _holds_without(check, bench, possible):
        return tuple(possible), f"the check holds without {listed(possible)}, but not without one"
    return (), (
        f"the check fails without {listed(possible)} too: it is a plugin that the stack cannot do "
        "without, or rlvr itself"
    )


def _holds_without(check: Check, bench: Bench, names: Sequence[str]) -> bool:
    """Tell whether the check holds on the stack without some plugins; no if nothing can be said."""
    try:
        with bench.without(names) as smaller:
            return check.run(smaller).outcome is Outcome.OK
    except RlvrError:
        return False
