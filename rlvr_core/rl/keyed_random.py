"""Counter-based randomness: every draw is a function of what it is for.

A draw is keyed by (run seed, purpose, step, prompt, sample, token), so results do not depend on
what else was drawn: on evaluation, logging, batch order, the number of workers, or a resume.
"""

from __future__ import annotations

import hashlib
import random

import numpy as np
from numpy.typing import NDArray


def digest(*key: object) -> bytes:
    """Return the 32-byte SHA-256 of a key; the parts are separated by ``|`` as text.

    Two keys are the same only if all of their parts are.
    """
    parts = (str(part).replace("\\", "\\\\").replace("|", "\\|") for part in key)
    return hashlib.sha256("|".join(parts).encode("utf-8", "surrogatepass")).digest()


def keyed_generator(*key: object) -> random.Random:
    """Return Python's generator seeded by a key."""
    return random.Random(int.from_bytes(digest(*key), "big"))


def keyed_uniforms(count: int, *key: object) -> NDArray[np.float32]:
    """Return `count` float32 numbers in [0, 1): the stream of one completion, one number a token.

    Philox is counter-based: number i does not depend on how many are drawn.
    """
    philox = np.random.Philox(key=np.frombuffer(digest(*key)[:16], dtype=np.uint64))
    return np.random.Generator(philox).random(count, dtype=np.float32)
