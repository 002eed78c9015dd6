"""An independent oracle in numpy and float64: the formulas once more, without any of our code."""

import hashlib

import numpy as np


def advantages(rewards, kind="grpo", ddof=1, epsilon=1e-6, tolerance=1e-12):
    r = np.asarray(rewards, float)
    centred = r - r.mean()
    if r.max() - r.min() <= tolerance:
        return np.zeros(len(r))
    if kind == "grpo":
        return centred / (r.std(ddof=ddof) + epsilon)
    return centred


def ppo_objective(rho, advantage, low=0.2, high=0.2, dual=None):
    rho, advantage = np.asarray(rho, float), np.asarray(advantage, float)
    objective = np.minimum(rho * advantage, np.clip(rho, 1 - low, 1 + high) * advantage)
    if dual is None:
        return objective
    return np.where(advantage < 0, np.maximum(objective, dual * advantage), objective)


def aggregate(loss, mask, how, constant=None):
    per_sequence, counts = (loss * mask).sum(1), mask.sum(1)
    if how == "sequence-mean":
        return (per_sequence / np.maximum(counts, 1)).mean()
    if how == "token-mean":
        return per_sequence.sum() / counts.sum()
    if how == "constant-length":
        return per_sequence.sum() / (len(per_sequence) * constant)
    if how == "sequence-sum":
        return per_sequence.mean()
    raise ValueError(how)


def kl(logp, reference, kind):
    log_ratio = np.asarray(reference, float) - np.asarray(logp, float)
    return {
        "k1": -log_ratio,
        "k2": 0.5 * log_ratio**2,
        "k3": np.expm1(log_ratio) - log_ratio,
    }[kind]


def random_arm(seed, prompt_id, index, rate=0.5):
    digest = hashlib.sha256(f"{seed}|{prompt_id}|{index}".encode()).digest()
    return int(int.from_bytes(digest[:8], "big") / 2**64 < rate)


def overlong(length, limit=20480, cache=4096):
    free = limit - cache
    return 0.0 if length <= free else (free - length) / cache if length <= limit else -1.0


def kimi_length(lengths, passed):
    lengths, passed = np.asarray(lengths, float), np.asarray(passed, bool)
    spread = lengths.max() - lengths.min()
    if spread == 0:
        return np.zeros(len(lengths))
    value = 0.5 - (lengths - lengths.min()) / spread
    return np.where(passed, value, np.minimum(0.0, value))
