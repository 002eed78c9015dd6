"""The parts: one spelling, steps, equations, answers, alignment."""

from __future__ import annotations

from fractions import Fraction

import pytest
from rlvr_plugin_steps.alignment import align
from rlvr_plugin_steps.answers import find_claim, is_same_answer
from rlvr_plugin_steps.equations import equations_in
from rlvr_plugin_steps.features import read_step, similarity
from rlvr_plugin_steps.lexemes import numbers_in
from rlvr_plugin_steps.plain import plain
from rlvr_plugin_steps.splitting import split_steps


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("8 × 3 − 4 ÷ 2", "8 * 3 - 4 / 2"),
        (r"\(8 \times 3\) and \$5", " 8 * 3 and 5"),
        (r"\dfrac{1}{\frac{2}{3}} + \frac12", "((1)/(((2)/(3)))) + ((1)/(2))"),
        ("16 - 3 = <<16-3=13>>13", "16 - 3 = 13"),
        ("x² + 2³", "x^2 + 2^3"),
        ("3½ cups", "3 1/2 cups"),
        ("80{,}000 + $5", "80,000 + 5"),
        ("**18** and 2**3", "18 and 2**3"),
        ("９＋１＝10", "9+1=10"),
        (r"\begin{aligned} x &= 3 \\ y &= 4 \end{aligned}", " x = 3 \n y = 4 "),
        (r"x^{2} \text{ apples} \boxed{7}", "x^(2) apples 7"),
    ],
)
def test_text_gets_one_plain_spelling(written, expected):
    assert plain(written) == expected


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("1. a b\n2. c d", ["a b", "c d"]),
        ("(1) a b\n(2) c d", ["a b", "c d"]),
        ("Step 1: a b Step 2: c d", ["a b Step 2: c d"]),
        ("Step 1: a b. Step 2: c d", ["a b.", "c d"]),
        ("Step 1\na b\n- x\n- y\nStep 2\nc d", ["a b\n- x\n- y", "c d"]),
        ("第一步:甲。第二步:乙", ["甲。", "乙"]),
        ("- a b\n- c d", ["a b", "c d"]),
        ("a b\n\nc d", ["a b", "c d"]),
        ("We get:\na b\nc d", ["We get: a b", "c d"]),
        ("x\n= 3 + 4\n= 7\ny = 2", ["x = 3 + 4 = 7", "y = 2"]),
        ("Mr. Fox has 3.5 kg. He eats 1.5 kg.", ["Mr. Fox has 3.5 kg.", "He eats 1.5 kg."]),
        ("她有三个苹果。吃了一个;剩两个。", ["她有三个苹果。", "吃了一个;", "剩两个。"]),
        ("1. a b\n2. c d\nThe answer is 4.", ["a b", "c d"]),
        ("a b\nc d\n18", ["a b", "c d"]),
        ("Plan:\n1. a b\n2. c d", ["a b", "c d"]),
        ("There are 16 eggs.\n1. a b\n2. c d", ["There are 16 eggs.", "a b", "c d"]),
        ("", []),
        ("---\n***", []),
    ],
)
def test_steps_are_numbered_or_lines_or_sentences(text, steps):
    assert split_steps(text) == steps


@pytest.mark.parametrize(
    "text",
    ["3 + 5 = 8", "10/3 = 3.33", "2/3 = 0.67", "50 * 20% = 10", "5/20 * 100 = 25%", "5/20 = 25%",
     "20% of 50 = 10", "80,000 + 50,000 = 130,000", "2 * 3 1/2 = 7", "2^10 = 1024", "-3 + 5 = 2",
     "(3 + 5 = 8)", "3 eggs * $2/egg = $6", "7 rolls + 2 rolls = 9 rolls", "3 plus 5 equals 8",
     "x = 100/4 = 25", "4*60/5 = 4*12 = 48", "9 * 2 = 18 a day", "10/3 ≈ 3", ".5 * 4 = 2",
     "6 divided by 4 = 1.5", "3(4) = 12"],
)  # fmt: skip
def test_true_lines_are_true(text):
    assert [one.is_true for one in equations_in(plain(text))] == [True]


@pytest.mark.parametrize(
    "text",
    ["3 + 5 = 9", "10/3 = 3.3", "10/3 = 3", "2*3 = 6 = 7", "1/0 = 0", "80,000 + 1 = 81,000",
     "-3 + 5 = 8", "so -3+5 = 8", "2^3 = 6", "9 = 4 + 4", "2 + 2 = 4.001"],
)  # fmt: skip
def test_false_lines_are_false(text):
    assert [one.is_true for one in equations_in(plain(text))] == [False]


@pytest.mark.parametrize(
    "text",
    ["eggs + 3 = 7", "1:30 + 2 = 3:30", "twice 5 + 3 = 13", "12 * 2 = 2 dozen", "5! + 1 = 121",
     "He has 3 (1+1) = 6", "5 - 3 apples = 4 pears", "sqrt of 9 + 1 = 4", "2x + 3 = 7", "3 = 3",
     r"\sqrt{9} + 1 = 4", "eggs - 3 = 13", "10/3 ≈ 4", "6 = six", "a third of 9 + 1 = 4",
     "5 squared + 1 = 26", "eggs + 3 + 1 = 7", "eggs - 3 - 1 = 7", "比 5 + 3 = 9", "x_1 + 2 = 3"],
)  # fmt: skip
def test_what_words_change_is_never_called_wrong(text):
    assert [one for one in equations_in(plain(text)) if one.is_true is False] == []


