"""Experiments on advantage plugins: estimators, adjusters, token weights and losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from rlvr_core.api.rollouts import Group
from rlvr_core.plugins import border
from rlvr_core.plugins.hooks import answers
from rlvr_core.testing.apart.bench import Bench, BrokenError, NotApplicableError
from rlvr_core.testing.apart.calling import call
from rlvr_core.testing.apart.made_up import MadeUpSession, made_up_groups, snapshot

ESTIMATE = "rlvr_estimate_advantages"
ADJUST = "rlvr_adjust_advantages"
_SPREAD = ((1.0, 0.0, 0.5, 0.0), (0.0, 1.0, 1.0))
_TOLERANCE = 1e-6
_SHAPE_TOLERANCE = 0.02
"""A small constant under a division keeps larger rewards from giving the very same shape."""

Ragged = list[list[float]]


def finite(bench: Bench) -> str:
    """A10."""
    advantages = _estimated(bench, made_up_groups())
    return f"at most {_largest(advantages):.3g} from rewards between 0 and 1"


def masked_are_zero(bench: Bench) -> str:
    """A11."""
    groups = made_up_groups()
    returned = _returned(bench, groups)
    for group, line in zip(groups, returned, strict=True):
        for rollout, advantage in zip(group.rollouts, line, strict=True):
            values = advantage if isinstance(advantage, Sequence) else [advantage]
            if rollout.reward is None and any(float(value) != 0 for value in values):
                raise BrokenError(f"a masked rollout has advantage {advantage}")
    return "masked rollouts have advantage 0"


def equal_rewards(bench: Bench) -> str:
    """A12."""
    largest = _largest(_estimated(bench, made_up_groups([[0.3] * 4, [0.3] * 2])))
    if largest > _TOLERANCE:
        raise BrokenError(f"rewards that are all equal give an advantage of {largest:.3g}")
    return f"at most {largest:.1g} from equal rewards"


def permutation(bench: Bench) -> str:
    """A13."""
    plain = _estimated(bench, made_up_groups(_SPREAD))
    turned = _estimated(bench, made_up_groups([line[::-1] for line in _SPREAD]))
    apart = max(
        abs(one - other)
        for line, back in zip(plain, turned, strict=True)
        for one, other in zip(line, reversed(back), strict=True)
    )
    if apart > _TOLERANCE * max(1.0, _largest(plain)):
        raise BrokenError(f"rollouts in another order differ by {apart:.3g}")
    return f"rollouts in another order differ by {apart:.1g}"


def scale(bench: Bench) -> str:
    """A14."""
    once = _flat(_estimated(bench, made_up_groups(_SPREAD)))
    thrice = _flat(
        _estimated(bench, made_up_groups([[3 * (one or 0) for one in line] for line in _SPREAD]))
    )
    size, other_size = max(map(abs, once)), max(map(abs, thrice))
    if not size:
        raise NotApplicableError("rewards with a spread give no advantages")
    apart = max(
        abs(one / size - other / (other_size or 1.0))
        for one, other in zip(once, thrice, strict=True)
    )
    if apart > _SHAPE_TOLERANCE:
        raise BrokenError(f"three times the rewards give another shape: {apart:.3g} apart")
    return f"three times the rewards give {other_size / size:.2f} times the advantages"


def no_groups(bench: Bench) -> str:
    """A15."""
    _estimated(bench, [])
    return "no groups, no advantages"


def repeated(bench: Bench) -> str:
    """A16."""
    plugin, session = bench.new(), MadeUpSession()
    groups = made_up_groups()
    before = snapshot(groups)
    found = [_called(bench, plugin, groups, session) for _ in range(2)]
    if found[0] != found[1]:
        raise BrokenError("the same groups give other advantages the second time")
    if snapshot(groups) != before:
        raise BrokenError("it changes the groups that it is given")
    return "the same twice, and groups as they were"


def tokens(bench: Bench) -> str:
    """A17."""
    hooks = [hook for hook in ("rlvr_weigh_tokens", "rlvr_policy_loss") if answers(bench.cls, hook)]
    if not hooks:
        raise NotApplicableError("it weighs no tokens and has no loss")
    if find_spec("torch") is None:
        raise NotApplicableError("torch is not installed")
    from rlvr_core.testing.apart.token_batch import made_up_tokens

    for hook in hooks:
        batch = made_up_tokens(bench.new().needs, has_gradient=hook == "rlvr_policy_loss")
        returned = call(bench.new(), hook, tokens=batch, session=MadeUpSession())
        if hook == "rlvr_weigh_tokens":
            border.weights(returned, batch)
            continue
        loss = border.loss(returned, batch)
        if not bool(loss.loss_T.isfinite().all()):
            raise BrokenError("loss_T is not finite")
        loss.loss_T.sum().backward()
        gradient = batch.logp_T.grad
        if gradient is None or not bool(gradient.isfinite().all()):
            raise BrokenError("the gradient of loss_T is not finite")
    return f"{' and '.join(hooks)}: shape [T], finite"


def _returned(bench: Bench, groups: Sequence[Group]) -> Any:
    return _raw(bench, bench.new(), groups, MadeUpSession())


def _raw(bench: Bench, plugin: Any, groups: Sequence[Group], session: MadeUpSession) -> Any:
    if answers(bench.cls, ESTIMATE):
        return call(plugin, ESTIMATE, groups=groups, session=session)
    if answers(bench.cls, ADJUST):
        plain = [[rollout.reward or 0.0 for rollout in group.rollouts] for group in groups]
        return call(plugin, ADJUST, groups=groups, advantages=plain, session=session)
    raise NotApplicableError("it neither estimates nor adjusts advantages")


def _estimated(bench: Bench, groups: Sequence[Group]) -> Ragged:
    """Return advantages; of an adjuster those that it makes of the rewards."""
    return _called(bench, bench.new(), groups, MadeUpSession())


def _called(bench: Bench, plugin: Any, groups: Sequence[Group], session: MadeUpSession) -> Ragged:
    returned = _raw(bench, plugin, groups, session)
    checked = border.advantages(returned, groups, by_token=answers(bench.cls, ADJUST))
    return [
        [math.fsum(one) / len(one) if isinstance(one, list) else one for one in line]
        for line in checked
    ]


def _flat(advantages: Ragged) -> list[float]:
    return [one for line in advantages for one in line]


def _largest(advantages: Ragged) -> float:
    return max(map(abs, _flat(advantages)), default=0.0)
