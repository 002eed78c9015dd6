"""Any installed verifier as a reward function of other trainers, and their rewards as verifiers."""

from rlvr_core.adapters.openrlhf import openrlhf_reward
from rlvr_core.adapters.trl import trl_reward, trl_reward_async
from rlvr_core.adapters.verifiers_reward import verifiers_reward
from rlvr_core.adapters.verl import verl_compute_score

__all__ = [
    "openrlhf_reward",
    "trl_reward",
    "trl_reward_async",
    "verifiers_reward",
    "verl_compute_score",
]
