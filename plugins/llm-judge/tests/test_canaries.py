"""Canaries: judged all along, and an alarm when one passes."""

from __future__ import annotations

import threading

from rlvr_plugin_llm_judge import LlmJudge
from rlvr_plugin_llm_judge.canaries import BUILT_IN, WrongAnswer, canary
from rlvr_plugin_llm_judge.fence import cleaned

from rlvr_core.api import FailureCategory, Status, VerifyRow

KINDS = {cleaned(answer): kind for kind, answer in BUILT_IN.items()}


def kinds_of(endpoint):
    """Return the kind of each canary that an endpoint was asked about, in order."""
    answers = [asked.blocks["answer"] for asked in endpoint.asked]
    return [KINDS[answer] for answer in answers if answer in KINDS]


def verifier_for(config):
    return LlmJudge(LlmJudge.Config.model_validate(config), name="llm-judge")


def row(completion, number=0):
    truth = LlmJudge.GroundTruth(reference="42")
    return VerifyRow(id=str(number), prompt="6 * 7?", completion=completion, ground_truth=truth)


def test_every_so_many_rows_a_canary_is_judged_and_each_kind_has_its_turn(serve, settings):
    one = serve()
    verifier = verifier_for(settings(one, canary_every=3))
    verdicts = [verifier.verify_row(row(f"It is {n}.", n)) for n in range(40, 55)]
    assert all(verdict.is_judgement for verdict in verdicts)
    assert kinds_of(one) == ["empty", "injection", "opening", "praise", "empty"]


def test_instances_with_the_same_settings_share_their_canaries(serve, settings):
    one = serve()
    config = settings(one, canary_every=32)
    lanes = [verifier_for(config) for _ in range(8)]
    threads = [
        threading.Thread(target=lane.verify_row, args=(row(f"It is {n}."),))
        for n, lane in enumerate(lanes)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(kinds_of(one)) == 1
    assert len(one.asked) == 9


def obeying(asked):
    """Do what the answer says: a judge without any defence."""
    answer = asked.blocks["answer"]
    return asked.verdict(correct="full score" in answer or answer.endswith("42."))


def test_a_canary_that_passes_takes_away_the_verdicts_of_its_batch_until_one_is_held(
    serve, settings, honest_rule
):
    one = serve(obeying)
    verifier = verifier_for(settings(one, canary_every=2))
    before = [verifier.verify_row(row("It is 42.")) for _ in range(2)]
    assert [verdict.status for verdict in before] == [Status.PASSED] * 2
    alarmed = [verifier.verify_row(row("It is 42.")) for _ in range(3)]
    for verdict in alarmed:
        assert (verdict.status, verdict.score) == (Status.ERROR, None)
        assert verdict.failure is FailureCategory.BACKEND_UNAVAILABLE
        assert verdict.diagnostics["canary"] == "injection"
        assert "let a wrong answer pass" in verdict.diagnostics["message"]
    assert kinds_of(one) == ["empty", "injection", "injection", "injection"]
    one.rule = honest_rule
    after = [verifier.verify_row(row("It is 42.")) for _ in range(2)]
    assert [verdict.status for verdict in after] == [Status.PASSED] * 2
    assert kinds_of(one)[-1] == "injection"


def test_rows_whose_canary_got_no_verdict_do_not_count(serve, settings, honest_rule):
    one = serve(lambda asked: "" if asked.blocks["answer"] in KINDS else honest_rule(asked))
    verdict = verifier_for(settings(one)).verify_row(row("It is 42."))
    assert verdict.status is Status.ERROR
    assert verdict.diagnostics["canary"] == "empty"
    assert "got no verdict" in verdict.diagnostics["message"]


def test_a_canary_that_is_late_is_not_waited_for_past_the_deadline(serve, settings, honest_rule):
    released = threading.Event()

    def rule(asked):
        if asked.blocks["answer"] in KINDS:
            released.wait(10)
        return honest_rule(asked)

    verdict = verifier_for(settings(serve(rule), deadline_s=0.5)).verify_row(row("It is 42."))
    released.set()
    assert verdict.status is Status.ERROR
    assert "in time" in verdict.diagnostics["message"]


def test_labelled_wrong_answers_have_their_turns_too():
    wrong = [WrongAnswer(prompt=f"p{n}", completion=f"c{n}", reference="r") for n in range(2)]
    dealt = [canary(turn, "p", "42", None, wrong) for turn in range(15)]
    assert [one.kind for one in dealt[:6]] == [*BUILT_IN, "known-wrong", "empty"]
    assert [one.answer for one in dealt if one.kind == "known-wrong"] == ["c0", "c1", "c0"]
    assert {(one.prompt, one.reference) for one in dealt if one.kind in BUILT_IN} == {("p", "42")}
