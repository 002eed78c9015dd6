"""Checks of samplers, advantage plugins and monitors, on made-up groups."""

from __future__ import annotations

from rlvr_core.testing.check import LOADS, apart

SAMPLERS = (
    apart("S10", "rlvr_select_prompts returns as many rows of the split as asked for, the same in "
          "every process."),
    apart("S11", "rlvr_wrap_prompt returns text or messages."),
    apart("S12", "rlvr_sample_groups returns one group a row, in their order, each rollout with an "
          "index of its own."),
    apart("S13", "rlvr_rescue_groups returns the groups in their order, new rollouts with new "
          "indices."),
    apart("S14", "rlvr_keep_groups returns one truth value a group, and changes no group."),
)  # fmt: skip

ADVANTAGE = (
    apart("A10", "Advantages are finite, one a rollout or one a sampled token."),
    apart("A11", "Masked rollouts have advantage 0.", (*LOADS, "A10")),
    apart("A12", "Rewards that are all equal give advantages of 0.", (*LOADS, "A10")),
    apart("A13", "The order of the rollouts of a group does not matter.", (*LOADS, "A10")),
    apart("A14", "Larger rewards give advantages of the same shape.", (*LOADS, "A10")),
    apart("A15", "No groups give no advantages."),
    apart("A16", "The same groups give the same advantages, and stay as they were.",
          (*LOADS, "A10")),
    apart("A17", "Token weights and losses have shape [T]; they and their gradients are finite."),
)  # fmt: skip

MONITORS = (
    apart("M10", "It returns actions or nothing, at every event of a run."),
    apart("M11", "It changes neither groups nor global state: training must not feel it."),
    apart("M12", "rlvr_eval_prompts returns the same rows in every process."),
)
