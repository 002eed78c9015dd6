"""Applying what monitors ask for. Core alone does it, and logs every bit of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rlvr_core.api.events import Action, ActionKind
from rlvr_core.api.verdicts import Json
from rlvr_core.train.runtime import Runtime

ENDING = (ActionKind.PAUSE, ActionKind.STOP, ActionKind.ROLL_BACK)


def apply_actions(
    runtime: Runtime,
    step: int,
    actions: Sequence[tuple[str, Action]],
    log: Callable[[Mapping[str, Json]], None],
) -> Action | None:
    """Apply actions on every process and return the first that ends the run.

    Args:
        runtime: Its controls are changed.
        step: At which the actions were asked for.
        actions: (monitor, action) pairs; the main process's count, others give none.
        log: Takes one event for each, on the main process.
    """
    ending = None
    for monitor, action in runtime.gather(list(actions)):
        before: float | None = None
        applied = True
        if action.kind is ActionKind.SET_LEARNING_RATE and action.value is not None:
            before, runtime.controls.learning_rate = runtime.controls.learning_rate, action.value
        elif action.kind is ActionKind.SET_KL and action.value is not None:
            # Without a reference there is no divergence to weigh.
            applied = runtime.reference is not None
            if applied:
                before, runtime.controls.kl_coefficient = (
                    runtime.controls.kl_coefficient,
                    action.value,
                )
        elif action.kind in ENDING:
            ending = ending or action
        else:
            applied = action.kind is ActionKind.WARN
        log(
            {
                "step": step,
                "kind": action.kind.value,
                "monitor": monitor,
                "reason": action.reason,
                "value": action.value,
                "before": before,
                "applied": applied,
            }
        )
    return ending
