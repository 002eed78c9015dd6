"""`rlvr rescore`, on run folders written by the real writer."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rlvr_core
from rlvr_core.api import (
    FailureCategory,
    FinishReason,
    Group,
    Message,
    Rollout,
    Row,
    Segment,
    StackError,
    Status,
    Verdict,
)
from rlvr_core.cli import main as command_line
from rlvr_core.cli.rescore import chosen_steps
from rlvr_core.report.read import read_run

pytest.importorskip("torch", reason="the writer of run folders needs it")

from rlvr_core.train.run_folder import RunFolder

STACK = """\
model: smollm2
data: {train: {path: train.jsonl}}
verifiers:
  - exact-match: {fold_case: true}
  - last: {plugin: exact-match, extract: last-line}
verification: {workers: 1}
train: {steps: 2, learning_rate: 1e-3}
"""
COMPLETIONS = ["Yes", "yes", "no", "<b>\x1b[31mno\u202e", "so it is\nyes"]


def row(number: int, verifier: str = "exact-match") -> Row:
    prompt = (Message("user", "Is it so?"),) if number else "Is it so?"
    truth = {"answer": "yes"}
    metadata = {"level": number} if number else {}
    return Row(
        id=f"row-{number}", prompt=prompt, verifier=verifier, ground_truth=truth, metadata=metadata
    )


def rollout(of: Row, index: int, completion: str, verdict: Verdict | None) -> Rollout:
    return Rollout(
        row=of,
        sample_index=index,
        completion=completion,
        segments=[Segment(token_ids=[1])],
        finish_reason=FinishReason.STOP,
        weights_version=0,
        sampled_under=of.prompt,
        trained_under=of.prompt,
        verdict=verdict,
        reward=None if verdict is None else verdict.score,
    )


def write_run(path: Path, verdicts: Callable[[int, list[dict]], list[Verdict | None]]) -> Path:
    """Write a run of two steps; in step 2 the rows belong to the verifier ``last``."""
    folder = RunFolder.create(path, {"run": "small", "status": "finished"}, STACK)
    with folder.lock():
        for step, verifier in ((1, "exact-match"), (2, "last")):
            of = row(step - 1, verifier)
            asked = [
                {"completion": one, "ground_truth": dict(of.ground_truth)} for one in COMPLETIONS
            ]
            found = verdicts(step, asked)
            rollouts = [
                rollout(of, index, text, verdict)
                for index, (text, verdict) in enumerate(zip(COMPLETIONS, found, strict=True))
            ]
            group = Group(row=of, rollouts=rollouts)
            folder.write_rollouts(step, [group], [True])
    return path


def judged(step: int, rows: list[dict]) -> list[Verdict]:
    config = {"fold_case": True} if step == 1 else {"extract": "last-line"}
    found = rlvr_core.verify("exact-match", rows, config=config, workers=1)
    name = "exact-match" if step == 1 else "last"
    return [Verdict(**{**fields(one), "verifier": name}) for one in found]


def fields(verdict: Verdict) -> dict:
    return {name: getattr(verdict, name) for name in Verdict.__slots__}


@pytest.fixture(scope="module")
def same(tmp_path_factory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "same", judged)


@pytest.fixture(scope="module")
def other(tmp_path_factory) -> Path:
    """A run whose verifier said the opposite of every first completion, and broke on a third."""

    def opposite(step: int, rows: list[dict]) -> list[Verdict | None]:
        found: list[Verdict | None] = list(judged(step, rows))
        common = {"verifier": found[0].verifier, "version": "0.0.1+old"}
        found[0] = Verdict(
            status=Status.FAILED, score=0.0, failure=FailureCategory.WRONG_ANSWER, **common
        )
        found[2] = Verdict(status=Status.ERROR, failure=FailureCategory.VERIFIER_TIMEOUT, **common)
        found[3] = Verdict(
            status=Status.FAILED, score=0.25, failure=FailureCategory.WRONG_ANSWER, **common
        )
        return [*found[:4], None]

    return write_run(tmp_path_factory.mktemp("runs") / "other", opposite)


@pytest.fixture
def rescore(capfd) -> Callable[..., tuple[int, str, str]]:
    def run(*arguments: object) -> tuple[int, str, str]:
        capfd.readouterr()
        with pytest.raises(SystemExit) as caught:
            command_line.main(["rescore", *map(str, arguments)])
        captured = capfd.readouterr()
        return int(caught.value.code or 0), captured.out, captured.err

    return run


def digest_of(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def test_the_same_verifiers_say_the_same_and_the_run_stays_as_it_is(rescore, same):
    before = digest_of(same)
    code, out, _ = rescore(same)

    assert code == 0, out
    assert "0 of 10 verdicts changed (0.0%), steps 1 to 2" in out
    assert digest_of(same) == before


def test_changed_verdicts_are_counted_by_what_they_were_and_are(rescore, other):
    code, out, _ = rescore(other, "--json")
    found = json.loads(out)

    assert code == 1
    assert (found["judged"], found["flipped"], found["steps"]) == (8, 5, [1, 2])
    counts = {(one["old"], one["new"]): one["rollouts"] for one in found["transitions"]}
    assert counts == {
        ("failed", "failed"): 3,
        ("failed", "passed"): 1,
        ("error", "failed"): 2,
        ("passed", "passed"): 2,
    }
    assert found["left_out"] == {"were never judged in the run": 2}
    assert "0.0.1+old" in found["versions"]["old"]["exact-match"]
    assert set(found["versions"]["new"]) == {"exact-match", "last"}
    first = found["flips"][0]
    assert (first["step"], first["row_id"], first["sample_index"]) == (1, "row-0", 0)
    assert (first["old"]["status"], first["new"]["status"]) == ("failed", "passed")
    assert first["completion"] == "Yes"


def test_the_table_shows_completions_that_can_do_no_harm(rescore, other):
    code, out, _ = rescore(other)

    assert code == 1
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "<b>⟦U+001B⟧[31mno⟦U+202E⟧" in out
    assert "failed wrong_answer 0.25" in out
    assert "2 rollouts were never judged in the run, and were left out" in out
    assert "5 of 8 verdicts changed (62.5%), steps 1 to 2" in out


def test_what_is_shown_is_limited_and_what_is_counted_is_not(rescore, other):
    assert json.loads(rescore(other, "--json", "--limit", 1)[1])["flipped"] == 5
    _, out, _ = rescore(other, "--limit", 1)

    assert "… and 4 more; --limit shows more" in out


@pytest.mark.parametrize(
    ("steps", "chosen"), [("1", [1]), ("2:", [2]), (":1", [1]), ("1:2", [1, 2]), (":", [1, 2])]
)
def test_steps_are_chosen(same, steps, chosen):
    assert chosen_steps(read_run(same), steps) == chosen


@pytest.mark.parametrize("steps", ["x", "1-2", "7:9", "2:1", "1:2:3", "-1", ""])
def test_other_steps_are_refused(same, steps):
    with pytest.raises(StackError) as caught:
        chosen_steps(read_run(same), steps)
    assert caught.value.code == "RLVR-S106"


def test_a_given_verifier_judges_all_with_other_settings(rescore, same):
    settings = ["--verifier", "exact-match", "--config", "fold_case=false"]
    code, out, _ = rescore(same, "--json", *settings)
    found = json.loads(out)
    assert code == 1
    assert [one["completion"] for one in found["flips"]] == ["Yes", "so it is\nyes"]
    assert list(found["versions"]["new"]) == ["exact-match"]


def test_rows_of_another_model_are_left_out_and_counted(rescore, same):
    code, _, err = rescore(same, "--verifier", "ifeval-like")
    assert code == 2
    assert "RLVR-S103" in err

    combine = ["--verifier", "combine", "--config", "rule=all"]
    members = "of=[exact-match, {last: {plugin: exact-match, extract: last-line}}]"
    found = json.loads(rescore(same, "--json", *combine, "--config", members)[1])
    assert found["judged"] == 10

    code, _, err = rescore(same, "--verifier", "length-penalty")
    assert code == 2
    assert "RLVR-V103" in err


def test_settings_without_a_verifier_are_refused(rescore, same):
    code, _, err = rescore(same, "--config", "fold_case=false")

    assert code == 2
    assert "--verifier" in err


def copied(run: Path, to: Path) -> Path:
    for path in run.rglob("*"):
        if path.is_file():
            target = to / path.relative_to(run)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    return to


def test_a_damaged_table_is_named_and_other_steps_still_work(rescore, same, tmp_path):
    run = copied(same, tmp_path / "damaged")
    file = run / "rollouts" / "000002.parquet"
    file.write_bytes(file.read_bytes()[:100])

    code, _, err = rescore(run)

    assert code == 2
    assert "RLVR-T104" in err
    assert "000002.parquet" in err
    assert rescore(run, "--steps", "1")[0] == 0


def test_a_run_without_texts_or_tables_says_so(rescore, same, tmp_path):
    run = copied(same, tmp_path / "bare")
    for file in (run / "rollouts").glob("*.parquet"):
        table = pq.read_table(file)
        place = table.schema.get_field_index("completion")
        empty = pa.nulls(len(table), pa.string())
        pq.write_table(table.set_column(place, "completion", empty), file)

    code, _, err = rescore(run)
    assert code == 2
    assert "none of the 10 rollouts" in err
    assert "10 rollouts have no completion on record" in err

    for file in (run / "rollouts").glob("*.parquet"):
        file.unlink()
    code, _, err = rescore(run)
    assert code == 2
    assert "holds no rollouts" in err


def test_tables_of_an_older_writer_lack_a_column(rescore, same, tmp_path):
    run = copied(same, tmp_path / "old")
    for file in (run / "rollouts").glob("*.parquet"):
        pq.write_table(pq.read_table(file).drop_columns(["metadata"]), file)

    assert rescore(run)[0] == 0


def test_a_run_without_its_stack_or_with_other_verifiers_says_so(rescore, same, tmp_path):
    run = copied(same, tmp_path / "changed")
    stack = run / "stack.yaml"
    stack.write_text(STACK.replace("  - last: {plugin: exact-match, extract: last-line}\n", ""))

    code, _, err = rescore(run)
    assert code == 2
    assert "judged by last" in err
    assert "--verifier" in err
    assert rescore(run, "--steps", "1")[0] == 0
    assert rescore(run, "--verifier", "exact-match")[0] == 1

    stack.unlink()
    code, _, err = rescore(run)
    assert code == 2
    assert "stack.yaml" in err


def test_no_run_folder_is_said(rescore, tmp_path):
    code, _, err = rescore(tmp_path)

    assert code == 2
    assert "RLVR-T104" in err


def test_the_metadata_of_a_row_is_stored_for_it(same):
    tables = [pq.read_table(same / "rollouts" / f"00000{step}.parquet") for step in (1, 2)]

    assert tables[0]["metadata"].to_pylist() == [None] * 5
    assert tables[1]["metadata"].to_pylist() == ['{"level": 1}'] * 5


def test_the_command_of_the_page_works(rescore, same):
    page = Path(__file__).parents[2] / "docs" / "how-to" / "rescore-a-run.md"
    command = re.search(r"```bash\nrlvr rescore (\S+)\n```", page.read_text("utf-8"))

    assert command is not None
    assert rescore(*[same if word == command[1] else word for word in command.groups()])[0] == 0
