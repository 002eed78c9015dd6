"""A key-value cache that grows in place.

The library's `DynamicCache` copies every layer's keys and values for each new token. Here they are
written into room that was made before, which is copied only when it is used up.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from transformers.cache_utils import Cache, DynamicLayer

ROOM_TOKENS = 64
"""Tokens that room is made for at once."""


class GrowingLayer(DynamicLayer):
    """One layer: keys and values [R, heads, S, D] with room behind them.

    `keys` and `values` are views of what is filled, as the library expects them.
    """

    _keys: Tensor
    _values: Tensor
    _length: int

    def update(
        self, key_states: Tensor, value_states: Tensor, *_args: Any, **_kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Append new keys and values, and return all of them."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            # The prompt's own: room is made when a second token comes.
            self._keys, self._values = key_states, value_states
            return self._show(key_states.shape[-2])
        start, end = self._length, self._length + key_states.shape[-2]
        if end > self._keys.shape[-2]:
            self._keys = _with_room(self._keys[:, :, :start], end + ROOM_TOKENS)
            self._values = _with_room(self._values[:, :, :start], end + ROOM_TOKENS)
        self._keys[:, :, start:end] = key_states
        self._values[:, :, start:end] = value_states
        return self._show(end)

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat every row."""
        self._keys = self._keys.repeat_interleave(repeats, dim=0)
        self._values = self._values.repeat_interleave(repeats, dim=0)
        self._show(self._length)

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep these rows, in this order."""
        self._keys, self._values = self._keys[indices], self._values[indices]
        self._show(self._length)

    def _show(self, length: int) -> tuple[Tensor, Tensor]:
        self._length = length
        filled = self._keys[:, :, :length], self._values[:, :, :length]
        self.keys, self.values = filled
        return filled


def growing_cache() -> Cache:
    """Return an empty cache for a model of any depth."""
    return Cache(layer_class_to_replicate=GrowingLayer)


def _with_room(states: Tensor, length: int) -> Tensor:
    rows, heads, filled, width = states.shape
    roomy = states.new_empty(rows, heads, length, width)
    roomy[:, :, :filled] = states
    return roomy
