"""Checks of advantages: bounded, zero without signal, the same on one process and on two."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field

from rlvr_core.api.errors import PluginError
from rlvr_core.api.rollouts import Group
from rlvr_core.selfcheck.bench import Bench, Opened
from rlvr_core.selfcheck.made_up import Key, key_of
from rlvr_core.selfcheck.result import Found, failed, not_applicable, ok
from rlvr_core.train.session import StepSession

BOUND = 100.0
"""Largest advantage that rewards between 0 and 1 may give."""
ZERO = 1e-6
ALMOST_ALL_EQUAL = (0.0, *[0.95] * 7)
EQUAL_BUT_FOR_ROUNDING = (0.1 + 0.2, *[0.3] * 7)
TOLERANCE = 1e-6
WAIT_S = 5.0

Advantages = dict[Key, Sequence[float]]


def estimator(bench: Bench) -> Found:
    """Give the estimator the rewards that have broken others."""
    spread = _estimated(bench, [ALMOST_ALL_EQUAL, (0.0, 1.0)])
    largest = _largest(spread)
    if largest > BOUND:
        said = f"rewards 0 and seven times 0.95 give an advantage of {largest:.3g}"
        return failed(said, largest, BOUND)
    if not largest:
        return not_applicable("rewards 0 and seven times 0.95 give no advantages")
    alike = _largest(_estimated(bench, [EQUAL_BUT_FOR_ROUNDING, [0.3, 0.3]]))
    if alike > ZERO:
        said = "all rewards of the batch are equal, and an advantage is not 0"
        return failed(f"{said}: {alike:.3g}", alike, ZERO)
    # Core refuses what is not finite, so that these need no look at the numbers.
    for rewards in ([(1.0,), (0.0, 1.0)], [(None, 1.0), (None, None)], []):
        _estimated(bench, rewards, adjusts=True)
    return ok(
        f"rewards 0 and seven times 0.95 give at most {largest:.3g}, equal ones {alike:.1g}; "
        "groups of one, masked groups and no groups give finite numbers",
        alike,
        ZERO,
    )


def processes(bench: Bench) -> Found:
    """Deal groups to two processes, here threads, and compare advantages with those of one."""
    with bench.open() as opened:
        whole = _stages_8_and_9(opened, bench.material.groups())
    if not _largest(whole):
        return not_applicable("made-up rewards gave no advantages")
    exchange = Exchange()
    with ExitStack() as stack:
        ranks = [stack.enter_context(bench.open()) for _ in range(2)]
        shares = []
        for rank, opened in enumerate(ranks):
            opened.session = _Rank(
                runtime=opened.runtime,
                step=1,
                weights_version=0,
                prompts_drawn=0,
                exchange=exchange,
                rank=rank,
            )
            groups = bench.material.groups()
            shares.append(groups[rank * len(groups) // 2 : (rank + 1) * len(groups) // 2])
        with ThreadPoolExecutor(2) as pool:
            futures = [
                pool.submit(_stages_8_and_9, *of_rank)
                for of_rank in zip(ranks, shares, strict=True)
            ]
        try:
            parts = [future.result() for future in futures]
        except PluginError as error:
            if not isinstance(error.__cause__, threading.BrokenBarrierError):
                raise
            return failed("session.sum_over_ranks is not called equally often on two processes")
    dealt = parts[0] | parts[1]
    apart = max(
        abs(one - other)
        for key, of_one in whole.items()
        for one, other in zip(of_one, dealt[key], strict=True)
    ) / _largest(whole)
    what = "advantages with the groups dealt to two processes and in one"
    if apart > TOLERANCE:
        return failed(f"{what} differ", apart, TOLERANCE)
    return ok(what, apart, TOLERANCE)


class Exchange:
    """Adds up what two threads give, as `sum_over_ranks` does over processes."""

    def __init__(self) -> None:
        self._barrier = threading.Barrier(2)
        self._given: dict[int, Sequence[float]] = {}

    def add(self, rank: int, values: Sequence[float]) -> list[float]:
        """Return the sums, once both have given their values.

        Raises:
            threading.BrokenBarrierError: The other has not come in `WAIT_S` seconds.
        """
        self._given[rank] = values
        self._barrier.wait(WAIT_S)
        sums = [float(sum(column)) for column in zip(*self._given.values(), strict=True)]
        self._barrier.wait(WAIT_S)
        return sums


@dataclass(slots=True, eq=False, kw_only=True)
class _Rank(StepSession):
    """The session of one of two processes."""

    exchange: Exchange = field(default_factory=Exchange)
    rank: int = 0

    def sum_over_ranks(self, values: Sequence[float]) -> list[float]:
        return self.exchange.add(self.rank, list(values))


def _estimated(
    bench: Bench, rewards: Sequence[Sequence[float | None]], *, adjusts: bool = False
) -> Advantages:
    """Return the advantages of groups with the given rewards."""
    with bench.open() as opened:
        groups = bench.material.rewarded(rewards)
        if adjusts:
            return _stages_8_and_9(opened, groups)
        estimates = opened.runtime.dispatcher.estimate_advantages(groups, opened.session)
        return _by_key(groups, estimates)


def _stages_8_and_9(opened: Opened, groups: list[Group]) -> Advantages:
    hooks = opened.runtime.dispatcher
    advantages = hooks.estimate_advantages(groups, opened.session)
    return _by_key(groups, hooks.adjust_advantages(groups, advantages, opened.session))


def _by_key(
    groups: Sequence[Group], advantages: Sequence[Sequence[float | list[float]]]
) -> Advantages:
    return {
        key_of(rollout): advantage if isinstance(advantage, list) else [advantage]
        for group, line in zip(groups, advantages, strict=True)
        for rollout, advantage in zip(group.rollouts, line, strict=True)
    }


def _largest(advantages: Advantages) -> float:
    return max((abs(value) for values in advantages.values() for value in values), default=0.0)
