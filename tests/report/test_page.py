"""The page: self-contained, harmless, and showing the summary's numbers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from rlvr_core.api import EnvironmentFault, StackError
from rlvr_core.cli.report import report
from rlvr_core.report.chart import Line, line_chart
from rlvr_core.report.page import embedded_json, visible, write_report
from rlvr_core.report.read import read_run
from rlvr_core.report.summary import summarise
from rlvr_core.train.run_folder import RunFolder

HOSTILE = (
    "</script><script>alert(1)</script>",
    '<img src="https://evil.example/x.png" onerror=alert(2)>',
    "</td></table><iframe src=//evil.example></iframe>",
    "reversed \u202eevil\u202c, hidden \u200b\u2066, control \x00 \x1b[31m",
    "lone \ud83d surrogate",
    "{{ 7 * 7 }} {% raw %} ]]> <!-- &lt;",
)
VOID = {"meta", "br", "img", "link", "input", "hr", "source", "base"}


class Reader(HTMLParser):
    """Collects tags, attributes and text, and checks that tags are closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, str] = {}
        self.open: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        place = self.open[-1] if self.open else ""
        self.text[place] = self.text.get(place, "") + data


@pytest.fixture(scope="module")
def page(arms, tmp_path_factory) -> str:
    destination = tmp_path_factory.mktemp("page") / "deep" / "report.html"
    write_report(arms, destination)
    assert [path.name for path in destination.parent.iterdir()] == ["report.html"]
    return destination.read_text("utf-8")


def assert_harmless(page: str) -> Reader:
    """Nothing runs, nothing is fetched, and every tag is one of the template's."""
    read = Reader(page)
    names = {tag for tag, _ in read.tags}
    assert not names & {"img", "iframe", "link", "object", "embed", "base", "form", "a", "image"}
    for tag, attributes in read.tags:
        assert not [name for name in attributes if name.startswith("on")]
        assert not {"src", "href", "srcset", "action", "xlink:href"} & attributes.keys()
        if tag == "script":
            assert attributes == {"type": "application/json", "id": "summary"}
    assert sum(tag == "script" for tag, _ in read.tags) == 1
    styles = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert not re.search(r"url\(|@import", "".join(styles))
    assert "default-src 'none'" in page
    return read


def test_the_page_is_one_file_that_asks_for_nothing(page):
    assert_harmless(page)


def test_the_page_holds_the_summary_that_the_command_prints(arms, page):
    embedded = json.loads(Reader(page).text["script"])
    summary = summarise(*(read_run(path) for path in arms))
    assert embedded == json.loads(json.dumps(summary.to_json()))


def test_the_page_shows_the_numbers_of_the_summary(arms, page):
    summary = summarise(*(read_run(path) for path in arms))
    cells = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))
    for change in summary.changes:
        assert f"{100 * change.before.accuracy:.1f} % [{100 * change.before.low:.1f}, " in cells
        assert f"{100 * change.after.accuracy:.1f} % [{100 * change.after.low:.1f}, " in cells
    for sentence in summary.sentences:
        assert sentence.replace(" %", "\N{NO-BREAK SPACE}%") in Reader(page).text["li"]
    for title in (
        "Training reward",
        "Accuracy on dev",
        "Accuracy on transfer",
        "No answer could be read",
        "Completion length",
        "Entropy of sampling",
    ):
        assert title in page


def test_the_page_says_how_its_accuracies_were_sampled(page):
    (caption,) = re.findall(r"<caption>(.*?)</caption>", page)
    assert caption == (
        "Completions were sampled at temperature 1, samples a prompt: 1, "
        "tokens a completion at most: 24."
    )


def test_two_arms_are_called_by_the_folder_of_both_and_the_demo_by_its_name(tmp_path, new_run):
    both = tmp_path / "both"
    paths = [new_run(both / arm, arm, steps=1).path for arm in ("verifier", "control")]
    runs = [read_run(path) for path in paths]
    assert summarise(*runs).title == "both"
    (both / "stack.yaml").write_text("")
    assert summarise(*runs).title == "rlvr demo"
    assert summarise(runs[1]).title == "demo control"


def test_what_this_many_prompts_would_show_is_said_in_plain_words(arms):
    said = " ".join(summarise(*(read_run(path) for path in arms)).sentences)
    assert re.search(
        r"the smallest change that \d+ prompts would show is about \d+\.\d points", said
    )


def test_the_page_shows_a_point_for_each_evaluation_of_both_arms(page):
    for point in ("verifier, math-sympy, step 0:", "verifier, flexible, step 4:"):
        assert page.count(f"<title>{point}") == 2
    assert page.count("<title>control (control-random), math-sympy, step 2:") == 2


def test_hostile_text_is_shown_and_does_nothing(tmp_path, some_groups):
    manifest = {
        "run": HOSTILE[0],
        "model": HOSTILE[4],
        "data": {HOSTILE[1]: {"path": HOSTILE[2]}},
        "plugins": [{"name": HOSTILE[1], "version": HOSTILE[3]}],
    }
    folder = RunFolder.create(tmp_path / "r", manifest, "\n".join(HOSTILE))
    rollouts = [rollout for group in some_groups for rollout in group.rollouts]
    for rollout, text in zip(rollouts, HOSTILE * 2, strict=True):
        rollout.completion = text
        rollout.verdict = rollout.verdict.__class__(
            status=rollout.verdict.status,
            score=0.0,
            failure=rollout.verdict.failure,
            diagnostics={"extracted": text},
            verifier=text,
            version=text,
        )
    folder.write_rollouts(1, some_groups, [True] * 3)
    folder.append_metrics({"step": 1, "reward_mean": 0.5, "length_mean": float("nan")})
    for text in HOSTILE:
        folder.append_event({"step": 1, "kind": text, "reason": text, text: text})
    destination = tmp_path / "report.html"
    write_report([folder.path], destination)
    page = destination.read_text("utf-8")
    read = assert_harmless(page)
    text = "".join(read.text.values())
    assert HOSTILE[0] in text
    assert HOSTILE[1] in text
    assert HOSTILE[5] in text
    assert "reversed ⟦U+202E⟧evil⟦U+202C⟧, hidden ⟦U+200B⟧⟦U+2066⟧, control ⟦U+0000⟧" in text
    assert "lone \\ud83d surrogate" in text
    assert not set("\u202e\u202c\u200b\u2066\x00\x1b") & set(page)


