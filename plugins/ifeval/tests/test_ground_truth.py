"""What a data row may say, and what is refused before a run."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError
from rlvr_plugin_ifeval import IFEval

from rlvr_core.cli.main import main
from rlvr_core.config.wording import problems_of

WORDS = "length_constraints:number_words"


def one(kind: str, **arguments: object) -> dict:
    return {"constraints": [{"type": kind, "kwargs": arguments}]}


@pytest.mark.parametrize(
    "truth",
    [
        one("no_such:constraint"),
        one("punctuation:no_commas"),
        one(WORDS),
        one(WORDS, num_words=5),
        one(WORDS, relation="at least"),
        one(WORDS, relation="at least", num_words=None),
        one(WORDS, relation="at most", num_words=5),
        one(WORDS, relation="at least", num_words=0),
        one(WORDS, relation="at least", num_words=-1),
        one(WORDS, relation="at least", num_words="5"),
        one(WORDS, relation="at least", num_words=True),
        one(WORDS, relation="at least", num_words=5, more=1),
        one("punctuation:no_comma", num_words=5),
        one("keywords:existence", keywords=[]),
        one("keywords:existence", keywords=["cat", " "]),
        one("keywords:existence", keywords="cat"),
        one("keywords:forbidden_words"),
        one("keywords:letter_frequency", letter="ab", let_frequency=1, let_relation="at least"),
        one("keywords:letter_frequency", letter="", let_frequency=1, let_relation="at least"),
        one("language:response_language", language="klingon"),
        one("language:response_language"),
        one("startend:end_checker", end_phrase=""),
        one("combination:repeat_prompt"),
        one(
            "length_constraints:nth_paragraph_first_word",
            num_paragraphs=2,
            nth_paragraph=3,
            first_word="so",
        ),
        {"constraints": []},
        {"constraints": [{"kwargs": {}}]},
        {"constraints": [{"type": "punctuation:no_comma"}] * 101},
        {**one("punctuation:no_comma"), "language": "fr"},
        {**one("punctuation:no_comma"), "prompt": "x"},
        {"instruction_id_list": ["punctuation:no_comma"], "kwargs": []},
        {"instruction_id_list": ["punctuation:no_comma"]},
        {"instruction_id_list": ["no_such:constraint"], "kwargs": [{}]},
        {},
    ],
)
def test_a_ground_truth_that_cannot_be_judged_is_refused(truth):
    with pytest.raises(ValidationError):
        IFEval.GroundTruth.model_validate(truth)


def test_all_that_is_wrong_is_said_at_once():
    truth = {"constraints": [{"type": "no_such:kind"}, {"type": WORDS, "kwargs": {}}]}
    with pytest.raises(ValidationError) as caught:
        IFEval.GroundTruth.model_validate(truth)
    message = str(caught.value)
    for said in ("no_such:kind", "num_words", "relation"):
        assert said in message


def test_null_arguments_of_published_rows_count_as_missing():
    truth = IFEval.GroundTruth.model_validate(
        {
            "instruction_id_list": ["punctuation:no_comma", "startend:end_checker"],
            "kwargs": [{"num_words": None}, {"end_phrase": "Bye.", "letter": None}],
        }
    )
    assert [found.type for found in truth.constraints] == [
        "punctuation:no_comma",
        "startend:end_checker",
    ]
    assert truth.constraints[1].kwargs.end_phrase == "Bye."


def test_arguments_may_be_left_out_where_none_are_needed():
    truth = IFEval.GroundTruth.model_validate({"constraints": [{"type": "startend:quotation"}]})
    assert IFEval.GroundTruth.model_validate(truth.model_dump()) == truth


@pytest.mark.parametrize("config", [{"mode": "lax"}, {"score": "mean"}, {"loose": 3}, {"x": 1}])
def test_a_wrong_config_is_refused(config):
    with pytest.raises(ValidationError):
        IFEval.Config(**config)


def test_every_config_field_is_described():
    assert all(field.description for field in IFEval.Config.model_fields.values())


def test_an_unknown_kind_is_answered_with_the_one_that_was_meant():
    with pytest.raises(ValidationError) as caught:
        IFEval.GroundTruth.model_validate(one("keywords:existance", keywords=["a"]))
    [problem] = problems_of(caught.value, IFEval.GroundTruth)
    assert problem.message == (
        "there is no kind 'keywords:existance'; did you mean 'keywords:existence'?"
    )


def test_a_verdict_says_which_kind_was_meant(tmp_path, capsys):
    row = {"id": "a", "prompt": "p", "completion": "c", "ground_truth": one("startend:qotation")}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    with pytest.raises(SystemExit):
        main(["verify", "ifeval", str(tmp_path / "rows.jsonl"), "--json"])
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["failure"] == "bad_ground_truth"
    assert verdict["diagnostics"]["message"] == (
        "constraints.0: there is no kind 'startend:qotation'; did you mean 'startend:quotation'?"
    )
