"""The checks as tests of pytest: one test a check, by a decorator or a base class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from rlvr_core.api.verdicts import Json
from rlvr_core.testing.checks import CHECKS
from rlvr_core.testing.report import CheckReport, CheckResult, Outcome
from rlvr_core.testing.run import check_plugin, find_plugin
from rlvr_core.testing.subject import Level

T = TypeVar("T", bound=Callable[..., Any])


class _Checking:
    """The checks of one plugin, made when the first is asked for."""

    def __init__(self, plugin: str, options: Mapping[str, Any]) -> None:
        self._plugin = plugin
        self._options = options
        self.made: CheckReport | None = None

    def report(self) -> CheckReport:
        """Return the report."""
        if self.made is None:
            self.made = check_plugin(self._plugin, **self._options)
        return self.made


class CheckTest:
    """One check of one plugin; call it to make it. All checks of a plugin are made together."""

    def __init__(self, number: str, checking: _Checking) -> None:
        self.number = number
        self._checking = checking

    @property
    def summary(self) -> str | None:
        """The counts of the plugin's report; None before it was made."""
        made = self._checking.made
        return None if made is None else made.summary

    @property
    def result(self) -> CheckResult:
        """What the check found."""
        [result] = [one for one in self._checking.report().results if one.number == self.number]
        return result

    def __call__(self) -> None:
        """Pass, skip or fail the test that calls this.

        A check that is not applicable is a skipped test, an expected failure an xfail.
        """
        import pytest

        result = self.result
        text = f"{result.number}: {result.sentence} Found: {result.detail}"
        if result.outcome in (Outcome.FAILED, Outcome.SKIPPED):
            pytest.fail(text, pytrace=False)
        if result.outcome is Outcome.EXPECTED:
            pytest.xfail(text)
        if result.outcome is Outcome.NOT_APPLICABLE:
            pytest.skip(text)


def parametrize_plugin_checks(
    plugin: str, *, level: Level = "basic", project: Path | None = None, **options: Any
) -> Callable[[T], T]:
    """Return a decorator that runs a test once for each check of a plugin.

    The test takes the argument `check`, a `CheckTest`, and calls it.

    Args:
        plugin: Registered name of an installed plugin.
        level: As for `check_plugin`.
        project: Folder of its ``pyproject.toml``.
        **options: Others of `check_plugin`.

    Raises:
        StackError: No such plugin is installed.
    """
    import pytest

    checking = _Checking(plugin, {"level": level, "project": project, **options})
    only = options.get("only")
    numbers = [check.number for check in CHECKS[find_plugin(plugin).family]]
    tests = [CheckTest(number, checking) for number in numbers if only is None or number in only]
    return pytest.mark.parametrize("check", tests, ids=[test.number for test in tests])


def parametrize_verifier_checks(
    plugin: str, *, level: Level = "basic", project: Path | None = None, **options: Any
) -> Callable[[T], T]:
    """Return a decorator that runs a test once for each check of a verifier."""
    return parametrize_plugin_checks(plugin, level=level, project=project, **options)


class VerifierSuite:
    """The checks of a verifier as a test class: derive from it and set `plugin`."""

    plugin: ClassVar[str]
    """Registered name."""
    level: ClassVar[Level] = "basic"
    cases: ClassVar[Path | None] = None
    config: ClassVar[Mapping[str, Json] | None] = None
    expected_failures: ClassVar[Mapping[str, str] | None] = None
    project: ClassVar[Path | None] = None
    timeout_s: ClassVar[float] = 10.0

    def __init_subclass__(cls, **options: Any) -> None:
        """Give the class one test for each check."""
        super().__init_subclass__(**options)
        if "plugin" not in vars(cls):
            return
        decorate = parametrize_verifier_checks(
            cls.plugin,
            level=cls.level,
            project=cls.project,
            cases=cls.cases,
            config=cls.config,
            expected_failures=cls.expected_failures,
            timeout_s=cls.timeout_s,
        )

        def test_check(self: Any, check: CheckTest) -> None:
            check()

        cls.test_check = decorate(test_check)  # type: ignore[attr-defined]
