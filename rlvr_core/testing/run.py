"""Make the checks of one plugin."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rlvr_core.api.errors import RlvrError, StackError, did_you_mean, exception_text, listed
from rlvr_core.api.verdicts import Json
from rlvr_core.plugins.index import InstalledPlugin, PluginIndex
from rlvr_core.testing.apart.parent import Finding
from rlvr_core.testing.cases import GoldenCase, load_cases
from rlvr_core.testing.check import Check
from rlvr_core.testing.checks import CHECKS, VERIFIER_CHECKS
from rlvr_core.testing.project import Project, find_project
from rlvr_core.testing.report import CheckReport, CheckResult, Outcome
from rlvr_core.testing.subject import Level, Subject

DEFAULT_TIMEOUT_S = 10.0
"""Deadline of a row, as in training."""


def check_plugin(
    plugin: str,
    *,
    cases: Sequence[GoldenCase] | Path | None = None,
    level: Level = "basic",
    config: Mapping[str, Json] | None = None,
    expected_failures: Mapping[str, str] | None = None,
    project: Path | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    only: Collection[str] | None = None,
    on_check: Callable[[Check], None] = lambda check: None,
) -> CheckReport:
    """Make every check of an installed plugin's family, and report all that they found.

    Args:
        plugin: Registered name, qualified by its distribution where two share it.
        cases: Golden cases of a verifier, or their file. Default: those of its project.
        level: How many golden cases there must be: ``basic`` 5 that pass, 5 that fail, 3 near
            misses; ``listed`` 20, 20, 10.
        config: The plugin's settings. Default: what its project says.
        expected_failures: Number of a check -> why it fails, beside those of the project. One that
            passes all the same has failed: the reason no longer holds.
        project: Folder of its ``pyproject.toml``. Default: where it was installed from.
        timeout_s: Deadline of a row; other experiments get six times as long.
        only: Numbers of checks to report, with those that they need where these fail. Default: all.
        on_check: Told of each check when it begins.

    Raises:
        StackError: No such plugin is installed (RLVR-S103); a number, a path or a setting of the
            project cannot be used (RLVR-S106).
        PluginError: Two distributions register the name (RLVR-P101).
        DataError: The golden cases cannot be read, or are none.
    """
    installed = find_plugin(plugin)
    found = find_project(installed, project, cases if isinstance(cases, Path) else None)
    found = _with(found, config, expected_failures)
    if cases is None or isinstance(cases, Path):
        cases = load_cases(found.golden) if found.golden is not None else []
    chosen = _chosen(CHECKS[installed.family], only, found.settings.expected_failures)
    numbers = [check.number for check in chosen]
    with _subject(installed, found, cases, level, timeout_s, numbers) as subject:
        results = list(_results(subject, chosen, on_check))
    if only is not None:
        results = [one for one in results if one.number in only or one.outcome is Outcome.FAILED]
    return CheckReport(
        plugin=installed.name,
        blame=installed.blame,
        family=installed.family.value,
        level=level,
        results=tuple(results),
    )


def check_verifier(
    plugin: str,
    cases: Sequence[GoldenCase] | Path | None = None,
    expected_failures: Mapping[str, str] | None = None,
    *,
    level: Level = "basic",
    config: Mapping[str, Json] | None = None,
    project: Path | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
) -> CheckReport:
    """Check a verifier; see `check_plugin`."""
    return check_plugin(
        plugin,
        cases=cases,
        level=level,
        config=config,
        expected_failures=expected_failures,
        project=project,
        timeout_s=timeout_s,
    )


def find_plugin(name: str) -> InstalledPlugin:
    """Return the one installed plugin of that name, whatever its family.

    Raises:
        StackError: There is none (RLVR-S103).
        PluginError: There are two (RLVR-P101).
    """
    index = PluginIndex.scan()
    found = index.named(name)
    if not found:
        known = {plugin.name for plugin in index.plugins}
        raise StackError(
            "RLVR-S103",
            f"no plugin named {name!r} is installed{did_you_mean(name, known)}",
            cause=f"installed: {listed(known) or 'none'}",
            fix="install it (`pip install -e .` in its project), then check it again",
        )
    return index.find(found[0].family, name, "command line")


def _with(
    project: Project,
    config: Mapping[str, Json] | None,
    expected_failures: Mapping[str, str] | None,
) -> Project:
    settings = project.settings
    changes = {
        "config": dict(settings.config if config is None else config),
        "expected_failures": {**settings.expected_failures, **(expected_failures or {})},
    }
    return replace(project, settings=settings.model_copy(update=changes))


def _chosen(
    checks: Sequence[Check], only: Collection[str] | None, expected: Collection[str]
) -> list[Check]:
    known = {check.number: check for check in checks}
    unknown = (set(only or ()) | set(expected)) - known.keys()
    if unknown:
        raise StackError(
            "RLVR-S106",
            f"there is no check {listed(unknown)} for a plugin of this family",
            cause=f"its checks: {listed(known, limit=len(known))}",
            fix="docs/reference/checks.md lists them",
        )
    if only is None:
        return list(checks)
    wanted = set(only)
    for check in reversed(checks):
        if check.number in wanted:
            wanted.update(check.needs)
    return [check for check in checks if check.number in wanted]


@contextmanager
def _subject(
    installed: InstalledPlugin,
    project: Project,
    cases: Sequence[GoldenCase],
    level: Level,
    timeout_s: float,
    numbers: Sequence[str],
) -> Iterator[Subject]:
    subject = Subject(installed, project, cases, level, timeout_s, numbers)
    try:
        yield subject
    finally:
        subject.close()


def _results(
    subject: Subject, checks: Sequence[Check], on_check: Callable[[Check], None]
) -> Iterator[CheckResult]:
    failed: set[str] = set()
    expected = subject.project.settings.expected_failures
    for check in checks:
        on_check(check)
        found = _made(subject, check, failed)
        if found.outcome in (Outcome.FAILED, Outcome.SKIPPED):
            failed.add(check.number)
        if check.number in expected:
            found = _expected(found, expected[check.number])
        yield CheckResult(check.number, check.sentence, found.outcome, found.detail)


def _made(subject: Subject, check: Check, failed: Collection[str]) -> Finding:
    if check.capability and check.capability not in subject.project.settings.capabilities:
        return Finding(
            Outcome.NOT_APPLICABLE, f"it does not claim the capability {check.capability}"
        )
    lost = [number for number in check.needs if number in failed]
    if lost:
        return Finding(Outcome.SKIPPED, f"{listed(lost)} must pass first")
    if check in VERIFIER_CHECKS and not subject.judges:
        return Finding(Outcome.NOT_APPLICABLE, "it judges no completions")
    try:
        return check.make(subject)
    except RlvrError as error:
        return Finding(Outcome.FAILED, f"{error.message}{': ' if error.cause else ''}"
                       f"{error.cause or ''}")  # fmt: skip
    except Exception as exc:  # noqa: BLE001 - the plugin's class may break whoever looks at it
        return Finding(Outcome.FAILED, f"it raised {exception_text(exc)}")


def _expected(found: Finding, reason: str) -> Finding:
    if found.outcome is Outcome.FAILED:
        return Finding(Outcome.EXPECTED, f"{reason} ({found.detail})")
    if found.outcome is Outcome.PASSED:
        said = f"it passes, and is expected to fail: {reason}; take it out of expected_failures"
        return Finding(Outcome.FAILED, said)
    return found
