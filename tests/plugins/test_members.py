"""Members of a verifier that asks others: found, checked, written out, and given their part."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from rlvr_core.api import DataError, Family, RlvrError
from rlvr_core.config.load import load_stack
from rlvr_core.config.models import DataSource
from rlvr_core.data.load import load_splits
from rlvr_core.plugins.members import ground_truth_model, shares
from rlvr_core.plugins.plan import plan_by_stage, resolved_yaml
from rlvr_core.plugins.resolve import resolve_plugin, resolve_stack

pytest.importorskip("torch", reason="core's default loss needs it")

JUDGES = """
from rlvr_core.api import RowVerifier, Strict
from pydantic import BaseModel, ConfigDict

class Judge(RowVerifier):
    api_version = "1.0"
    class GroundTruth(Strict):
        steps: list[str]
    class Config(Strict):
        tolerance: float = 0.5
    def verify_row(self, row):
        return self.judge(1.0)

class Open(Judge):
    api_version = "1.0"
    class GroundTruth(BaseModel):
        model_config = ConfigDict(extra="allow")
"""
COMBINE = {"combine": {"of": ["exact-match", "judge"], "rule": "all"}}


@pytest.fixture(autouse=True)
def _installed(make_distribution):
    make_distribution(JUDGES, plugins={"judge": "Judge", "open": "Open"})


def resolved(write_stack, *verifiers):
    return resolve_stack(load_stack(write_stack(list(verifiers))))


def reference(*members, **settings):
    config = {"of": list(members), "rule": "all", **settings}
    return resolve_plugin(Family.VERIFIERS, "combine", config)


def test_members_stand_in_the_resolved_stack_with_every_default(write_stack, tmp_path):
    stack = resolved(write_stack, {"combine": {"of": ["exact-match", "judge"], "rule": "any"}})
    (entry,) = stack.stack.verifiers

    assert entry.config["of"][1] == {"judge": {"tolerance": 0.5}}
    assert entry.config["of"][0]["exact-match"]["extract"] == "whole"
    again = tmp_path / "again.yaml"
    again.write_text(resolved_yaml(stack))
    assert resolve_stack(load_stack(again)).stack == stack.stack


def test_the_plan_names_the_members(write_stack):
    stages = plan_by_stage(resolved(write_stack, COMBINE))
    (planned,) = next(stage for stage in stages if stage.hook == "rlvr_verify").plugins

    assert planned.members[1] == "judge (rlvr-plugin-made 0.1.0)"


def test_core_words_of_a_member_stay_with_it(write_stack):
    member = {"slow": {"plugin": "judge", "timeout_s": 3, "tolerance": 0.1}}
    stack = resolved(write_stack, {"combine": {"of": ["exact-match", member], "rule": "all"}})
    (loaded,) = stack.verifiers.values()

    assert [one.ref.name for one in loaded.ref.members] == ["combine/exact-match", "combine/slow"]
    assert loaded.ref.members[1].entry.timeout_s == 3
    assert loaded.ref.config["of"][1] == {
        "slow": {"plugin": "judge", "timeout_s": 3.0, "tolerance": 0.1}
    }


@pytest.mark.parametrize(
    ("member", "code", "words"),
    [
        ("jugde", "RLVR-S103", "of[1]: no plugin named 'jugde'"),
        ({"judge": {"tolerence": 1}}, "RLVR-S102", "of[1]: tolerence: unknown key"),
        ({"judge": {"tolerance": "x"}}, "RLVR-S102", "of[1]: tolerance: must be a number"),
        ({"judge": {"weight": 2}}, "RLVR-S102", "of[1]: weight: only has a meaning"),
        ({"judge": {"concurrency": 2}}, "RLVR-S104", "of[1]: concurrency: 'judge' does not wait"),
        ("control-random", "RLVR-S104", "of[1]: 'control-random' does not judge"),
        ("uniform", "RLVR-S103", "belongs under 'samplers'"),
        ("exact-match", "RLVR-S102", "of[1]: the name 'exact-match' stands twice"),
        ({"a": {}, "b": {}}, "RLVR-S102", "of[1]: must hold exactly one plugin name"),
        ({"judge": 3}, "RLVR-S102", "of[1]: the settings of 'judge' must be a mapping"),
    ],
)
def test_what_is_wrong_with_a_member_is_said_with_its_place(write_stack, member, code, words):
    for attempt in (
        lambda: resolved(write_stack, {"combine": {"of": ["exact-match", member], "rule": "all"}}),
        lambda: reference("exact-match", member),
    ):
        with pytest.raises(RlvrError) as caught:
            attempt()
        assert caught.value.code == code
        assert words in str(caught.value)


def test_a_bare_name_that_has_other_settings_in_the_stack_is_refused(write_stack):
    own = {"judge": {"tolerance": 0.25}}
    with pytest.raises(RlvrError) as caught:
        resolved(write_stack, own, COMBINE)
    assert caught.value.code == "RLVR-S104"
    assert "of[1]: 'judge' has settings of its own in the stack" in str(caught.value)
    assert "stack.yaml:" in str(caught.value)

    written = {"combine": {"of": ["exact-match", own], "rule": "all"}}
    assert set(resolved(write_stack, own, written).verifiers) == {"judge", "combine"}
    assert set(resolved(write_stack, "judge", COMBINE).verifiers) == {"judge", "combine"}


def test_each_member_gets_its_own_part_and_what_it_knows():
    ref = reference("exact-match", "judge", "open")
    truth = {"answer": "4", "steps": ["a"], "judge": {"steps": ["b"]}, "open": {"depth": 1}}

    assert shares(ref, truth) == {
        "exact-match": {"answer": "4"},
        "judge": {"steps": ["b"]},
        "open": {"answer": "4", "steps": ["a"], "depth": 1},
    }


def test_the_other_spelling_of_answer_is_read_as_for_one_verifier():
    ref = reference("exact-match", "judge")

    assert shares(ref, {"expected_answer": "4", "steps": []})["exact-match"] == {"answer": "4"}
    refused = shares(ref, {"expected_answer": "4", "answer": "5"})["exact-match"]
    assert refused == {"expected_answer": "4", "answer": "5"}


def test_a_key_that_nobody_knows_is_refused_by_each():
    ref = reference("exact-match", "judge")
    truth = {"answer": "4", "steps": [], "anwser": "5"}

    assert all("anwser" in part for part in shares(ref, truth).values())
    with pytest.raises(ValidationError, match="anwser"):
        ground_truth_model(ref).model_validate(truth)


def test_bad_rows_are_reported_per_member_with_their_lines(write_stack, tmp_path):
    stack = resolved(write_stack, COMBINE)
    (loaded,) = stack.verifiers.values()
    truths = [
        {"answer": "4", "steps": ["a"]},
        {"answer": "4"},
        {"answer": 4, "judge": {"steps": "a"}},
        {"answer": "4", "steps": ["a"], "anwser": "5"},
        {"answer": "4", "judge": "a"},
    ]
    rows = [{"prompt": "p", "verifier": {"type": "combine", **truth}} for truth in truths]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    with pytest.raises(DataError) as caught:
        load_splits(
            {"train": DataSource(path="train.jsonl")},
            tmp_path,
            {"combine": ground_truth_model(loaded.ref)},
        )

    text = caught.value.cause
    assert "train.jsonl:1:" not in text
    assert "train.jsonl:2, :5: verifier.judge.steps is required, and missing" in text
    assert "train.jsonl:3: verifier.exact-match.answer" in text
    assert "train.jsonl:3: verifier.judge.steps must be a list" in text
    assert "train.jsonl:4: verifier.exact-match.anwser unknown key; did you mean 'answer'?" in text
    assert "train.jsonl:4: verifier.judge.anwser unknown key" in text
    assert "train.jsonl:5: verifier.judge" in text