def test_long_groups_and_completions_are_cut_and_the_page_says_so(tmp_path, some_groups):
    folder = RunFolder.create(tmp_path / "r", {"run": "r"}, "")
    group = some_groups[0]
    group.rollouts = group.rollouts * 5
    group.rollouts[0].completion = "z" * 5000
    folder.write_rollouts(1, [group], [True])
    write_report([folder.path], tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "… 3000 more characters" in page
    assert "… 4 more rollouts of this prompt" in page
    assert max(map(len, re.findall("z+", page))) == 2000
    assert_harmless(page)


def test_a_page_that_cannot_be_written_is_the_environments_fault(arms, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentFault, match="report could not be written") as caught:
        write_report(arms, tmp_path / "file" / "report.html")
    assert caught.value.code == "RLVR-T106"


def test_reading_and_writing_runs_needs_no_torch():
    code = (
        "import sys, rlvr_core.cli.report, rlvr_core.train.run_folder, rlvr_core.train.manifest;"
        "sys.exit('torch' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_visible_keeps_ordinary_text_of_every_script():
    text = "x² ≤ ∞\n\tДа 日本語 مرحبا é 👩"
    assert visible(text) == text
    assert visible("a\ud800b\ue000\u2028") == "a⟦U+D800⟧b⟦U+E000⟧⟦U+2028⟧"


def test_embedded_json_cannot_leave_its_element():
    value = {"a": "</script><!--<script>&\u2028\ud800", "b": float("nan")}
    text = embedded_json(value)
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"a": value["a"], "b": None}


@pytest.mark.parametrize(
    "points",
    [[(0, 0.5)], [(1, 3.0), (2, 3.0)], [(1, -2.0), (400, 1e6)], [(7, 0.0)], [(0, 1e-7), (1, 0)]],
)
def test_a_chart_stays_inside_its_frame(points):
    chart = line_chart("t", [Line(label="l", style="verifier", points=points)], y_label="u")
    (polyline,) = re.findall(r'<polyline points="([^"]*)"', chart.svg)
    for place in polyline.split():
        x, y = map(float, place.split(","))
        assert 0 <= x <= 380
        assert 0 <= y <= 230
    assert chart.svg.count("<title>") == len(points)


def test_a_chart_without_points_is_left_out():
    assert line_chart("t", [Line(label="l", style="verifier", points=[])], y_label="u") is None


@pytest.fixture
def application() -> typer.Typer:
    application = typer.Typer()
    application.command()(report)
    return application


def test_the_command_writes_the_page_of_a_demo_folder(arms, application, tmp_path):
    out = tmp_path / "r.html"
    result = CliRunner().invoke(application, [str(arms[0].parent), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[-1] == str(out)
    assert "Control arm (control-random, 2 steps)" in result.output.replace("\n", " ")
    assert "not separated" in result.output
    assert out.exists()


def test_the_page_goes_into_the_run_folder_by_default(tmp_path, new_run, application):
    path = new_run(tmp_path / "run", steps=1).path
    assert CliRunner().invoke(application, [str(path)]).exit_code == 0
    assert (path / "report.html").exists()


def test_the_command_prints_the_summary_as_json_and_writes_nothing(arms, application):
    verifier, control = map(str, arms)
    result = CliRunner().invoke(application, [verifier, "--control", control, "--json"])
    assert result.exit_code == 0, result.output
    summary = summarise(*(read_run(path) for path in arms))
    assert json.loads(result.output) == json.loads(json.dumps(summary.to_json()))
    assert not (Path(verifier) / "report.html").exists()


def test_a_control_arm_alone_is_called_a_control_arm(arms, application, tmp_path):
    out = tmp_path / "r.html"
    result = CliRunner().invoke(application, [str(arms[1]), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "This run is a control arm: control-random gave its rewards" in out.read_text("utf-8")
    summary = json.loads(CliRunner().invoke(application, [str(arms[1]), "--json"]).output)
    assert summary["verifier"] is None
    assert {change["arm"] for change in summary["changes"]} == {"control"}
    assert "There is no control arm" not in " ".join(summary["sentences"])


@pytest.mark.parametrize(
    ("run", "control", "said"),
    [
        (0, 0, "are the same folder"),
        (1, 1, "are the same folder"),
        (1, 0, "given as control arm is none"),
    ],
)
def test_a_control_that_is_none_is_refused(arms, application, run, control, said):
    given = [str(arms[run]), "--control", str(arms[control]), "--json"]
    error = CliRunner().invoke(application, given).exception
    assert isinstance(error, StackError)
    assert (error.code, said in error.message) == ("RLVR-S106", True)
    assert error.fix


def test_two_control_arms_are_not_compared(arms, tmp_path, new_run):
    other = new_run(tmp_path / "other", "control", steps=1).path
    with pytest.raises(StackError, match="is a control arm itself"):
        write_report([other, arms[1]], tmp_path / "r.html")
