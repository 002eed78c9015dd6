"""The pairing is a maximum one, whatever the order: held against brute force."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st
from rlvr_plugin_f1_extraction.entities import Entity
from rlvr_plugin_f1_extraction.score import score

NAMES = st.lists(st.sampled_from("abcde"), min_size=1, max_size=3).map(" ".join)
ENTITIES = st.lists(
    st.builds(Entity, text=NAMES, type=st.sampled_from(["", "t"]), span=st.none()), max_size=5
)
RANGES = st.tuples(st.integers(0, 9), st.integers(1, 4)).map(lambda pair: (pair[0], sum(pair)))
SPANS = st.lists(
    st.builds(Entity, text=st.just("x"), type=st.sampled_from("st"), span=RANGES), max_size=5
)


def overlaps(one: Entity, other: Entity) -> bool:
    if one.type != other.type:
        return False
    if one.span is not None:
        return bool(set(range(*one.span)) & set(range(*other.span)))
    return bool(set(one.text.split()) & set(other.text.split()))


def best_by_trying_all(claimed: list[Entity], wanted: list[Entity]) -> tuple[int, int]:
    claimed, wanted = list(dict.fromkeys(claimed)), list(dict.fromkeys(wanted))
    exact = [entity for entity in claimed if entity in wanted]
    left = [entity for entity in claimed if entity not in exact]
    right = [entity for entity in wanted if entity not in exact]
    padded = [*left, *[None] * len(right)]
    most = max(
        sum(a is not None and overlaps(a, b) for a, b in zip(order, right, strict=False))
        for order in permutations(padded, len(right))
    )
    return len(exact), most


@settings(max_examples=200, deadline=None, derandomize=True)
@given(sides=st.one_of(st.tuples(ENTITIES, ENTITIES), st.tuples(SPANS, SPANS)), data=st.data())
def test_the_most_pairs_are_found_in_any_order(sides, data):
    claimed, wanted = sides
    result = score(claimed, wanted, partial=True)
    assert (result.exact, result.partial) == best_by_trying_all(claimed, wanted)
    shuffled = data.draw(st.permutations(claimed)), data.draw(st.permutations(wanted))
    assert score(*shuffled, partial=True) == result
    assert 0 <= result.f1 <= 1
    assert (result.f1 == 1) == (set(claimed) == set(wanted))
