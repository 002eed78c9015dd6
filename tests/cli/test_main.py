"""The command line: verbs, exit codes, and that a verb imports only what it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path

import pytest

from rlvr_core import __version__
from rlvr_core.api.errors import CATALOGUE
from rlvr_core.cli import main as command_line

GOOD = """\
model: smollm2
data: {train: {path: train.jsonl}}
verifiers: [exact-match]
train: {steps: 1, learning_rate: 1e-3}
"""


@pytest.fixture
def rlvr(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    Path("stack.yaml").write_text(GOOD)

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            command_line.main(list(arguments))
        captured = capfd.readouterr()
        return int(caught.value.code or 0), captured.out, captured.err

    return run


Run = Callable[..., tuple[int, str, str]]


def test_version(rlvr: Run) -> None:
    assert rlvr("--version") == (0, f"rlvr {__version__}\n", "")


def test_help_lists_every_verb(rlvr: Run) -> None:
    code, output, _ = rlvr("--help")

    assert code == 0
    for verb, (_, help_line) in command_line.VERBS.items():
        assert verb in output
        assert help_line in " ".join(output.split())


def test_every_verb_has_a_help_page(rlvr: Run) -> None:
    paths = [[verb] for verb, (target, _) in command_line.VERBS.items() if target]
    paths += [[group, verb] for group, verbs in command_line.SUB_VERBS.items() for verb in verbs]

    for path in paths:
        code, output, errors = rlvr(*path, "--help")
        assert code == 0, errors
        assert f"rlvr {' '.join(path)}" in output


def test_help_keeps_text_in_square_brackets(rlvr: Run) -> None:
    output = " ".join(rlvr("report", "--help")[1].split())

    assert "Where the page goes [default: RUN/report.html]." in output


def test_a_verb_that_does_not_exist_is_a_usage_error_with_a_suggestion(rlvr: Run) -> None:
    code, _, errors = rlvr("plugin")
    sub_code, _, sub_errors = rlvr("config", "chekc")

    assert (code, sub_code) == (2, 2)
    assert "did you mean 'plugins'?" in errors
    assert "did you mean 'check'?" in sub_errors


def test_errors_go_to_stderr_without_a_traceback(rlvr: Run) -> None:
    code, output, errors = rlvr("config", "check", "absent.yaml")

    assert (code, output) == (2, "")
    assert errors.startswith("error[RLVR-S101] there is no file 'absent.yaml'")
    assert "Traceback" not in errors


def test_debug_adds_the_traceback_wherever_it_stands(rlvr: Run) -> None:
    for arguments in (("--debug", "config", "check", "a"), ("config", "check", "a", "--debug")):
        code, _, errors = rlvr(*arguments)
        assert code == 2
        assert "Traceback" in errors
        assert "error[RLVR-S101]" in errors


def test_json_errors_are_one_object_on_stdout(rlvr: Run) -> None:
    code, output, _ = rlvr("config", "check", "stack.yaml", "train.steps=0", "--json")

    found = json.loads(output)
    assert code == found["exit_code"] == 2
    assert found["error"]["code"] in CATALOGUE
    assert "train.steps" in found["error"]["message"]


def test_ctrl_c_and_faults_of_core_have_their_own_exit_codes(
    rlvr: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    import rlvr_core.cli.config as verbs

    def interrupted(recipe: str) -> None:
        raise KeyboardInterrupt

    def faulty(recipe: str) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(verbs, "copy", interrupted)
    assert rlvr("config", "copy", "x")[0] == 130
    monkeypatch.setattr(verbs, "copy", faulty)
    code, _, errors = rlvr("config", "copy", "x")
    assert code == 4
    assert "ZeroDivisionError" in errors
    assert "fault of rlvr itself" in errors


@pytest.mark.parametrize(
    ("left", "is_named"),
    [
        ("threading.Thread(target=busy.wait, name='uploads').start()", True),
        ("Pool().submit(busy.wait)", True),
        ("pool = Pool(); pool.submit(len, '')", False),
        ("threading.Thread(target=busy.wait, args=(0.5,)).start()", False),
    ],
)
def test_a_command_that_is_over_does_not_wait_for_ever_for_threads(
    left: str, is_named: bool
) -> None:
    code = f"""
