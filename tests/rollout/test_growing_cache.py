"""The cache that grows in place holds what the library's own holds."""

import pytest

torch = pytest.importorskip("torch")

from transformers import DynamicCache  # noqa: E402

from rlvr_core.rollout.growing_cache import ROOM_TOKENS, growing_cache  # noqa: E402


def states(rows, tokens, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, rows, 3, tokens, 4, generator=generator)


def test_it_holds_what_the_librarys_cache_holds():
    """A prompt, a longer prompt's rest, rows repeated, retired and reordered, and many tokens."""
    ours, theirs = growing_cache(), DynamicCache()
    work = [
        ("update", 2, 5),
        ("batch_repeat_interleave", 3),
        ("update", 6, 2),
        ("batch_select_indices", torch.tensor([5, 0, 2])),
        *[("update", 3, 1)] * (ROOM_TOKENS + 3),
        ("batch_select_indices", torch.tensor([1])),
        ("update", 1, 1),
        ("batch_repeat_interleave", 2),
        ("update", 2, ROOM_TOKENS + 1),
    ]
    for number, (name, *arguments) in enumerate(work):
        if name == "update":
            keys, values = states(*arguments, seed=number)
            found = [ours.update(keys, values, layer) for layer in (0, 1)]
            expected = [theirs.update(keys, values, layer) for layer in (0, 1)]
            for one, other in zip(found, expected, strict=True):
                assert torch.equal(one[0], other[0])
                assert torch.equal(one[1], other[1])
        else:
            getattr(ours, name)(*arguments)
            getattr(theirs, name)(*arguments)
        assert ours.get_seq_length() == theirs.get_seq_length()
        assert ours.get_mask_sizes(1, 0) == theirs.get_mask_sizes(1, 0)


def test_what_was_given_is_not_written_to():
    keys, values = states(2, 3, seed=0)
    before = keys.clone()
    cache = growing_cache()

    cache.update(keys, values, 0)
    cache.update(*states(2, 1, seed=1), 0)

    assert torch.equal(keys, before)
