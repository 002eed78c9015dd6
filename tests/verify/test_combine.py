"""`combine`: its rules, and members that are judged by workers of their own."""

from __future__ import annotations

import itertools
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import rlvr_core
from rlvr_core.api import FailureCategory, Stage, Status, Verdict, VerifyBatch, VerifyRow
from rlvr_core.builtin.combine import Combine, CombineConfig
from rlvr_core.config.models import PluginEntry, VerificationSection
from rlvr_core.plugins.resolve import Family, resolve_plugin
from rlvr_core.verification.contract import Contract
from rlvr_core.verification.engine import VerifyEngine
from rlvr_core.verification.rows import RawRow

ENTRY_POINTS = """\
[rlvr.verifiers]
fixture-plain = fixture_verifiers:Plain
fixture-tricky = fixture_verifiers:Tricky
fixture-secretive = fixture_verifiers:Secretive
"""

PASSED = Verdict(status=Status.PASSED, score=1.0)
HALF = Verdict(status=Status.FAILED, score=0.5, failure=FailureCategory.CONSTRAINT)
FAILED = Verdict(
    status=Status.FAILED, score=0.0, failure=FailureCategory.NO_ANSWER, stage=Stage.EXTRACT
)
ERROR = Verdict(status=Status.ERROR, failure=FailureCategory.BACKEND_UNAVAILABLE)
ABSTAINED = Verdict(status=Status.ABSTAINED, failure=FailureCategory.NOT_APPLICABLE)
NO_TRUTH = Verdict(status=Status.ABSTAINED, failure=FailureCategory.BAD_GROUND_TRUTH)
ALL = [PASSED, HALF, FAILED, ERROR, ABSTAINED, NO_TRUTH]
SETTINGS = {
    "all": {},
    "any": {},
    "mean": {"pass_mark": 0.75},
    "weighted": {"weights": {"a": 3.0, "b": 1.0, "c": 1.0}},
    "veto": {"veto": ["a"]},
}


def combined(rule: str, *verdicts: Verdict, **settings) -> Verdict:
    names = "abc"[: len(verdicts)]
    settings = settings or SETTINGS[rule]
    plugin = Combine(CombineConfig(of=list(names), rule=rule, **settings))
    row = VerifyRow(
        id="r", prompt="", completion="", ground_truth=dict(zip(names, verdicts, strict=True))
    )
    (verdict,) = plugin.rlvr_verify(VerifyBatch(rows=[row]))
    Contract(plugin).encode(verdict, 0.0)
    return verdict


@pytest.mark.parametrize(
    ("rule", "verdicts", "status", "score"),
    [
        ("all", (PASSED, PASSED), "passed", 1),
        ("all", (PASSED, HALF), "failed", 0),
        ("all", (PASSED, ERROR), "passed", 1),
        ("all", (FAILED, ERROR), "failed", 0),
        ("any", (FAILED, PASSED), "passed", 1),
        ("any", (FAILED, HALF), "failed", 0),
        ("any", (ERROR, PASSED), "passed", 1),
        ("mean", (PASSED, HALF), "passed", 0.75),
        ("mean", (HALF, HALF), "failed", 0.5),
        ("mean", (ABSTAINED, HALF), "failed", 0.5),
        ("weighted", (PASSED, FAILED, FAILED), "failed", 0.6),
        ("weighted", (FAILED, PASSED, FAILED), "failed", 0.2),
        ("weighted", (ERROR, PASSED, FAILED), "failed", 0.5),
        ("weighted", (PASSED, PASSED, PASSED), "passed", 1),
        ("veto", (PASSED, PASSED, HALF), "failed", 0.75),
        ("veto", (PASSED, PASSED, PASSED), "passed", 1),
        ("veto", (FAILED, PASSED, PASSED), "failed", 0),
        ("veto", (HALF, PASSED, PASSED), "failed", 0),
        ("veto", (ABSTAINED, PASSED, PASSED), "passed", 1),
        ("veto", (PASSED, ERROR, PASSED), "passed", 1),
        ("veto", (FAILED, ERROR, ABSTAINED), "failed", 0),
    ],
)
def test_votes_become_a_score(rule, verdicts, status, score):
    found = combined(rule, *verdicts)

    assert (found.status.value, found.score) == (status, pytest.approx(score))


@pytest.mark.parametrize(
    ("rule", "verdicts", "status", "failure"),
    [
        ("all", (ERROR, ERROR), "error", "backend_unavailable"),
        ("any", (ABSTAINED, ERROR), "error", "backend_unavailable"),
        ("mean", (ABSTAINED, NO_TRUTH), "abstained", "not_applicable"),
        ("weighted", (NO_TRUTH, NO_TRUTH, NO_TRUTH), "abstained", "bad_ground_truth"),
        ("veto", (PASSED, ERROR, ABSTAINED), "error", "backend_unavailable"),
        ("veto", (PASSED, ABSTAINED, ABSTAINED), "abstained", "not_applicable"),
    ],
)
def test_without_a_vote_there_is_no_judgement(rule, verdicts, status, failure):
    found = combined(rule, *verdicts)

    assert (found.status.value, found.score, found.failure.value) == (status, None, failure)