import threading
from concurrent.futures import ThreadPoolExecutor as Pool
from rlvr_core.cli import main
busy = threading.Event()
{left}
main._LAST_THREADS_S = 1.0
main.main()
"""
    ended = subprocess.run(
        [sys.executable, "-c", code, "config", "check", "absent.yaml"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert ended.returncode == 2
    assert "RLVR-S101" in ended.stderr
    assert ("these threads did not end within 1 s" in ended.stderr) is is_named
    assert ("uploads" in ended.stderr) is ("uploads" in left)


def test_show_prints_every_default_and_reads_back(rlvr: Run) -> None:
    pytest.importorskip("torch", reason="core's default loss needs it")
    code, output, _ = rlvr("config", "show", "stack.yaml", "train.steps=3")
    Path("full.yaml").write_text(output)

    assert code == 0
    assert "learning_rate: 0.001" in output
    assert "ppo-clip" in output
    assert rlvr("config", "show", "full.yaml")[1] == output
    assert json.loads(rlvr("config", "show", "full.yaml", "--json")[1])["train"]["steps"] == 3


def test_copy_writes_a_recipe_and_never_overwrites(rlvr: Run) -> None:
    code, output, _ = rlvr("config", "copy", "smollm2-arithmetic")

    assert (code, output) == (0, "smollm2-arithmetic.yaml\n")
    assert "verifiers:" in Path("smollm2-arithmetic.yaml").read_text()
    Path("smollm2-arithmetic.yaml").write_text("mine")
    code, _, errors = rlvr("config", "copy", "smollm2-arithmetic")
    assert code == 2
    assert "is not overwritten" in errors
    assert Path("smollm2-arithmetic.yaml").read_text() == "mine"
    assert "did you mean 'smollm2-arithmetic'?" in rlvr("config", "copy", "smollm-arithmetic")[2]


def test_listing_plugins_imports_neither_plugins_nor_anything_heavy() -> None:
    script = """
import sys
from rlvr_core.cli.main import main
try:
    main(["plugins", "list", "--json"])
except SystemExit:
    pass
heavy = {"torch", "transformers", "yaml", "stevedore", "rich", "jsonschema", "pyarrow"}
own = {name for name in sys.modules if name.startswith(("rlvr_core.builtin", "rlvr_plugin"))}
print(sorted(heavy & sys.modules.keys() | own), file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
    )

    assert done.stderr.strip() == "[]"


def test_a_plugin_is_shown_with_its_own_summary_and_not_that_of_its_package(rlvr: Run) -> None:
    code, output, _ = rlvr("plugins", "show", "tracker")

    assert code == 0
    assert (
        "summary          Sends the numbers of every step and evaluation to TensorBoard" in output
    )


def test_settings_are_shown_with_their_types_and_what_is_required(rlvr: Run) -> None:
    _, output, _ = rlvr("plugins", "show", "math-sympy", "--load")

    lines = [line.strip() for line in output.splitlines()]
    assert any(line.startswith("answer: string or integer or number or array of") for line in lines)
    assert any(line.startswith("answer:") and "(required)" in line for line in lines)
    assert not any(line.endswith("see --json") for line in lines)


def test_a_file_without_rows_is_no_success(rlvr: Run, tmp_path) -> None:
    (tmp_path / "rows.jsonl").write_text("\n")

    code, _, errors = rlvr("verify", "exact-match", str(tmp_path / "rows.jsonl"))

    assert code == 2
    assert "there are no rows in" in errors


def test_a_verifier_that_breaks_is_shown_with_the_line_where_it_did(rlvr: Run, tmp_path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"completion": "a", "ground_truth": {"answer": "a"}}\n')
    (tmp_path / "broken.py").write_text("def reward(completion):\n    return 1 / 0\n")
    rows, function = tmp_path / "rows.jsonl", tmp_path / "broken.py"

    _, output, _ = rlvr("verify", "python", str(rows), "--config", f"function={function}:reward")

    assert "broken.py:2 in reward" in output


def test_the_installed_command_is_this_one() -> None:
    commands = {
        entry.name: entry.value
        for entry in distribution("rlvr-core").entry_points
        if entry.group == "console_scripts"
    }

    assert commands["rlvr"] == "rlvr_core.cli.main:main"


