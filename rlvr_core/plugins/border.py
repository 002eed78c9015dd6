"""Check what hooks return, where it enters core.

Each function returns clean data or raises `Unfit`. Numbers of any library are taken (whatever
``float`` takes); no tensor library is imported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from rlvr_core.api.errors import described
from rlvr_core.api.events import STEP_METRICS, Action, ActionKind
from rlvr_core.api.rollouts import Group, Message, Prompt, Rollout, Row
from rlvr_core.api.session import PolicyLoss, TokenBatch
from rlvr_core.api.verdicts import Verdict

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")
Advantage = float | list[float]

LARGEST = 3.4e38
"""About the largest number that float32 holds, as which rewards and advantages enter the loss."""

_SETTING = (ActionKind.SET_LEARNING_RATE, ActionKind.SET_KL)
"""Actions that need a value."""


class Unfit(Exception):
    """A hook returned something else than it may; the message says expected and got."""


def rows(returned: object, count: int) -> list[Row]:
    """Check the rows that were chosen for a step."""
    chosen = _items(returned, count, "rows")
    for place, row in enumerate(chosen):
        if not isinstance(row, Row):
            raise Unfit(f"expected a Row at {place}, got {described(row)}")
    return chosen


def prompt(returned: object) -> Prompt:
    """Check a wrapped prompt: text, or a tuple of messages."""
    if isinstance(returned, str):
        return returned
    messages = _listed(returned, "a string or a tuple of Message")
    if messages and all(isinstance(message, Message) for message in messages):
        return tuple(messages)
    raise Unfit(f"expected a string or a tuple of Message, got {described(returned)}")


def groups(returned: object, expected: Sequence[Row]) -> list[Group]:
    """Check groups: one for each expected row, in their order."""
    found = _items(returned, len(expected), "groups")
    for place, (group, row) in enumerate(zip(found, expected, strict=True)):
        if not isinstance(group, Group):
            raise Unfit(f"expected a Group at {place}, got {described(group)}")
        if group.row.id != row.id:
            raise Unfit(f"expected the group of row {row.id!r} at {place}, got {group.row.id!r}")
        if not group.rollouts:
            raise Unfit(f"expected rollouts in the group of row {row.id!r}, got none")
        if not all(rollout.length for rollout in group.rollouts):
            raise Unfit(f"expected sampled tokens in every rollout of row {row.id!r}, got none")
    return found


def rewards(returned: object, of: Sequence[Group]) -> list[list[float | None]]:
    """Check rewards, ragged [N][G]: finite, or None; a masked rollout stays masked."""
    return _ragged(returned, of, "rewards", _reward)


def verdicts(returned: object, count: int) -> list[Verdict]:
    """Check one verdict a row: judgements have a score, others none."""
    found = _items(returned, count, "verdicts")
    for place, verdict in enumerate(found):
        if not isinstance(verdict, Verdict):
            raise Unfit(f"expected a Verdict at {place}, got {described(verdict)}")
        if verdict.is_judgement and not _is_usable(number(verdict.score)):
            raise Unfit(f"expected a finite score at {place}, got {described(verdict.score)}")
        if verdict.score is not None and not verdict.is_judgement:
            raise Unfit(
                f"expected no score with status {verdict.status} at {place}, "
                f"got {described(verdict.score)}"
            )
    return found


def keeps(returned: object, count: int) -> list[bool]:
    """Check one truth value a group."""
    found = _items(returned, count, "truth values")
    for place, keep in enumerate(found):
        if keep is None or isinstance(keep, str):
            raise Unfit(f"expected True or False at {place}, got {described(keep)}")
    return [bool(keep) for keep in found]


def advantages(returned: object, of: Sequence[Group], *, by_token: bool) -> list[list[Advantage]]:
    """Check advantages, ragged [N][G]; those of masked rollouts become exactly 0."""
    return _ragged(returned, of, "advantages", partial(_advantage, by_token=by_token))


def weights(returned: Any, tokens: TokenBatch) -> Tensor:
    """Check token weights: shape [T], finite."""
    _tensor(returned, tokens, "token weights")
    if not bool(returned.isfinite().all()):
        raise Unfit("expected finite token weights, got NaN or infinity")
    weights_T: Tensor = returned.detach()
    return weights_T


def loss(returned: object, tokens: TokenBatch) -> PolicyLoss:
    """Check a loss: `PolicyLoss` with [T] tensors. Its finiteness is a monitor's business."""
    if not isinstance(returned, PolicyLoss):
        raise Unfit(f"expected a PolicyLoss, got {described(returned)}")
    _tensor(returned.loss_T, tokens, "loss_T")
    for name, metric_T in returned.metrics.items():
        _tensor(metric_T, tokens, f"metrics[{name!r}]")
        if name in STEP_METRICS:
            raise Unfit(f"expected a metric under a name of its own, got {name!r}, which is core's")
    if tokens.logp_T.requires_grad and not returned.loss_T.requires_grad:
        raise Unfit("expected a loss_T that is differentiable in logp_T, got one without gradient")
    return returned


