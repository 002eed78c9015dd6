"""The reward shapers of stage 5: golden numbers, an oracle, and what must hold of every group."""

from __future__ import annotations

import re
import time
from types import SimpleNamespace

import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from rlvr_core.api import (
    FailureCategory,
    FinishReason,
    Group,
    Rollout,
    Row,
    Segment,
    Status,
    Verdict,
)
from rlvr_core.builtin.format_reward import FormatReward, FormatRewardConfig, has_form
from rlvr_core.builtin.length_penalty import LengthPenalty, LengthPenaltyConfig, length_reward
from rlvr_core.builtin.overlong import Overlong, OverlongConfig, overlong_punishment

ROW = Row(id="r", prompt="p", verifier="exact-match", ground_truth={"answer": "4"})
PASSED = Verdict(status=Status.PASSED, score=1.0)
FAILED = Verdict(status=Status.FAILED, score=0.0, failure=FailureCategory.WRONG_ANSWER)
BROKEN = Verdict(status=Status.ERROR, failure=FailureCategory.VERIFIER_CRASH)
VERDICTS = [PASSED, FAILED, BROKEN]
RUN = SimpleNamespace(max_completion_tokens=20480)
"""All that a shaper reads of a session."""

members = st.lists(
    st.tuples(st.integers(1, 30000), st.sampled_from(VERDICTS)), min_size=1, max_size=8
)


def group_of(*rollouts: tuple[int, Verdict], completion: str = "4") -> Group:
    """A group whose rollouts have these lengths and verdicts, and the scores as rewards."""
    return Group(
        row=ROW,
        rollouts=[
            Rollout(
                row=ROW,
                sample_index=index,
                completion=completion,
                segments=[Segment(token_ids=range(length))],
                finish_reason=FinishReason.STOP,
                weights_version=0,
                sampled_under="p",
                trained_under="p",
                verdict=verdict,
                reward=verdict.score,
            )
            for index, (length, verdict) in enumerate(rollouts)
        ],
    )


def shaped(plugin, group: Group) -> list[float | None]:
    (line,) = plugin.rlvr_shape_rewards(RUN, [group])
    return line


@pytest.mark.parametrize(
    ("length", "expected"),
    [(16384, 0), (16385, -0.000244140625), (17408, -0.25), (18432, -0.5), (20480, -1), (20481, -1)],
)
def test_the_punishment_is_that_of_the_paper(length, expected):
    assert overlong_punishment(length, 20480, 4096) == expected


@given(st.integers(0, 40000), st.integers(1, 20480), st.integers(1, 30000))
def test_the_punishment_agrees_with_the_oracle_and_is_bounded(length, limit, cache):
    found = overlong_punishment(length, limit, cache)

    assert found == pytest.approx(oracle.overlong(length, limit, cache)) or limit < cache
    assert -1 <= found <= 0
    assert overlong_punishment(length + 1, limit, cache) <= found


def test_overlong_reads_the_limit_of_the_run_and_takes_a_fifth_of_it():
    group = group_of((16384, PASSED), (18432, PASSED), (20480, FAILED), (20480, BROKEN))

    assert shaped(Overlong(), group) == [1.0, 0.5, -1.0, None]
    doubled = Overlong(OverlongConfig(penalty=2.0, cache_tokens=2048))
    assert shaped(doubled, group) == [1.0, 1.0, -2.0, None]


def test_a_zone_of_no_tokens_is_refused():
    with pytest.raises(ValidationError):
        OverlongConfig(cache_tokens=0)
    assert overlong_punishment(1, 1, 1) == -1


@given(members)
def test_length_rewards_agree_with_the_oracle(rollouts):
    lengths, passed = zip(*[(n, v is PASSED) for n, v in rollouts], strict=True)

    found = [
        length_reward(n, min(lengths), max(lengths), passed=p)
        for n, p in zip(lengths, passed, strict=True)
    ]

    assert found == pytest.approx(list(oracle.kimi_length(lengths, passed)))


@given(members)
def test_shortest_passed_gains_most_and_a_failed_one_never_gains(rollouts):
    found = shaped(LengthPenalty(LengthPenaltyConfig(coefficient=0.5)), group_of(*rollouts))

    for (length, verdict), reward in zip(rollouts, found, strict=True):
        if verdict is BROKEN:
            assert reward is None
            continue
        assert abs(reward - verdict.score) <= 0.25
        assert verdict is PASSED or reward <= 0
        for (other_length, other), other_reward in zip(rollouts, found, strict=True):
            if other is verdict and other_length > length:
                assert other_reward <= reward


