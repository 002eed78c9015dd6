"""For tests: checks of plugins, without torch; `rlvr_core.testing.tiny_model` needs it."""

from rlvr_core.testing.cases import GoldenCase, load_cases
from rlvr_core.testing.report import CheckReport, CheckResult, Outcome
from rlvr_core.testing.run import check_plugin, check_verifier
from rlvr_core.testing.suite import (
    CheckTest,
    VerifierSuite,
    parametrize_plugin_checks,
    parametrize_verifier_checks,
)

__all__ = [
    "CheckReport",
    "CheckResult",
    "CheckTest",
    "GoldenCase",
    "Outcome",
    "VerifierSuite",
    "check_plugin",
    "check_verifier",
    "load_cases",
    "parametrize_plugin_checks",
    "parametrize_verifier_checks",
]
