"""Every hook of rlvr, in the order of the step.

A hook implementation takes any subset of the arguments, by name. Kinds:

* *first result*: at most one plugin of the stack answers; none means core's default.
* *chain*: called in file order, each on what the one before returned.
* *all results*, *AND*, *product*: called in file order, results combined.
* *routed*: called for one named verifier.
* *observers*: each called alone; an exception is logged and blamed, the run goes on.

N groups on this process, any number of rollouts in each. "Ragged [N][G]" is a list of N lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlvr_core.api.events import Action, EvalEvent, Finding, RunInfo, StepEvent
from rlvr_core.api.markers import hookspec
from rlvr_core.api.plugin import VerifyBatch
from rlvr_core.api.rollouts import Group, Prompt, Row
from rlvr_core.api.session import PolicyLoss, Session, TokenBatch
from rlvr_core.api.verdicts import Verdict

if TYPE_CHECKING:
    from torch import Tensor


@hookspec
def rlvr_audit_prompts(rows: Sequence[Row], session: Session) -> Sequence[Finding] | None:
    """Stage 0, all results: look at every training prompt before step 0.

    Called on every process, and must find the same there; verdicts it asks for are made on each.
    Any finding with severity ``refuse`` keeps the run from starting.

    :param rows: the whole training split.
    :param session: for verdicts of a verifier of the stack; it cannot sample yet.
    """


@hookspec(firstresult=True)
def rlvr_select_prompts(rows: Sequence[Row], count: int, session: Session) -> Sequence[Row]:
    """Stage 1, first result: choose the next `count` prompts of the step.

    Called on every process with equal arguments, and must return equal rows there; core then deals
    them out. Called again in the same step when too few groups were kept; `session.prompts_drawn`
    tells the calls apart.

    :param rows: the whole training split, in file order.
    :param count: how many rows to return; a row may repeat.
    """


@hookspec
def rlvr_wrap_prompt(prompt: Prompt, row: Row, session: Session) -> Prompt:
    """Chain, training only: change the prompt that a row is sampled and trained under.

    Never called in evaluation.
    """


@hookspec(firstresult=True)
def rlvr_sample_groups(session: Session, rows: Sequence[Row]) -> Sequence[Group]:
    """Stage 2, first result: sample the rollouts of each row through `session.sample`.

    :returns: one group for each row, in row order.
    """


@hookspec
def rlvr_verify(batch: VerifyBatch) -> Sequence[Verdict]:
    """Stage 3, routed: judge completions. Runs in worker processes.

    Implementations with ``wrapper=True`` in any plugin of the stack run in the training process,
    around the call for each verifier.

    :param batch: rows of one verifier. Call ``batch.starting(i)`` before each row, so that
        deadlines and blame fall on the right one.
    :returns: one verdict a row, in row order.
    """


@hookspec
def rlvr_rescue_groups(session: Session, groups: Sequence[Group]) -> Sequence[Group]:
    """Stage 4, chain: add rollouts to groups (through `session.sample`) or replace them.

    Runs after verification and before rewards are shaped; rollouts carry verdicts, and
    `reward` holds their scores. Rollouts added here are verified by core.

    :returns: the groups, in the same order.
    """


@hookspec
def rlvr_shape_rewards(
    session: Session, groups: Sequence[Group]
) -> Sequence[Sequence[float | None]]:
    """Stage 5, chain: return new rewards. Read the current ones from `rollout.reward`.

    :returns: ragged [N][G], finite, or None to mask. A masked rollout must stay None.
    """


@hookspec
def rlvr_gate_rewards(
    session: Session, groups: Sequence[Group]
) -> Sequence[Sequence[float | None]]:
    """Stage 6, chain, always after stage 5: the last word on rewards. Same form as stage 5."""


@hookspec
def rlvr_keep_groups(groups: Sequence[Group], session: Session) -> Sequence[bool]:
    """Stage 7, AND: say for each group whether it is trained on.

    Judge by verdicts, not by shaped rewards: shaping gives all-wrong groups a spread.
    """


@hookspec(firstresult=True)
def rlvr_estimate_advantages(
    groups: Sequence[Group], session: Session
) -> Sequence[Sequence[float]]:
    """Stage 8, first result: turn rewards into advantages.

    Called on every process, also with no groups at all, so that it may use
    `session.sum_over_ranks`. All kept groups are passed in, dead ones too: a group-relative
    estimator gives them exactly 0 (see `Group.is_dead`), one that compares with the whole batch
    need not.

    :returns: ragged [N][G], finite; core sets those of masked rollouts to exactly 0.
    """


@hookspec
def rlvr_adjust_advantages(
    groups: Sequence[Group],
    advantages: Sequence[Sequence[float | Sequence[float]]],
    session: Session,
) -> Sequence[Sequence[float | Sequence[float]]]:
    """Stage 9, chain: change advantages. Called on every process, like stage 8.

    :returns: ragged [N][G]; an entry is one number, or one for each sampled token of its rollout.
    """


@hookspec
def rlvr_weigh_tokens(tokens: TokenBatch, session: Session) -> Tensor:
    """Stage 10, product: return a weight of shape [T] for each token's loss.

    `tokens.logp_T` carries no gradient here. Called for each micro-batch, or once for a whole
    mini-batch when a plugin needs `Need.MINI_BATCH_STATS`. Processes call it unequally often, so it
    must not use `session.sum_over_ranks`; the same holds for `rlvr_policy_loss`.
    """


@hookspec(firstresult=True)
def rlvr_policy_loss(tokens: TokenBatch, session: Session) -> PolicyLoss:
    """Stage 11, first result: return the loss of each token, of shape [T].

    The plugin may carry an attribute ``aggregation`` (an `Aggregation`); core applies it with
    counts over all micro-batches and processes. A loss plugin whose `needs` are empty must be 0
    wherever the advantage is 0: core then skips the forward pass of such rollouts.
    """


@hookspec
def rlvr_run_start(run: RunInfo) -> None:
    """Stage 12, observers: the first step is about to be made, or the first after a resume.

    Main process only.
    """


@hookspec
def rlvr_step_end(event: StepEvent) -> Action | Sequence[Action] | None:
    """Stage 12, observers: a step is finished and logged. Main process only."""


@hookspec
def rlvr_eval_prompts(split: str, step: int) -> Sequence[Row] | None:
    """Stage 12, observers: add rows (canaries) to an evaluation.

    Called on every process, and must return equal rows there. They are sampled and graded, and
    handed to `rlvr_eval_end` with ids that begin with the monitor's name and a slash; they count in
    no record.
    """


@hookspec
def rlvr_eval_end(event: EvalEvent) -> Action | Sequence[Action] | None:
    """Stage 12, observers: a split has been evaluated. Main process only."""


@hookspec
def rlvr_run_end(run: RunInfo, status: str) -> Action | Sequence[Action] | None:
    """Stage 12, observers: the run is over; `status` is as in ``manifest.json``.

    Main process only. Warnings are shown and logged; other actions come too late.
    """