def test_lengths_of_masked_rollouts_are_not_compared_with():
    found = shaped(LengthPenalty(), group_of((10, PASSED), (20, PASSED), (1000, BROKEN)))

    assert found == [pytest.approx(1.1), pytest.approx(0.9), None]


GOOD = ["<think>a</think>4", " \n<think>a\nb</think>\n 4 ", "<think><b></think>4"]
BAD = [
    "",
    "4",
    "<think></think>4",
    "<think>a</think>",
    "<think>a</think> \n",
    "say <think>a</think>4",
    "<think>a4",
    "a</think>4",
    "</think>a<think>4",
    "<think>a</think>4<think>b</think>",
    "<think><think>a</think>4",
    "<think>a</think></think>4",
    "<THINK>a</THINK>4",
    "< think>a</think>4",
]


@pytest.mark.parametrize("text", GOOD)
def test_the_form_is_seen(text):
    assert has_form(text, ["think"], answer_after=True)


@pytest.mark.parametrize("text", BAD)
def test_another_form_is_not(text):
    assert not has_form(text, ["think"], answer_after=True)


def test_several_tags_stand_in_their_order_and_nothing_between_or_after():
    def fits(text: str) -> bool:
        return has_form(text, ["think", "answer"], answer_after=False)

    assert fits("<think>a</think> <answer>4</answer>\n")
    assert not fits("<answer>4</answer><think>a</think>")
    assert not fits("<think>a</think>so<answer>4</answer>")
    assert not fits("<think>a</think><answer>4</answer>!")
    assert not fits("<think>a<answer></think>4</answer>")


pieces = st.lists(
    st.sampled_from(["<think>", "</think>", "<answer>", "</answer>", " ", "\n", "x", "\ud800"]),
    max_size=9,
).map("".join)


@given(pieces, st.booleans())
@settings(max_examples=300)
def test_the_form_agrees_with_a_regular_expression(text, answer_after):
    inside = r"(?=.*?\S.*?</{0}>)(?:(?!</?(?:think|answer)>).)*?"
    tags = [f"<{tag}>{inside.format(tag)}</{tag}>" for tag in ("think", "answer")]
    rest = r"(?=.*\S)(?:(?!</?(?:think|answer)>).)+" if answer_after else r"\s*"
    pattern = rf"\s*{tags[0]}\s*{tags[1]}{rest}"
    expected = re.fullmatch(pattern, text, re.DOTALL) is not None
    # The expression asks for text inside by looking ahead, which may look beyond the tag.
    contents = re.findall(r"<(think|answer)>(.*?)</\1>", text, re.DOTALL)
    expected = expected and all(content.strip() for _, content in contents)

    assert has_form(text, ["think", "answer"], answer_after=answer_after) == expected


def test_the_share_is_paid_for_the_form_and_masked_rollouts_stay_masked():
    plugin = FormatReward(FormatRewardConfig(share=0.25))
    lengths = [(5, PASSED), (5, FAILED), (5, BROKEN)]

    assert shaped(plugin, group_of(*lengths, completion=GOOD[0])) == [1.0, 0.25, None]
    assert shaped(plugin, group_of(*lengths, completion="4")) == [0.75, 0.0, None]


def test_a_reward_without_a_judgement_earns_nothing_for_its_form():
    group = group_of((5, BROKEN), completion=GOOD[0])
    group.rollouts[0].reward = 0.0

    assert shaped(FormatReward(), group) == [0.0]


def test_hostile_completions_of_a_megabyte_take_no_time():
    for piece in ("<think>", "</think>", "<think", "<" * 7, "<think>a</think>"):
        text = "<think>" + piece * (1_000_000 // len(piece)) + "</think>4"
        started_s = time.perf_counter()
        has_form(text, ["think", "answer"], answer_after=True)
        assert time.perf_counter() - started_s < 10, "a square of the length would take hours"


@pytest.mark.parametrize(
    "tags", [[], ["a", "a"], ["a b"], ["(a+)+"], ["a" * 65], ["<think>"]], ids=str
)
def test_tags_are_plain_names(tags):
    with pytest.raises(ValidationError):
        FormatRewardConfig(tags=tags)
