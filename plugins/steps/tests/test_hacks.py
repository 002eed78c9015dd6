"""Every known way to collect reward without reasoning earns little, even with the right answer."""

from __future__ import annotations

import pytest

TRUTH = {
    "steps": [
        "The farm sells 14 * 6 = 84 melons.",
        "A quarter spoils, which is 84 / 4 = 21 melons.",
        "So 84 - 21 = 63 melons are paid for.",
        "At 3 dollars each the farm takes 63 * 3 = 189 dollars.",
        "After 89 dollars of costs it keeps 189 - 89 = 100 dollars.",
    ],
    "answer": 100,
}
LINES = ["14*6=84", "84/4=21", "84-21=63", "63*3=189", "189-89=100"]
QUESTION = (
    "A farm picks 14 crates of 6 melons. A quarter of the melons spoils. The rest is sold for 3 "
    "dollars each. The costs are 89 dollars. How much does the farm keep?"
)
LITTLE = 0.35


def solution(lines: list[str], answer: object = 100) -> str:
    return "\n".join([*lines, f"The answer is {answer}."])


def test_the_honest_solution_scores_one(judge):
    assert judge(solution(LINES), TRUTH).score == pytest.approx(1.0)


def test_right_steps_with_a_wrong_answer_stay_far_below_the_pass_mark(judge):
    verdict = judge(solution(LINES, 101), TRUTH)
    assert verdict.score <= 0.1
    assert verdict.failure.value == "wrong_answer"


def test_a_wrong_answer_never_earns_more_than_a_right_one(judge):
    best_wrong = judge(solution(LINES, 101), TRUTH).score
    worst_right = judge(solution([]), TRUTH).score
    assert best_wrong <= worst_right + 1e-9


@pytest.mark.parametrize("word", ["step", "melon", "84", "So", "1"])
def test_a_hundred_junk_steps_earn_little(judge, word):
    lines = [f"{number}. {word}" for number in range(1, 101)]
    assert judge(solution(lines), TRUTH).score < 0.15


@pytest.mark.parametrize("mark", ["Step {}: ", "{}. ", "第{}步：", "- "])
def test_steps_are_never_paid_for_being_many(judge, mark):
    scores = [
        judge(solution([mark.format(n) + "go on" for n in range(1, count + 1)]), TRUTH).score
        for count in (2, 5, 20, 100)
    ]
    assert scores == sorted(scores, reverse=True)
    assert max(scores) <= 0.1


def test_titles_of_the_reference_without_its_numbers_earn_little(judge):
    titles = ["The farm sells melons.", "A quarter spoils.", "So melons are paid for.",
              "The farm takes dollars.", "After costs it keeps dollars."]  # fmt: skip
    assert judge(solution(titles), TRUTH).score <= 0.1


def test_titles_of_the_reference_with_other_numbers_earn_little(judge):
    steps = [line.replace("=", "= 1").replace("/", "*") for line in TRUTH["steps"]]
    assert judge(solution(steps), TRUTH).score <= 0.1


def test_one_giant_step_earns_little(judge):
    assert judge(solution([", ".join(LINES)]), TRUTH).score < LITTLE
    assert judge(solution([" and ".join(TRUTH["steps"]).replace(".", "")]), TRUTH).score < LITTLE


def test_a_copied_question_earns_little(judge):
    assert judge(solution([QUESTION]), TRUTH).score <= 0.1
    assert judge(solution([QUESTION] * 20), TRUTH).score <= 0.1


def test_steps_in_reverse_order_earn_little(judge):
    assert judge(solution(LINES[::-1]), TRUTH).score < LITTLE


def test_one_right_step_many_times_earns_little(judge):
    assert judge(solution(LINES[:1] * 50), TRUTH).score < 0.15


def test_a_result_that_comes_out_of_itself_earns_little(judge):
    lines = [f"{number} + 0 = {number}" for number in (84, 21, 63, 189, 100)]
    assert judge(solution(lines), TRUTH).score <= 0.1


def test_spraying_many_equations_earns_little(judge):
    lines = [f"{a} * {b} = {a * b}" for a in range(1, 15) for b in range(1, 15)]
    assert judge(solution(lines), TRUTH).score < 0.15


def test_padding_between_right_steps_costs(judge):
    padded = [line for step in LINES for line in (step, "Let us think about that.")]
    assert judge(solution(padded), TRUTH).score < judge(solution(LINES), TRUTH).score - 0.2


def test_a_wrong_line_costs_its_step_whatever_the_words_say(judge):
    wrong = [*TRUTH["steps"][:2], "So 84 - 21 = 73 melons are paid for.", *TRUTH["steps"][3:]]
    verdict = judge(solution(wrong), TRUTH)
    assert verdict.diagnostics["wrong_lines"] == 1
    assert verdict.diagnostics["matched"] == 4
    assert verdict.score == pytest.approx(0.1 + 0.9 * 0.8)


def test_a_wrong_line_beside_a_right_one_spoils_the_step(judge):
    lines = [f"{line} and 2 + 2 = 5" for line in LINES]
    assert judge(solution(lines), TRUTH).score <= 0.1


def test_answers_claimed_one_after_the_other_are_one_answer(judge):
    lines = [*LINES, *(f"The answer is {number}." for number in range(90, 120))]
    assert judge("\n".join(lines), TRUTH).diagnostics["answer"] == "wrong"
