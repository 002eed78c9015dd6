"""Errors that say what, where, why and what to do next.

Every failure is attributed to exactly one party: the stack file or the command line, a plugin, the
data, the environment, or core. Each has a stable code, listed in ``docs/reference/error-codes.md``.
Classes also inherit the builtin they stand in for, and all of them pickle, since they cross process
borders.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar

CATALOGUE: dict[str, str] = {
    # S: the stack file and the command line
    "RLVR-S101": "the stack file could not be read as YAML",
    "RLVR-S102": "the stack file holds keys or values that are not allowed",
    "RLVR-S103": "a plugin named in the stack is not installed",
    "RLVR-S104": "the stack names plugins that cannot be used together",
    "RLVR-S106": "a command-line argument cannot be used",
    "RLVR-S107": "a plugin refused the training prompts",
    # P: plugins
    "RLVR-P101": "two installed distributions register the same plugin name",
    "RLVR-P102": "a plugin could not be imported",
    "RLVR-P103": "a plugin speaks another version of the plugin API",
    "RLVR-P104": "a plugin does not fit the hook specifications",
    "RLVR-P105": "a plugin failed while it was being constructed",
    "RLVR-P106": "a plugin's hook raised or returned something it may not return",
    # V: verification
    "RLVR-V101": "a verifier exceeded its error budget",
    "RLVR-V102": "a verifier worker could not be started",
    "RLVR-V103": "no verifier of that name answers `rlvr_verify`",
    "RLVR-V104": "a completion has no verdict, and another trainer cannot leave it out",
    # D: data
    "RLVR-D101": "a data file could not be read",
    "RLVR-D102": "rows of a data file are not usable",
    "RLVR-D103": "a data file could not be written, or would be overwritten",
    # T: the run
    "RLVR-T101": "the run folder belongs to another run, or already holds one",
    "RLVR-T102": "there is no complete checkpoint to continue from",
    "RLVR-T103": "the run ended early",
    "RLVR-T104": "the run folder cannot be read",
    "RLVR-T105": "another process is writing to the run folder",
    "RLVR-T106": "a file of the run cannot be written",
    "RLVR-T107": "the rollout engine sampled from other weights than the policy's",
    "RLVR-T108": "a checkpoint was damaged after it was written",
    "RLVR-T109": "a process of the run failed or did not come",
    "RLVR-T110": "the policy gives probabilities that are not finite",
    # E: the environment
    "RLVR-E101": "an optional part of rlvr is not installed",
    "RLVR-E102": "the model could not be loaded",
    "RLVR-E103": "the embedded model could not be fetched",
    "RLVR-E104": "the rollout engine failed",
    "RLVR-E105": "memory ran out",
}
"""Every error code and its one-line meaning. Codes are never reused."""


class RlvrError(Exception):
    """Base of every error that rlvr raises on purpose.

    Args:
        code: A key of `CATALOGUE`.
        message: What happened, in one sentence.
        origin: Where: ``file:line:column``, or a distribution with its version.
        cause: Why, usually the text of the underlying exception.
        fix: What to do next.
        report: Where to report it, when the fault is a third party's.

    Raises:
        KeyError: There is no such code.
    """

    exit_code: ClassVar[int] = 1
    """Of a command that ends with this error."""
    party: ClassVar[str] = ""
    """Who is at fault, as the headline says it; empty where nobody is."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        origin: str | None = None,
        cause: str | None = None,
        fix: str | None = None,
        report: str | None = None,
    ) -> None:
        super().__init__(message)
        if code not in CATALOGUE:
            raise KeyError(f"unknown error code {code!r}")
        self.code = code
        self.message = message
        self.origin = origin
        self.cause = cause
        self.fix = fix
        self.report = report

    def __str__(self) -> str:
        return self.render()

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.to_json())

    def to_json(self) -> dict[str, str | None]:
        """Return the error as plain data, for ``--json`` and for crossing processes."""
        return {
            "code": self.code,
            "message": self.message,
            "origin": self.origin,
            "cause": self.cause,
            "fix": self.fix,
            "report": self.report,
        }

    def render(self) -> str:
        """Return the message as people read it: a headline, then one labelled line each."""
        first, *others = self.message.split("\n")
        party = f"  ({self.party})" if self.party else ""
        headline = "\n".join([f"error[{self.code}] {first}{party}", *others])
        labelled = (
            ("from", self.origin),
            ("cause", self.cause),
            ("fix", self.fix),
            ("report", self.report),
        )
        lines = [f"  {label:<6} {_indent(text)}" for label, text in labelled if text]
        return "\n".join([headline, *lines])


