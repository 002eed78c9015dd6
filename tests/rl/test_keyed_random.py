"""Keys of random numbers: different ones are never mixed up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_core.rl.keyed_random import digest, keyed_uniforms

PARTS = st.lists(st.text("|\\a\ud800?", max_size=4), min_size=1, max_size=3)


@given(first=PARTS, second=PARTS)
def test_two_keys_are_the_same_only_if_all_their_parts_are(first, second):
    assert (digest(*first) == digest(*second)) == (first == second)


@pytest.mark.parametrize(
    ("first", "second"), [(("a|b", "c"), ("a", "b|c")), (("a\\", "b"), ("a\\|b",)), (("1",), (1,))]
)
def test_separators_inside_a_part_do_not_split_it(first, second):
    assert (digest(*first) == digest(*second)) == (list(map(str, first)) == list(map(str, second)))


def test_the_numbers_of_a_key_do_not_depend_on_how_many_are_drawn():
    assert keyed_uniforms(5, "run", 1).tolist() == keyed_uniforms(9, "run", 1).tolist()[:5]