@pytest.mark.parametrize("others", [(PASSED, PASSED), (FAILED, FAILED)], ids=["passed", "failed"])
def test_a_veto_that_cannot_be_asked_masks_good_and_bad_alike(others):
    assert combined("veto", ERROR, *others).status is Status.ERROR
    assert combined("veto", NO_TRUTH, *others).failure is FailureCategory.BAD_GROUND_TRUTH


def test_the_first_that_failed_gives_its_reason_and_a_veto_comes_first():
    assert combined("all", PASSED, HALF, FAILED).failure is FailureCategory.CONSTRAINT
    found = combined("veto", HALF, FAILED, veto=["b"])
    assert (found.failure, found.stage) == (FailureCategory.NO_ANSWER, Stage.EXTRACT)


def test_diagnostics_keep_what_every_member_said():
    broken = Verdict(
        status=Status.ERROR,
        failure=FailureCategory.VERIFIER_CRASH,
        diagnostics={"message": "died \0 of " + "\ud800" * 5000},
    )
    found = combined("all", PASSED, FAILED, broken).diagnostics["members"]

    assert found["a"] == {"status": "passed", "score": 1.0}
    assert found["b"] == {"status": "failed", "score": 0.0, "failure": "no_answer"}
    assert found["c"]["message"].startswith("died \N{REPLACEMENT CHARACTER} of ")
    assert len(found["c"]["message"]) == 60


def oracle(rule: str, verdicts: tuple[Verdict, ...]) -> tuple[str, float | None]:
    """The rules once more, as plainly as can be."""
    if rule == "veto":
        guard, *others = verdicts
        if guard.status is Status.ERROR:
            return "error", None
        if guard is NO_TRUTH:
            return "abstained", None
        if guard.status is Status.FAILED:
            return "failed", 0.0
        verdicts = tuple(others)
    weights = [3.0, 1.0, 1.0] if rule == "weighted" else [1.0] * 3
    votes = [(v, w) for v, w in zip(verdicts, weights, strict=False) if v.score is not None]
    if not votes:
        is_error = any(v.status is Status.ERROR for v in verdicts)
        return ("error" if is_error else "abstained"), None
    passed = [v.status is Status.PASSED for v, _ in votes]
    score = {
        "all": lambda: float(min(passed)),
        "any": lambda: float(max(passed)),
    }.get(rule, lambda: statistics.fmean([v.score for v, _ in votes], [w for _, w in votes]))()
    mark = 0.75 if rule == "mean" else 1.0
    return ("passed" if score >= mark else "failed"), score


@pytest.mark.parametrize("rule", SETTINGS)
def test_every_combination_of_three_verdicts_agrees_with_the_oracle(rule):
    for verdicts in itertools.product(ALL, repeat=3):
        found = combined(rule, *verdicts)
        status, score = oracle(rule, verdicts)

        assert found.status.value == status, verdicts
        assert found.score == (None if score is None else pytest.approx(score)), verdicts


@given(st.sampled_from(sorted(SETTINGS)), st.permutations(ALL).map(lambda found: found[:3]))
def test_the_order_of_members_decides_no_score(rule, verdicts):
    settings = {} if rule in ("all", "any") else {"pass_mark": 0.5}
    if rule not in ("all", "any", "mean"):
        return
    forwards, backwards = (
        combined(rule, *order, **settings) if settings else combined(rule, *order)
        for order in (verdicts, verdicts[::-1])
    )
    assert (forwards.status, forwards.score) == (backwards.status, backwards.score)


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"of": ["a"], "rule": "all"}, "at least 2"),
        ({"of": ["a", "b"], "rule": "most"}, "'all', 'any'"),
        ({"of": ["a", "b"], "rule": "weighted"}, "weights go with"),
        ({"of": ["a", "b"], "rule": "all", "weights": {"a": 1}}, "weights go with"),
        ({"of": ["a", "b"], "rule": "weighted", "weights": {"a": 1}}, "each member"),
        ({"of": ["a", "b"], "rule": "weighted", "weights": {"a": 1, "b": 0}}, "above 0"),
        ({"of": ["a", "b"], "rule": "veto"}, "veto goes with"),
        ({"of": ["a", "b"], "rule": "mean", "veto": ["a"]}, "veto goes with"),
        ({"of": ["a", "b"], "rule": "veto", "veto": ["c"]}, "some of the members"),
        ({"of": ["a", "b"], "rule": "veto", "veto": ["a", "b"]}, "leave at least one"),
        ({"of": ["a", "b"], "rule": "any", "pass_mark": 0.5}, "pass mark"),
        ({"of": ["a" * 65, "b"], "rule": "any"}, "64 characters"),
    ],
)
def test_settings_that_do_not_fit_the_rule_are_refused(settings, fault):
    with pytest.raises(ValidationError, match=fault):
        CombineConfig(**settings)


