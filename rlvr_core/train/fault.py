"""Why a run ends before its time, as all of its processes are told."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Self

from rlvr_core.api.errors import RlvrError, RunEndedError, exception_text
from rlvr_core.train.sudden_end import INTERRUPTED_EXIT_CODE
from rlvr_core.verification.wire import pack_error, unpack_error

_ERRORS = RlvrError.__module__


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a run ends before its time."""

    rank: int
    """Of the process that failed, was interrupted, was killed or did not come."""
    place: str
    """Where it was then."""
    error: RlvrError | None
    """None: it was interrupted."""

    def to_json(self) -> str:
        """Return it as JSON."""
        error = None
        if self.error:
            known = next(each for each in type(self.error).__mro__ if each.__module__ == _ERRORS)
            error = {**json.loads(pack_error(self.error)), "class": known.__name__}
        return json.dumps({"rank": self.rank, "place": self.place, "error": error})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        fields = json.loads(text)
        error = fields["error"] and unpack_error(json.dumps(fields["error"]).encode())
        return cls(rank=fields["rank"], place=fields["place"], error=error or None)

    @property
    def exit_code(self) -> int:
        """What a process that ends for it ends with."""
        return self.error.exit_code if self.error else INTERRUPTED_EXIT_CODE

    def seen_from_elsewhere(self, processes: int) -> BaseException:
        """Return what another process raises for it.

        Args:
            processes: How many the run has.
        """
        error = self.error
        if error is None:
            return KeyboardInterrupt()
        return type(error)(
            error.code,
            f"rank {self.rank} of {processes} failed in {self.place}: {error.message}",
            origin=error.origin,
            cause=error.cause,
            fix=error.fix,
            report=error.report,
        )


def raised(rank: int, place: str, error: BaseException) -> Fault:
    """Return the fault of a process in which an exception was raised, or that was interrupted."""
    told: RlvrError | None
    if isinstance(error, KeyboardInterrupt):
        told = None
    elif isinstance(error, RlvrError):
        told = error
    else:
        told = RunEndedError("RLVR-T109", exception_text(error))
    return Fault(rank=rank, place=place, error=told)


def killed(rank: int, place: str) -> Fault:
    """Return the fault of a process that ended without a word."""
    error = RunEndedError(
        "RLVR-T109",
        "it was killed",
        cause="it ended without a word, as after SIGKILL or a crash in C",
        fix="look at its output, and in the system's log for a process that was ended because "
        "memory was short; --resume continues the run",
    )
    return Fault(rank=rank, place=place, error=error)