class StackError(RlvrError, ValueError):
    """The stack file or the command line is at fault. Exit code 2."""

    exit_code = 2
    party = "the fault of the stack or the command line"


class DataError(RlvrError, ValueError):
    """Data given by the user is at fault. Exit code 2."""

    exit_code = 2
    party = "the data's fault"


class PluginError(RlvrError, RuntimeError):
    """An installed plugin is at fault. Exit code 3."""

    exit_code = 3
    party = "the plugin's fault"


class PluginDependencyError(PluginError, ImportError):
    """Something a plugin needs is not installed. Exit code 3."""

    party = "the fault of the plugin's installation"


class RunFolderError(RlvrError, FileExistsError):
    """The run folder is not one this command may use. Exit code 2."""

    exit_code = 2


class RunEndedError(RlvrError, RuntimeError):
    """The run stopped before its last step. Exit code 4."""

    exit_code = 4


class EnvironmentFault(RlvrError, OSError):
    """The machine lacks something the command needs. Exit code 4."""

    exit_code = 4
    party = "the environment's fault"


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like `name`; None when none is much like it."""
    return next(iter(get_close_matches(name.lower(), list(known), n=1, cutoff=0.6)), None)


def did_you_mean(name: str, known: Iterable[str], then: str = "") -> str:
    """Return ``"; did you mean 'x'?"`` for the closest known name, or an empty string.

    Args:
        name: As somebody wrote it.
        known: What there is.
        then: A sentence to go on with, such as ``Known: x, y``; it follows in either case.
    """
    close = closest(name, known)
    hint = "" if close is None else f"; did you mean {close!r}?"
    return f"{hint or '.'} {then}" if then else hint


def unknown_kind(tag: str, expected_tags: str) -> str:
    """Say that no kind has the name `tag`, in pydantic's context of ``union_tag_invalid``."""
    known = [name.strip("'") for name in expected_tags.split(", ")]
    return f"there is no kind {tag!r}" + (
        did_you_mean(tag, known) or f". Known: {listed(known, 40)}"
    )


def listed(names: Iterable[str], limit: int = 10) -> str:
    """Return names sorted, comma-separated and cut at `limit`, for use in a message."""
    ordered = sorted(names)
    shown = ", ".join(ordered[:limit])
    return shown + (f", … ({len(ordered) - limit} more)" if len(ordered) > limit else "")


def shortened(text: str, limit: int) -> str:
    """Return text of at most `limit` characters: what is longer is cut, and ends in ``…``."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def exception_text(exc: BaseException) -> str:
    """Return the type and the message of an exception, also of one whose message cannot be made."""
    try:
        return f"{type(exc).__name__}: {exc}"
    except Exception:  # noqa: BLE001 - a plugin's own exception class may be broken too
        return f"{type(exc).__name__}, whose message cannot be shown"


def described(value: object) -> str:
    """Return the type of a value and its text, cut at 80 characters, for use in a message."""
    return "None" if value is None else f"{type(value).__name__} {shortened(repr(value), 80)}"


def _indent(text: str) -> str:
    return text.replace("\n", "\n         ")


def _rebuild(cls: type[RlvrError], fields: dict[str, str | None]) -> RlvrError:
    code, message = fields.pop("code"), fields.pop("message")
    return cls(code or "", message or "", **fields)
