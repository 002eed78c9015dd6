"""`rlvr_core.verify` and the command `rlvr verify`, on an installed verifier."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

import rlvr_core
from rlvr_core.adapters.scorer import Scorer
from rlvr_core.api import DataError, FailureCategory, PluginError, StackError, Status
from rlvr_core.cli.verify import verify

ENTRY_POINTS = """\
[rlvr.verifiers]
fixture-plain = fixture_verifiers:Plain
fixture-tricky = fixture_verifiers:Tricky
fixture-unbuildable = fixture_verifiers:Unbuildable
"""
TRUTH = {"answer": "yes"}


@pytest.fixture(autouse=True)
def installed(tmp_path, monkeypatch):
    """Install the fixture verifiers as a distribution of their own."""
    folder = tmp_path / "site" / "rlvr_plugin_fixtures-0.1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: rlvr-plugin-fixtures\nVersion: 0.1.0\n"
    )
    (folder / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(folder.parent))


def given(*completions: str, **more) -> list[dict]:
    return [{"completion": text, "ground_truth": TRUTH, **more} for text in completions]


def test_verdicts_come_in_row_order_and_names_are_matched_loosely():
    verdicts = rlvr_core.verify("Fixture_Plain", given("yes", "no", "yes"), workers=2)
    assert [verdict.score for verdict in verdicts] == [1.0, 0.0, 1.0]
    assert {verdict.verifier for verdict in verdicts} == {"fixture-plain"}
    assert verdicts[0].version.startswith("0.1.0+")


def test_the_subpackage_does_not_hide_the_function():
    import rlvr_core.verification.engine

    assert callable(rlvr_core.verify)


def test_a_row_may_have_settings_of_its_own():
    rows = [
        *given("maybe", config={"answer": "maybe"}),
        *given("maybe"),
        *given("no", config={"answer": "no"}),
        *given("sure"),
    ]
    verdicts = rlvr_core.verify("fixture-plain", rows, config={"answer": "sure"})
    assert [verdict.score for verdict in verdicts] == [1.0, 0.0, 1.0, 1.0]
    assert {verdict.verifier for verdict in verdicts} == {"fixture-plain"}


def test_ids_may_repeat_and_no_rows_is_fine():
    rows = given("yes", "no", id="same") + given("yes", id=7)
    assert [v.score for v in rlvr_core.verify("fixture-plain", rows)] == [1.0, 0.0, 1.0]
    assert rlvr_core.verify("fixture-plain", []) == []


def test_all_unusable_rows_are_reported_at_once():
    rows = [
        {"ground_truth": TRUTH},
        {"completion": 3, "ground_truth": "yes"},
        *given("fine"),
        *given("x", prompt=[{"role": "user"}]),
        *given("x", config={"anwser": 1}),
        "text",
    ]
    with pytest.raises(DataError) as caught:
        rlvr_core.verify("fixture-plain", rows)
    text = str(caught.value)
    assert caught.value.code == "RLVR-D102"
    assert "row 1: completion is missing" in text
    assert "row 2: completion: expected a string, got a number" in text
    assert "row 2: ground_truth: expected an object, got a string" in text
    assert "row 4: prompt" in text
    assert "row 5: config: " in text
    assert "anwser" in text
    assert "row 6: expected an object" in text
    assert "row 3" not in text


def test_errors_are_verdicts_here_and_never_stop_the_rest():
    verdicts = rlvr_core.verify("fixture-tricky", given(*["raise x"] * 20, "yes"))
    assert {verdict.status for verdict in verdicts[:20]} == {Status.ERROR}
    assert verdicts[20].status is Status.PASSED


def test_the_deadline_and_what_follows_it_can_be_chosen():
    (verdict,) = rlvr_core.verify(
        "fixture-tricky", given("sleep"), timeout_s=0.3, on_timeout="fail"
    )
    assert verdict.failure is FailureCategory.RESOURCE_LIMIT


def test_a_misspelt_expectation_is_not_overlooked():
    row = {"completion": "yes", "ground_truth": {"answer": "yes"}, "expcted": 1}
    with pytest.raises(DataError, match="expcted: unknown key; did you mean 'expected'") as caught:
        rlvr_core.verify("fixture-tricky", [row])
    assert caught.value.code == "RLVR-D102"
    del row["expcted"]
    row["source"] = "of somebody"
    [verdict] = rlvr_core.verify("fixture-tricky", [row])
    assert verdict.score == 1.0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"workers": 0}, "workers: must be at least 1, got 0"),
        ({"timeout_s": -1}, "timeout_s: must be greater than 0, got -1"),
        ({"on_timeout": "skip"}, "on_timeout: must be 'mask' or 'fail', got 'skip'"),
    ],
)
def test_arguments_that_are_not_allowed_are_named(arguments, said):
    for call in (
        lambda: rlvr_core.verify("fixture-tricky", given("yes"), **arguments),
        lambda: Scorer("fixture-tricky", **arguments),
    ):
        with pytest.raises(StackError) as caught:
            call()
        assert caught.value.code == "RLVR-S106"
        assert said in str(caught.value)


def test_faults_of_others_are_attributed():
    with pytest.raises(StackError) as unknown:
        rlvr_core.verify("fixture-plane", given("yes"))
    assert unknown.value.code == "RLVR-S103"
    with pytest.raises(PluginError) as broken:
        rlvr_core.verify("fixture-unbuildable", given("yes"))
    assert broken.value.code == "RLVR-P105"


@pytest.fixture
def run(tmp_path):
    """Run the command on rows written to a file."""
    app = typer.Typer()
    app.command()(verify)

    def run(rows: list, *options: str, plugin: str = "fixture-plain", stdin: bool = False):
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        file = tmp_path / "rows.jsonl"
        file.write_text("\n".join(lines) + "\n")
        name = "-" if stdin else str(file)
        return CliRunner().invoke(
            app, [plugin, name, *options], input=file.read_text() if stdin else None
        )

    return run


def test_one_json_verdict_a_line_in_input_order_with_other_keys_kept(run):
    rows = given("yes", kind="easy", status="mine") + given("no", id="b") + given("yes", id=3)
    result = run(rows, "--json")
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    keys = [
        "id",
        "status",
        "score",
        "failure",
        "stage",
        "diagnostics",
        "verifier",
        "version",
        "latency_s",
    ]
    assert list(lines[0])[:9] == keys
    assert [line["id"] for line in lines] == ["1", "b", 3]
    assert [line["score"] for line in lines] == [1.0, 0.0, 1.0]
    assert lines[0]["kind"] == "easy"
    assert lines[0]["status"] == "passed"
    assert lines[0]["completion"] == "yes"
    assert "3 rows: 2 passed, 1 failed/wrong_answer" in result.stderr
    assert "median" in result.stderr


def test_agreement_with_expected_decides_the_exit_code(run):
    right = given("yes", expected=1) + given("no", expected=0.0005)
    abstained = [{"completion": "x", "ground_truth": {"bad": 1}, "expected": None}]
    agreed = run(right + abstained, "--json")
    assert agreed.exit_code == 0, agreed.output
    assert "agreement with expected: 3 of 3 (100.0%)" in agreed.stderr
    differing = run(right + given("yes", id="odd", expected=0) + given("yes", expected=None))
    assert differing.exit_code == 1
    assert "agreement with expected: 2 of 4 (50.0%)" in differing.stderr
    assert "not as expected: odd, 4" in differing.stderr


def test_the_table_shows_only_rows_that_are_not_as_expected(run):
    rows = given(*["yes"] * 5, expected=1) + given("no", id="odd", expected=1)
    result = run(rows)
    assert result.exit_code == 1
    assert [line.split()[0] for line in result.stdout.split("\n") if line.strip()][2:] == ["odd"]
    assert run(rows[:5]).stdout == ""


def test_a_long_table_is_cut_and_no_cell_is_wrapped(run, monkeypatch):
    rows = given(*["raise " + "no " * 60] * 70)
    for is_terminal in (False, True):
        monkeypatch.setenv("COLUMNS", "60")
        monkeypatch.setenv("TTY_COMPATIBLE", str(int(is_terminal)))
        lines = [
            line for line in run(rows, plugin="fixture-tricky").stdout.split("\n") if line.strip()
        ]
        assert len(lines) == 2 + 50 + 1
        assert lines[-1] == "… and 20 more; --json prints all"
        assert (max(map(len, lines[2:])) > 80) is not is_terminal


def test_the_table_shows_every_row(run):
    result = run(given("yes", id="first") + given("no", id="second"))
    assert result.exit_code == 0
    assert "first" in result.stdout
    assert "wrong_answer" in result.stdout


def test_settings_are_yaml_scalars_and_standard_input_is_a_file(run):
    result = run(given("no"), "--config", "answer=no", "--json", stdin=True)
    assert json.loads(result.stdout)["score"] == 1.0, result.output
    refused = run(given("no"), "--config", "answer")
    assert isinstance(refused.exception, StackError)


def test_bad_lines_are_reported_with_their_numbers(run):
    result = run(["{", "", '{"completion": 1}', *given("yes")])
    assert isinstance(result.exception, DataError)
    text = str(result.exception)
    assert "line 1: not JSON" in text
    assert "line 3: completion: expected a string" in text
    assert "line 3: ground_truth is missing" in text
    assert "rows.jsonl" in text


def test_a_missing_file_is_said(run):
    app = typer.Typer()
    app.command()(verify)
    result = CliRunner().invoke(app, ["fixture-plain", "/nowhere/rows.jsonl"])
    assert isinstance(result.exception, DataError)
    assert result.exception.code == "RLVR-D101"


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"expected": 10**400}, "row 1: expected: must be a finite number"),
        ({"expected": float("inf")}, "row 1: expected: must be a finite number"),
        ({"metadata": {"deep": json.loads("[" * 200 + "]" * 200)}}, "is nested deeper than 100"),
        ({"config": {"timeout_s": 1}}, "timeout_s: unknown key. Allowed: answer"),
    ],
    ids=["beyond-float", "infinite", "deep", "core's word"],
)
def test_what_a_row_may_not_say_is_named(more, fault):
    with pytest.raises(DataError) as caught:
        rlvr_core.verify("fixture-plain", given("yes", **more))
    assert fault in caught.value.cause


def test_of_many_problems_ten_are_shown_and_the_rest_counted():
    with pytest.raises(DataError) as caught:
        rlvr_core.verify("fixture-plain", [{"ground_truth": TRUTH}] * 200)
    lines = caught.value.cause.splitlines()
    assert len(lines) == 11
    assert lines[-1] == "… and 190 more"