def test_a_number_that_nothing_can_hold_is_no_number():
    assert numbers_in("9" * 5000) == []
    assert numbers_in("1,234.5 and .5 and 2 1/2") == [
        Fraction(2469, 2), Fraction(1, 2), Fraction(5, 2)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("step", "reference", "expected"),
    [
        ("12*8=96", "The baker makes 12 * 8 = 96 rolls.", 1.0),
        ("8*12=96", "12*8=96", 1.0),
        ("100-4=96", "12*8=96", 0.5),
        ("12*4*2=96", "12*8=96", 0.8),
        ("96+0=96", "12*8=96", 0.0),
        ("12*8=97", "12*8=96", 0.0),
        ("12*8=96, 96/4=24", "12*8=96", 2 / 3),
        ("17 = 5 + 3x", "3x + 5 = 17", 1.0),
        ("(x+1)^2 = 0", "x^2 + 2x + 1 = 0", 1.0),
        ("x^2 + 2x + 2 = 0", "x^2 + 2x + 1 = 0", 0.0),
        ("3x + 5 = 18", "3x + 5 = 17", 0.0),
        ("The baker makes 96 rolls.", "The baker makes 12 * 8 = 96 rolls.", 2 * 4 / 10),
        ("The baker makes rolls.", "The baker makes 12 * 8 = 96 rolls.", 0.0),
        ("Whales breathe air", "So the whales breathe air.", 1.0),
        ("Fish breathe water", "The whales breathe air.", 0.0),
        ("鲸鱼呼吸空气", "鲸鱼呼吸空气。", 1.0),
    ],
)
def test_steps_are_alike_by_equations_then_by_words(step, reference, expected):
    found = similarity(read_step(plain(step)), read_step(plain(reference)))
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        (r"so \boxed{18}", "18"),
        (r"\boxed{1} no, \boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{18", None),
        (r"not \boxed{18}", None),
        ("The answer is 18.", "18"),
        ("The answer is $18.50 a day because of that.", "18.50 a day"),
        ("**Final Answer:** 18", "18"),
        ("**Answer**\n\n18", "18"),
        ("Answer: 17\nAnswer: 18", "18"),
        ("The answer is not 18.", None),
        ("#### 18", "18"),
        ("#### Step 2\nmore", None),
        ("<answer>18</answer>", "18"),
        ("<answer>18", None),
        ("答案是18。", "18"),
        ("故选B", "B"),
        ("I will answer soon, 18.", None),
        ("18", None),
    ],
)
def test_the_claimed_answer_is_found(text, claim):
    assert find_claim(text) == claim


@pytest.mark.parametrize(
    ("claim", "gold"),
    [("18", "18"), ("$18.00", "18"), ("18 dollars", "18"), ("9*2 = 18", "18"), ("1/2", "0.5"),
     (r"\frac{1}{2}", "0.5"), ("50%", "0.5"), ("x=3", "3"), ("3", "x=3"), ("(B)", "B"),
     ("B. red", "B"), ("minus 5", "-5"), ("2x+1", "1+2x"), ("1,000", "1000"), ("yes.", "Yes"),
     ("3½ hours", "7/2"), ("23元", "23"), ("about -5 m", "-5"), ("1 000", "1 000")],
)  # fmt: skip
def test_equal_answers_are_equal(claim, gold):
    assert is_same_answer(claim, gold)


@pytest.mark.parametrize(
    ("claim", "gold"),
    [("17", "18"), ("12+30", "42"), ("17 or 18", "18"), ("-5", "5"), ("5", "-5"), ("A", "B"),
     ("Because", "B"), ("18:00", "18"), ("1/0", "1"), ("", "18"), ("2x+2", "1+2x"), ("no", "yes"),
     ("18.0001", "18"), ("eighteen", "18"), ("18 19", "18"), ("50", "0.5")],
)  # fmt: skip
def test_other_answers_are_not(claim, gold):
    assert not is_same_answer(claim, gold)


def test_alignment_is_monotone_one_to_one_and_weighs_both_sides():
    found = align([[1.0, 0, 0], [0, 0, 0.8]], [1, 1, 1], 2)
    assert (found.recall, found.precision) == pytest.approx((0.6, 0.9))
    assert found.f1 == pytest.approx(0.72)
    swapped = align([[0, 0, 0.8], [1.0, 0, 0]], [1, 1, 1], 2)
    assert (swapped.matched, swapped.f1) == (1, pytest.approx(0.4))
    repeated = align([[1.0, 0, 0]] * 5, [1, 1, 1], 5)
    assert (repeated.matched, repeated.f1) == (1, pytest.approx(0.25))
    assert align([], [1, 1], 0).f1 == 0
    assert align([[0, 0]], [1, 1], 1).f1 == 0


def test_weights_decide_which_of_two_crossing_matches_is_kept():
    crossing = [[0, 1.0], [1.0, 0]]
    assert align(crossing, [1, 3], 2).recall == pytest.approx(0.75)
    assert align(crossing, [3, 1], 2).recall == pytest.approx(0.75)
