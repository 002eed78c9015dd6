"""The check that token plugins read what they declare, and nothing else."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from rlvr_core.api.errors import PluginError, listed
from rlvr_core.api.rollouts import Group, Rollout
from rlvr_core.api.session import Need, TokenBatch
from rlvr_core.plugins.dispatch import Dispatcher
from rlvr_core.plugins.resolve import LoadedPlugin
from rlvr_core.selfcheck.bench import Bench, Opened
from rlvr_core.selfcheck.result import Found, failed, not_applicable, ok
from rlvr_core.train.step import estimate, trainable
from rlvr_core.train.update import needs_forward, token_batch

FIELD_OF_NEED = {
    Need.ENTROPY: "entropy_T",
    Need.REFERENCE_LOGP: "reference_logp_T",
    Need.SAMPLER_LOGP: "sampler_logp_T",
}
TOKEN_HOOKS = ("rlvr_weigh_tokens", "rlvr_policy_loss")


class NotingBatch(TokenBatch):
    """A token batch that remembers which of its fields were read."""

    read: set[str]

    def __getattribute__(self, name: str) -> Any:
        if name in FIELD_OF_NEED.values():
            self.read.add(name)
        return super().__getattribute__(name)


def needs(bench: Bench) -> Found:
    """Call each token plugin alone, with the quantities that it declares."""
    called = []
    with bench.open() as opened:
        rollouts = _learnt_from(opened, bench.material.groups())
        if not rollouts:
            return not_applicable("made-up rewards gave no advantages")
        for loaded in opened.runtime.dispatcher.plugins:
            if any(loaded.answers(hook) for hook in TOKEN_HOOKS):
                called.append(loaded.name)
                if problem := _called_alone(opened, loaded, rollouts):
                    return problem
    return ok(f"{' and '.join(called)}: called alone, with what it declares")


def _called_alone(opened: Opened, loaded: LoadedPlugin, rollouts: list[Rollout]) -> Found | None:
    alone = Dispatcher([loaded])
    tokens = _tokens(opened, loaded, rollouts)
    try:
        alone.weigh_tokens(tokens, opened.session)
        if alone.has("rlvr_policy_loss"):
            alone.policy_loss(tokens, opened.session)
    except PluginError as error:
        said = f"{loaded.name}, given no more than it declares in needs: {error.cause}"
        return failed(said, culprit=loaded.name)
    unread = [
        need.value
        for need, name in FIELD_OF_NEED.items()
        if need in loaded.plugin.needs and name not in tokens.read
    ]
    if unread:
        said = f"{loaded.name} declares {listed(unread)} in needs and never reads it"
        return failed(said, culprit=loaded.name)
    return None


def _learnt_from(opened: Opened, groups: list[Group]) -> list[Rollout]:
    """Return the rollouts that have advantages, as stages 8 and 9 give them."""
    estimate(opened.runtime, opened.session, groups)
    return [one for one in trainable(groups) if needs_forward(opened.runtime, one)]


def _tokens(opened: Opened, loaded: LoadedPlugin, rollouts: list[Rollout]) -> NotingBatch:
    """Return the tokens of the first micro-batch, with what one plugin declares."""
    batch = next(opened.runtime.micro_batches(rollouts))
    tokens = token_batch(opened.runtime, batch, None, loaded.plugin.needs)
    noting = NotingBatch(**{each.name: getattr(tokens, each.name) for each in fields(tokens)})
    noting.read = set()
    return noting