def test_lines_are_wrapped_in_no_file_or_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rlvr_core.cli.console import make_console
    from rlvr_core.cli.live import LiveReporter

    monkeypatch.setenv("COLUMNS", "40")
    record = {"kind": "warn", "reason": "long " * 60}
    for is_terminal in (False, True):
        monkeypatch.setenv("TTY_COMPATIBLE", str(int(is_terminal)))
        LiveReporter(make_console(), "verifier arm", 3).event(record)
        assert (len(capsys.readouterr().out.splitlines()) > 1) is is_terminal


def test_steps_that_replay_a_recording_are_spoken_of_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from rlvr_core.cli.console import make_console
    from rlvr_core.cli.live import LiveReporter

    reporter = LiveReporter(make_console(), "run", 3)
    for step in (1, 2):
        reporter.event({"kind": "replayed", "step": step, "reason": f"step {step}: all"})
        reporter.event({"kind": "warn", "step": step, "reason": "careful"})

    shown = capsys.readouterr().out.splitlines()
    assert shown == ["run: replayed: step 1: all", "run: warn: careful", "run: warn: careful"]


def test_what_the_command_line_gave_is_named_once(rlvr: Run) -> None:
    errors = rlvr("config", "check", "stack.yaml", "control=control-rando")[2]

    assert "command line: control: no plugin named 'control-rando' is installed" in errors
    assert "command line: control: control" not in errors


def test_one_problem_is_counted_in_the_singular(rlvr: Run) -> None:
    row = {"prompt": "1 + 1", "verifier": {"type": "exact-match", "answer": "2"}}
    Path("one.jsonl").write_text("".join(json.dumps({"id": i, **row}) + "\n" for i in "ab"))
    output = rlvr("data", "check", "one.jsonl")[1]

    assert "1 row repeats the prompt of an earlier row" in output
    assert output.endswith("\n1 problem\n")


def test_a_dry_run_without_evaluations_says_none(rlvr: Run) -> None:
    pytest.importorskip("torch", reason="core's default loss needs it")
    row = {"id": "a", "prompt": "1 + 1", "verifier": {"type": "exact-match", "answer": "2"}}
    Path("train.jsonl").write_text(json.dumps(row) + "\n")
    code, output, errors = rlvr("train", "stack.yaml", "evaluate.splits=[]", "--dry-run")

    assert code == 0, errors
    (line,) = [line for line in output.splitlines() if "evaluations" in line]
    assert " none " in line


def test_a_key_of_a_section_is_recognised_at_the_top(rlvr: Run) -> None:
    errors = rlvr("config", "check", "stack.yaml", "steps=3", "temperature=0.5")[2]

    assert "steps: unknown key here; did you mean 'train.steps'?" in errors
    assert "did you mean 'rollout.temperature' or 'evaluate.temperature'?" in errors


def test_a_folder_given_as_the_stack_is_told_apart(rlvr: Run) -> None:
    code, _, errors = rlvr("config", "check", ".")

    assert code == 2
    assert "name a stack file, and not a folder" in errors


def test_a_dry_run_says_what_would_keep_the_run_from_beginning(rlvr: Run) -> None:
    pytest.importorskip("torch", reason="core's default loss needs it")
    row = {"id": "a", "prompt": "1 + 1", "verifier": {"type": "exact-match", "answer": "2"}}
    Path("train.jsonl").write_text(json.dumps(row) + "\n")
    Path("taken").mkdir()
    Path("taken", "notes.txt").touch()
    command = ("train", "stack.yaml", "evaluate.splits=[]", "--dry-run", "--out")

    assert "would not begin: taken is there already" in " ".join(rlvr(*command, "taken")[1].split())
    assert "would not begin" not in rlvr(*command, "free")[1]


def test_the_arms_in_a_folder_are_named_where_a_run_is_wanted(rlvr: Run) -> None:
    Path("demo/verifier").mkdir(parents=True)
    Path("demo/verifier/manifest.json").write_text("{}")
    errors = rlvr("rescore", "demo")[2]

    assert "it holds runs: give demo/verifier" in errors


def test_what_a_monitor_asked_for_is_shown_with_its_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from rlvr_core.cli.console import make_console
    from rlvr_core.cli.live import LiveReporter

    with LiveReporter(make_console(), "run", 2) as reporter:
        reporter.event({"step": 1, "kind": "stop", "monitor": "dead-groups", "reason": "enough"})
        reporter.event({"step": 1, "kind": "warn", "monitor": "core", "reason": "odd rows"})

    assert capsys.readouterr().out.splitlines() == [
        "run: stop by dead-groups: enough",
        "run: warn: odd rows",
    ]