def canaries(returned: object, verifiers: Container[str]) -> list[Row]:
    """Check rows for an evaluation: each goes to a verifier of the stack."""
    rows = sequence_of(returned, Row)
    for row in rows:
        if row.verifier not in verifiers:
            raise Unfit(
                f"row {row.id!r} is for {row.verifier!r}, which is no verifier of the stack"
            )
    return rows


def actions(returned: object) -> list[Action]:
    """Check what a monitor asks for: nothing, one action or several."""
    if returned is None:
        return []
    several = [returned] if isinstance(returned, Action) else returned
    found = _listed(several, "an Action, several, or None")
    for action in found:
        if not isinstance(action, Action):
            raise Unfit(f"expected an Action, got {described(action)}")
        if action.kind not in tuple(ActionKind):
            raise Unfit(f"expected an ActionKind, got {described(action.kind)}")
        if action.kind in _SETTING:
            value = number(action.value)
            if not (_is_usable(value) and value >= 0):
                raise Unfit(
                    f"expected a finite number of at least 0 for {action.kind}, "
                    f"got {described(action.value)}"
                )
    return found


def sequence_of(returned: object, kind: type) -> list[Any]:
    """Check a sequence of instances of `kind`, or None for an empty one."""
    if returned is None:
        return []
    found = _listed(returned, f"a sequence of {kind.__name__}, or None")
    for item in found:
        if not isinstance(item, kind):
            raise Unfit(f"expected a {kind.__name__}, got {described(item)}")
    return found


def number(value: Any) -> float:
    """Return `value` as a float, or NaN when it is no number."""
    if value is None or isinstance(value, str | bytes):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError, RuntimeError):
        return math.nan


def _ragged(
    returned: object, of: Sequence[Group], what: str, check: Callable[[Any, Rollout, str], T]
) -> list[list[T]]:
    """Check one value for each rollout of each group; `check` gets (value, rollout, where)."""
    lines = _items(returned, len(of), f"lists of {what}")
    return [
        [
            check(value, rollout, f"rollout {rollout.sample_index} of group {place}")
            for value, rollout in zip(
                _items(line, len(group.rollouts), f"{what} in group {place}"),
                group.rollouts,
                strict=True,
            )
        ]
        for place, (line, group) in enumerate(zip(lines, of, strict=True))
    ]


def _reward(value: Any, rollout: Rollout, where: str) -> float | None:
    if value is None:
        return None
    if rollout.reward is None:
        raise Unfit(f"expected None for {where}, which is masked, got {described(value)}")
    result = number(value)
    if not _is_usable(result):
        raise Unfit(f"expected a finite number or None for {where}, got {_unusable(value, result)}")
    return result


def _advantage(value: Any, rollout: Rollout, where: str, *, by_token: bool) -> Advantage:
    if rollout.reward is None:
        return 0.0
    if by_token and hasattr(value, "__len__") and getattr(value, "ndim", 1) == 1:
        by_tokens = [number(one) for one in _items(value, rollout.length, f"numbers for {where}")]
        if not all(map(_is_usable, by_tokens)):
            raise Unfit(f"expected finite numbers for {where}, got {described(value)}")
        return by_tokens
    result = number(value)
    if not _is_usable(result):
        raise Unfit(f"expected a finite number for {where}, got {_unusable(value, result)}")
    return result


def _is_usable(value: float) -> bool:
    """Tell whether a number is finite also as float32."""
    return abs(value) <= LARGEST


def _unusable(value: Any, as_number: float) -> str:
    reason = ", which float32 cannot hold" if math.isfinite(as_number) else ""
    return f"{described(value)}{reason}"


def _tensor(returned: Any, tokens: TokenBatch, what: str) -> None:
    expected = tuple(tokens.logp_T.shape)
    if not (hasattr(returned, "shape") and hasattr(returned, "isfinite")):
        raise Unfit(f"expected a tensor of shape {expected} for {what}, got {described(returned)}")
    if tuple(returned.shape) != expected:
        raise Unfit(f"expected shape {expected} for {what}, got {tuple(returned.shape)}")


def _items(returned: object, count: int, what: str) -> list[Any]:
    found = _listed(returned, f"{count} {what}")
    if len(found) != count:
        raise Unfit(f"expected {count} {what}, got {len(found)}")
    return found


def _listed(returned: object, what: str) -> list[Any]:
    if returned is None or isinstance(returned, str | bytes) or not isinstance(returned, Iterable):
        raise Unfit(f"expected {what}, got {described(returned)}")
    return list(returned)
