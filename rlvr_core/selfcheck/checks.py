"""The list of checks: what each one holds a stack to, and what to do when it fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rlvr_core.plugins.stages import HOOK_ARGUMENTS
from rlvr_core.selfcheck.bench import Bench
from rlvr_core.selfcheck.estimators import estimator, processes
from rlvr_core.selfcheck.needs import needs
from rlvr_core.selfcheck.ratio import ratio
from rlvr_core.selfcheck.result import Found
from rlvr_core.selfcheck.runs import evaluation, repeat, resume
from rlvr_core.selfcheck.updates import mask, padding, partition, permutation
from rlvr_core.selfcheck.verdicts import blank, verdicts

ADVANTAGES = ("rlvr_estimate_advantages", "rlvr_adjust_advantages")
UPDATE = ("rlvr_wrap_prompt", *ADVANTAGES, "rlvr_weigh_tokens", "rlvr_policy_loss")
REWARDS = ("rlvr_shape_rewards", "rlvr_gate_rewards", "rlvr_keep_groups")
EVERY_HOOK = tuple(HOOK_ARGUMENTS)


@dataclass(frozen=True, slots=True)
class Check:
    """One invariant."""

    invariant: str
    """What must hold, as a sentence."""
    run: Callable[[Bench], Found]
    hooks: Sequence[str]
    """Plugins that implement one of these can break it."""
    fix: str
    """What to do when it fails."""

    @property
    def name(self) -> str:
        """As users see it."""
        return self.run.__name__


CHECKS = (
    Check(
        "Micro-batches do not matter: any split of a batch gives the same update.",
        partition,
        UPDATE,
        "return the loss and the weight of each token as if it were alone; core takes the means, "
        "with counts over all micro-batches. A weight that needs more declares mini_batch_stats",
    ),
    Check(
        "Padding does not matter: shared prompts and padded rows give the same update.",
        padding,
        UPDATE,
        "do not decide by differences of log-probabilities as small as rounding",
    ),
    Check(
        "Order does not matter: groups and rollouts may stand in any.",
        permutation,
        (*REWARDS, *UPDATE),
        "look at a group by its rollouts and never by its place; break ties by row id and sample "
        "index",
    ),
    Check(
        "Masked rollouts do not matter: they are in no baseline, no loss and no denominator.",
        mask,
        (*REWARDS, *UPDATE),
        "use group.valid, and leave out rollouts whose reward is None also where you count",
    ),
    Check(
        "The policy that learns is the one that sampled: before an update every ratio is 1.",
        ratio,
        ("rlvr_wrap_prompt", "rlvr_sample_groups", "rlvr_rescue_groups", "rlvr_policy_loss"),
        "keep the token ids and log-probabilities of session.sample as they are, and never "
        "tokenise text again",
    ),
    Check(
        "Processes do not matter: groups dealt to two of them get the same advantages.",
        processes,
        ADVANTAGES,
        "take sums over the whole batch with session.sum_over_ranks, equally often everywhere",
    ),
    Check(
        "Advantages are bounded, and 0 where all rewards are equal.",
        estimator,
        ADVANTAGES,
        "centre before you divide, tell equal rewards by max - min (Group.is_dead), and add an "
        "epsilon to a standard deviation; rlvr_core.rl.advantages does so",
    ),
    Check(
        "Token plugins read what they declare in needs, and nothing else.",
        needs,
        (),
        "declare in needs what the plugin's token and loss hooks read, and only that",
    ),
    Check(
        "Chance does not matter: the same run twice ends in the same bits.",
        repeat,
        EVERY_HOOK,
        "draw from session.random or session.run_random, never from the generators of random, "
        "numpy or torch that the process shares; use no clock",
    ),
    Check(
        "Interruptions do not matter: a resumed run ends in the bits of the unbroken one.",
        resume,
        EVERY_HOOK,
        "return from state() everything that a hook remembers from one step to the next, and take "
        "it back in load_state()",
    ),
    Check(
        "Watching does not matter: evaluations leave the run as it is.",
        evaluation,
        EVERY_HOOK,
        "keep what evaluation hooks remember apart from what training hooks read; a monitor that "
        "is to change the run returns an Action",
    ),
    Check(
        "Verdicts do not change: asked again, in any order, of any worker, they are the same.",
        verdicts,
        (),
        "judge a row by nothing but the row and the settings: no clock, no memory, no chance",
    ),
    Check(
        "Saying nothing is not paid.",
        blank,
        (),
        "judge a completion of white space with the lowest score (rlvr_core.api.FailureCategory "
        "NO_ANSWER; a reward function returns 0), before anything else is looked at",
    ),
)
"""In the order in which they are made: the cheapest first, so that a broken plugin shows early."""
