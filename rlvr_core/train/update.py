"""One optimiser update from the groups of one mini-batch: stages 10 and 11.

The loss is a sum over tokens, each scaled by counts taken over all micro-batches and processes,
so how rollouts are split into micro-batches or dealt to processes changes nothing but rounding.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from rlvr_core.api.rollouts import Group, Rollout
from rlvr_core.api.session import Need, TokenBatch
from rlvr_core.rl.aggregation import BatchCounts, token_scales
from rlvr_core.train.packing import MicroBatch
from rlvr_core.train.runtime import Runtime
from rlvr_core.train.session import StepSession

SAMPLER_GAP = "sampler_gap"
"""Name of the metric that compares the engine with the policy."""

OldLogps = Mapping[int, Tensor]
"""Log-probabilities [T_i] that a batch was collected with, by the id() of the rollout."""


@dataclass(slots=True)
class UpdateResult:
    """What updates did, summed over them; `means` divides."""

    loss: float = 0.0
    grad_norm: float = 0.0
    updates: int = 0
    skipped_updates: int = 0
    """Updates left out because their gradient was not finite."""
    trained_tokens: float = 0.0
    metric_sums: dict[str, float] = field(default_factory=dict)
    """Sums over trained tokens."""

    def __iadd__(self, other: UpdateResult) -> UpdateResult:
        self.loss += other.loss
        self.grad_norm += other.grad_norm
        self.updates += other.updates
        self.skipped_updates += other.skipped_updates
        self.trained_tokens += other.trained_tokens
        for name, value in other.metric_sums.items():
            self.metric_sums[name] = self.metric_sums.get(name, 0.0) + value
        return self

    def means(self) -> dict[str, float | None]:
        """Return loss and gradient norm a completed update, other metrics a token."""
        done = self.updates
        per_token = {
            name: value / self.trained_tokens for name, value in sorted(self.metric_sums.items())
        }
        return {
            "loss": self.loss / done if done else None,
            "grad_norm": self.grad_norm / done if done else None,
            SAMPLER_GAP: None,
            **per_token,
        }


def update(
    runtime: Runtime,
    session: StepSession,
    groups: Sequence[Group],
    old_logps: OldLogps | None,
) -> UpdateResult:
    """Make one optimiser update, or none where no process has a rollout to learn from.

    Args:
        runtime: The parts of the run.
        session: For hooks.
        groups: One mini-batch, on this process.
        old_logps: None when this is the only update of the batch of rollouts: the old
            log-probabilities are then the forward pass's own.

    Returns:
        Totals over all processes.
    """
    token_factors, rollouts = _token_factors(runtime, groups)
    [anywhere] = runtime.sum_over_ranks([len(rollouts)])
    if not anywhere:
        return UpdateResult()
    batches = list(runtime.micro_batches(rollouts))
    weights = _mini_batch_weights(runtime, session, batches, old_logps)
    needs = runtime.dispatcher.needs
    result = UpdateResult()
    # Around all micro-batches: inside, weights are cast to bfloat16 once and not once for each.
    with runtime.accelerator.autocast():
        for number, batch in enumerate(batches):
            tokens = token_batch(runtime, batch, old_logps, needs)
            weight_T = weights[number] if weights else _weights(runtime, session, tokens)
            policy_loss = runtime.dispatcher.policy_loss(tokens, session)
            factor_T = tokens.logp_T.new_tensor([token_factors[id(r)] for r in batch.rollouts])
            factor_T = factor_T[batch.rollout_T]
            loss = (policy_loss.loss_T * factor_T * (1.0 if weight_T is None else weight_T)).sum()
            # Not `accelerator.backward`, which divides by the accumulation steps of a launcher:
            # these losses carry their denominator already.
            with torch.autocast(loss.device.type, enabled=False):
                loss.backward()
            result.loss += loss.item()
            result.trained_tokens += len(batch.token_T)
            for name, metric_T in {**policy_loss.metrics, **_sampler_gap(batch, tokens)}.items():
                result.metric_sums[name] = result.metric_sums.get(name, 0.0) + metric_T.sum().item()
    _reduce_gradients(runtime)
    _reduce_result(runtime, result)
    _step(runtime, session.step, result)
    return result


def _token_factors(
    runtime: Runtime, groups: Sequence[Group]
) -> tuple[dict[int, float], list[Rollout]]:
    """Return what each rollout's token losses are multiplied with, and the rollouts to compute.

    A rollout whose advantage is 0 counts in every denominator, but costs no forward pass when the
    loss is known to be 0 there.
    """
    pairs = [(group, rollout) for group in groups for rollout in group.valid]
    lengths = [rollout.length for _, rollout in pairs]
    tokens, rollouts = runtime.sum_over_ranks([sum(lengths), len(lengths)])
    counts = BatchCounts(
        tokens=tokens,
        rollouts=rollouts,
        max_completion_tokens=runtime.stack.rollout.max_completion_tokens,
    )
    scales = token_scales(runtime.aggregation, lengths, counts)
    factors = {
        id(rollout): scale * group.weight * rollout.loss_weight
        for (group, rollout), scale in zip(pairs, scales, strict=True)
    }
    return factors, [rollout for _, rollout in pairs if needs_forward(runtime, rollout)]


def needs_forward(runtime: Runtime, rollout: Rollout) -> bool:
    """Tell whether a rollout can move the policy: it has an advantage, or the loss needs none."""
    return runtime.loss_acts_without_advantage or rollout.has_advantage


def token_batch(
    runtime: Runtime,
    batch: MicroBatch,
    old_logps: OldLogps | None,
    needs: Collection[Need],
) -> TokenBatch:
    """Run the policy, and what else is needed, on one micro-batch.

    Args:
        runtime: The parts of the run.
        batch: Of rollouts with advantages.
        old_logps: As in `update`.
        needs: What the hooks that get the result declare.
    """
    logp_T, entropy_T = runtime.policy.logps(batch, with_entropy=Need.ENTROPY in needs)
    if old_logps is None:
        old_logp_T = logp_T.detach()
    else:
        old_logp_T = torch.cat([old_logps[id(rollout)] for rollout in batch.rollouts])
    reference_logp_T = None
    if runtime.reference is not None:
        with torch.no_grad():
            reference_logp_T, _ = runtime.reference.logps(batch)
    return TokenBatch(
        rollouts=batch.rollouts,
        rollout_T=batch.rollout_T,
        logp_T=logp_T,
        old_logp_T=old_logp_T,
        advantage_T=logp_T.new_tensor(
            [advantage for rollout in batch.rollouts for advantage in rollout.token_advantages]
        ),
        sampler_logp_T=_sampler_logps(batch, old_logp_T) if Need.SAMPLER_LOGP in needs else None,
        reference_logp_T=reference_logp_T,
        entropy_T=entropy_T,
        kl_coefficient=runtime.controls.kl_coefficient,
    )


def _sampler_logps(batch: MicroBatch, old_logp_T: Tensor) -> Tensor:
    """Return what the engine noted; where a plugin wrote the completion, what the policy says."""
    return torch.where(batch.sampler_logp_T.isnan(), old_logp_T, batch.sampler_logp_T)


def _sampler_gap(batch: MicroBatch, tokens: TokenBatch) -> dict[str, Tensor]:
    """Return [T] by how much the engine noted other log-probabilities than the policy computes.

    Rounding, unless the engine has other weights, another temperature or another context.
    """
    return {SAMPLER_GAP: (tokens.old_logp_T - _sampler_logps(batch, tokens.old_logp_T)).abs()}


def _weights(runtime: Runtime, session: StepSession, tokens: TokenBatch) -> Tensor | None:
    detached = replace(tokens, logp_T=tokens.logp_T.detach())
    return runtime.dispatcher.weigh_tokens(detached, session)


@torch.no_grad()
def _mini_batch_weights(
    runtime: Runtime,
    session: StepSession,
    batches: Sequence[MicroBatch],
    old_logps: OldLogps | None,
) -> Sequence[Tensor] | None:
    """Return each micro-batch's token weights, made from the whole mini-batch, where needed.

    The whole must be known before the first gradient, so this is one forward pass more.
    """
    if Need.MINI_BATCH_STATS not in runtime.dispatcher.needs or not batches:
        return None
    needs = runtime.dispatcher.needs
    parts = [token_batch(runtime, batch, old_logps, needs) for batch in batches]
    offsets = [0]
    for part in parts:
        offsets.append(offsets[-1] + len(part.rollouts))

    def together(name: str) -> Any:
        tensors = [getattr(part, name) for part in parts]
        return None if tensors[0] is None else torch.cat(tensors)

    whole = replace(
        parts[0],
        rollouts=[rollout for part in parts for rollout in part.rollouts],
        rollout_T=torch.cat([part.rollout_T + offsets[n] for n, part in enumerate(parts)]),
        logp_T=together("logp_T"),
        old_logp_T=together("old_logp_T"),
        advantage_T=together("advantage_T"),
        sampler_logp_T=together("sampler_logp_T"),
        reference_logp_T=together("reference_logp_T"),
        entropy_T=together("entropy_T"),
    )
    weight_T = _weights(runtime, session, whole)
    return None if weight_T is None else weight_T.split([len(batch.token_T) for batch in batches])


def _reduce_gradients(runtime: Runtime) -> None:
    """Add up gradients over processes. One that had nothing to compute takes part with zeros."""
    if runtime.accelerator.num_processes == 1:
        return
    for parameter in runtime.trained_parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        with runtime.place.meeting():
            parameter.grad = runtime.accelerator.reduce(parameter.grad, reduction="sum")


def _reduce_result(runtime: Runtime, result: UpdateResult) -> None:
    by_rank = runtime.gather([list(result.metric_sums)])
    names = sorted({name for of_rank in by_rank for name in of_rank})
    values = [result.loss, result.trained_tokens, *(result.metric_sums.get(n, 0.0) for n in names)]
    result.loss, result.trained_tokens, *sums = runtime.sum_over_ranks(values)
    result.metric_sums = dict(zip(names, sums, strict=True))


def _step(runtime: Runtime, step: int, result: UpdateResult) -> None:
    """Clip and apply the gradient; leave it out, and count that, when it is not finite."""
    limit = runtime.stack.train.max_grad_norm
    norm = torch.nn.utils.clip_grad_norm_(
        runtime.trained_parameters, math.inf if limit is None else limit
    ).item()
    if math.isfinite(norm):
        for parameter_group in runtime.optimizer.param_groups:
            parameter_group["lr"] = runtime.learning_rate(step)
        runtime.optimizer.step()
        result.updates = 1
        result.grad_norm = norm
    else:
        result.skipped_updates = 1
        result.loss = 0.0
    runtime.optimizer.zero_grad(set_to_none=True)