@pytest.fixture(autouse=True)
def _installed(tmp_path, monkeypatch):
    folder = tmp_path / "site" / "rlvr_plugin_fixtures-0.1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: rlvr-plugin-fixtures\nVersion: 0.1.0\n"
    )
    (folder / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(folder.parent))


def test_members_have_workers_deadlines_and_scales_of_their_own():
    config = {
        "of": ["fixture-plain", {"fixture-tricky": {"timeout_s": 0.4}}],
        "rule": "mean",
        "pass_mark": 0.5,
    }
    texts = ["yes", "no", "sleep", "exit 3"]
    rows = [{"completion": text, "ground_truth": {"answer": "yes"}} for text in texts]

    found = rlvr_core.verify("combine", rows, config=config, workers=2)

    # Tricky scores from -1 to 1: a 0 of its is half of its range.
    assert [one.score for one in found] == [1.0, 0.25, 0.0, 0.0]
    assert [one.status.value for one in found] == ["passed", "failed", "failed", "failed"]
    said = [one.diagnostics["members"]["fixture-tricky"] for one in found]
    assert [one["status"] for one in said] == ["passed", "failed", "error", "error"]
    assert [one.get("failure") for one in said[2:]] == ["verifier_timeout", "verifier_crash"]
    assert {one.verifier for one in found} == {"combine"}
    assert found[0].version.startswith(f"{rlvr_core.__version__}+")


def engine_of(config: dict, **entry) -> VerifyEngine:
    ref = resolve_plugin(Family.VERIFIERS, "combine", config, "both")
    settings = VerificationSection(workers=1, max_error_rate=1.0)
    described = {"plugin": "combine", **entry, **ref.config}
    return VerifyEngine([(ref, PluginEntry.model_validate({"both": described}))], settings)


def test_each_environment_reaches_its_own_member_and_health_counts_all():
    rows = [RawRow(id=str(n), completion="yes", ground_truth={"answer": "yes"}) for n in range(3)]
    with engine_of({"of": ["fixture-plain", "fixture-secretive"], "rule": "all"}) as engine:
        environments = {name: p.environment for p in engine.plans for name in p.instances}
        engine.submit("both", rows[0])
        with pytest.raises(ValueError, match="waits for"):
            engine.submit("both", rows[0])
        verdicts = engine.judge("both", rows)
        engine.judge("both", rows)
        health = engine.health()

    assert environments["both/fixture-plain"] == ()
    assert environments["both/fixture-secretive"] != ()
    assert len(verdicts) == 3
    counted = {name: one.verdicts for name, one in health.items()}
    assert counted == {"both": 6, "both/fixture-plain": 6, "both/fixture-secretive": 6}


def test_deadlines_of_the_entry_hold_for_members_without_their_own():
    config = {"of": ["fixture-plain", {"fixture-tricky": {"timeout_s": 7}}], "rule": "all"}
    engine = engine_of(config, timeout_s=3, on_timeout="fail")
    instances = {n: one for pool in engine.plans for n, one in pool.instances.items()}
    engine.close()

    assert instances["both/fixture-plain"].timeout_s == 3
    assert instances["both/fixture-tricky"].timeout_s == 7
    assert all(one.fails_on_timeout for one in instances.values())


def test_one_that_asks_may_be_asked_itself():
    inner = {"either": {"plugin": "combine", "of": ["fixture-plain", "exact-match"], "rule": "any"}}
    config = {"of": [inner, "fixture-tricky"], "rule": "all"}
    truth = {"answer": "yes", "either": {"fixture-plain": {"answer": "also"}}}
    rows = [{"completion": text, "ground_truth": truth} for text in ("yes", "also", "no")]

    found = rlvr_core.verify("combine", rows, config=config, workers=1)

    members = [one.diagnostics["members"] for one in found]
    assert [one["either"]["status"] for one in members] == ["passed", "passed", "failed"]
    assert [one.status.value for one in found] == ["passed", "failed", "failed"]


def test_a_row_that_one_member_cannot_use_is_said_to_be_that_members():
    config = {"of": ["fixture-plain", "exact-match"], "rule": "all"}
    truth = {"fixture-plain": {"answer": "yes"}, "exact-match": {"answer": ""}}

    (found,) = rlvr_core.verify(
        "combine", [{"completion": "yes", "ground_truth": truth}], config=config
    )

    said = found.diagnostics["members"]
    assert found.status is Status.PASSED
    assert said["fixture-plain"]["status"] == "passed"
    assert said["exact-match"]["failure"] == "bad_ground_truth"
    assert "must not be empty" in said["exact-match"]["message"]
