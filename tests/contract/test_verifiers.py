"""The contract carries the owner's verifiers: resources, truths, environment, failures, batches."""

import pytest

from rlvr_core.api import DataError, FinishReason, Stage, Status
from rlvr_core.config.models import PluginEntry, VerificationSection
from rlvr_core.plugins.resolve import Family, resolve_plugin
from rlvr_core.train.prepare import prepare
from rlvr_core.verification.engine import VerifyEngine
from rlvr_core.verification.rows import RawRow


@pytest.fixture
def judge():
    """Return a function that judges (completion, ground truth) pairs in a worker."""

    def run(plugin, pairs, config=None, finish_reason=FinishReason.STOP):
        ref = resolve_plugin(Family.VERIFIERS, plugin, config or {})
        entry = PluginEntry(name=plugin, plugin=plugin, config={})
        settings = VerificationSection(workers=1, max_error_rate=1.0)
        rows = [
            RawRow(
                id=str(number),
                prompt="",
                completion=completion,
                ground_truth=truth,
                metadata={},
                finish_reason=finish_reason,
            )
            for number, (completion, truth) in enumerate(pairs)
        ]
        with VerifyEngine([(ref, entry)], settings) as engine:
            return engine.judge(plugin, rows)

    return run


def shown(verdicts):
    return [(v.score, v.failure and v.failure.value, v.stage and v.stage.value) for v in verdicts]


def test_math_climbs_a_ladder_and_says_which_rung_decided(judge):
    truth = {"answer": "1/2"}
    completions = [r"\boxed{1/2}", r"so it is 0.5", r"\boxed{0.501}", "none", r"\boxed{1/0}"]

    verdicts = judge("tiny-math-sympy", [(text, truth) for text in completions])
    lenient = judge("tiny-math-sympy", [(r"\boxed{0.501}", truth)], {"tolerance": 0.01})
    cut = judge("tiny-math-sympy", [("none", truth)], finish_reason=FinishReason.LENGTH)

    assert shown(verdicts) == [
        (1.0, None, "compare"),
        (1.0, None, "compare"),
        (0.0, "wrong_answer", "compare"),
        (0.0, "no_answer", "extract"),
        (0.0, "malformed", "parse"),
    ]
    assert lenient[0].status is Status.PASSED
    assert cut[0].failure == "truncated"


def test_an_unusable_truth_abstains_and_is_never_a_zero(judge):
    [verdict] = judge("tiny-math-sympy", [("1", {"answer": "no number"})])

    assert (verdict.status, verdict.score) == (Status.ABSTAINED, None)
    assert verdict.failure == "bad_ground_truth"


def test_code_runs_each_test_and_pays_the_pass_rate(judge, monkeypatch):
    monkeypatch.setenv("SANDBOX_HOST", "here")
    tests = {"tests": [{"stdin": "2", "stdout": "4"}, {"stdin": "3", "stdout": "9"}]}
    programs = [
        "print(int(input()) ** 2)",
        "print(int(input()) * 2)",
        "raise SystemExit(1)",
        "while True: pass",
    ]

    verdicts = judge("tiny-code-docker", [(text, tests) for text in programs], {"limit_s": 0.5})

    assert shown(verdicts) == [
        (1.0, None, "execute"),
        (0.5, "wrong_answer", "execute"),
        (0.0, "runtime_error", "execute"),
        (0.0, "time_limit", "execute"),
    ]
    assert [v.status for v in verdicts] == [Status.PASSED, *[Status.FAILED] * 3]


def test_code_without_its_backend_says_nothing_about_the_completion(judge, monkeypatch):
    monkeypatch.delenv("SANDBOX_HOST", raising=False)
    tests = {"tests": [{"stdin": "", "stdout": ""}]}

    [verdict] = judge("tiny-code-docker", [("pass", tests)])

    assert (verdict.status, verdict.failure) == (Status.ERROR, "backend_unavailable")


def test_ifeval_pays_the_share_of_instructions_that_hold(judge):
    truth = {
        "instructions": [
            {"kind": "contains", "pattern": "yes"},
            {"kind": "words", "at_least": 3},
        ]
    }

    verdicts = judge("tiny-ifeval", [("yes it is", truth), ("yes", truth), ("no", truth)])

    assert [v.score for v in verdicts] == [1.0, 0.5, 0.0]
    assert verdicts[1].diagnostics["held"] == [True, False]
    assert verdicts[1].failure == "constraint"


def test_an_unknown_instruction_is_refused_with_the_data(write_stack):
    row = {
        "prompt": "p",
        "verifier": {"type": "tiny-ifeval", "instructions": [{"kind": "rhymes"}]},
    }

    with pytest.raises(DataError, match=r"train\.jsonl:1.*instructions"):
        prepare(write_stack(train_rows=[row]))


def test_f1_judges_a_whole_batch_and_has_a_pass_mark_of_its_own(judge):
    truth = {"items": ["a", "b", "c", "d", "e"]}

    verdicts = judge("tiny-f1-extraction", [("a b c d", truth), ("a b x y", truth), ("", truth)])

    assert [v.score for v in verdicts] == [pytest.approx(8 / 9), pytest.approx(4 / 9), 0.0]
    assert [v.status for v in verdicts] == [Status.PASSED, Status.FAILED, Status.FAILED]
    assert verdicts[2].failure == "no_answer"
    assert verdicts[0].stage is Stage.COMPARE
