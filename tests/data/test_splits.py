from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_core.data.splits import even_counts, shuffled, split_by_hash, stable_hash


@given(st.lists(st.integers(0, 50), min_size=1, max_size=5), st.integers(0, 200))
def test_even_counts_add_up_and_fit(capacities: list[int], total: int) -> None:
    if total > sum(capacities):
        with pytest.raises(ValueError, match="at most"):
            even_counts(total, capacities)
        return
    counts = even_counts(total, capacities)
    assert sum(counts) == total
    assert all(0 <= count <= room for count, room in zip(counts, capacities, strict=True))


def test_even_counts_share_evenly_and_the_first_with_room_takes_the_rest() -> None:
    assert even_counts(200, [400, 400, 400]) == [67, 67, 66]
    assert even_counts(200, [150, 20, 400]) == [114, 20, 66]
    assert even_counts(200, [70, 20, 400]) == [70, 20, 110]


@given(st.sets(st.text(max_size=5), max_size=60))
def test_split_by_hash_deals_each_problem_once(problems: set[str]) -> None:
    dealt = split_by_hash(problems, {"dev": 0.3, "gate": 0.3, "train": 0.4})
    everything = [problem for split in dealt.values() for problem in split]
    assert sorted(everything) == sorted(problems)
    assert len(dealt["dev"]) == round(0.3 * len(problems))


def test_split_by_hash_does_not_depend_on_the_order_given() -> None:
    problems = [f"sum:{number}" for number in range(50)]
    shares = {"dev": 0.5, "train": 0.5}
    assert split_by_hash(problems, shares) == split_by_hash(reversed(problems), shares)


def test_shuffled_is_fixed_for_all_time() -> None:
    assert stable_hash("split", "sum:1,2")[:16] == "36d4dbfe7ff78a0c"
    assert shuffled(["a", "b", "c", "d"], str, 0) != shuffled(["a", "b", "c", "d"], str, 1)
