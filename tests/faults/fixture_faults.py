"""Verifiers that go wrong on purpose: how, stands in the ground truth of a row."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from rlvr_core.api import (
    FailureCategory,
    Resource,
    RowVerifier,
    Strict,
    Verdict,
    Verifier,
    VerifyBatch,
    VerifyRow,
    hookimpl,
)


class Truth(Strict):
    does: str = "judge"
    """What is done with the samples below; the others are judged."""
    samples: list[int] | None = None
    """Indices of samples; all of them when None."""


def judged(verifier: Verifier, row: VerifyRow) -> Verdict:
    """Pass about half of all completions, decided by their bytes."""
    return verifier.judge(float(sum(row.completion.encode()) % 2))


def is_meant(row: VerifyRow) -> bool:
    samples = row.ground_truth.samples
    return samples is None or int(row.id.rpartition("/")[2]) in samples


class UnprintableError(Exception):
    """Cannot even be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Odd(RowVerifier):
    """Judges a row, or does what its ground truth says."""

    api_version = "1.0"
    GroundTruth = Truth

    def verify_row(self, row: VerifyRow) -> Verdict:
        does = row.ground_truth.does
        if does == "judge" or not is_meant(row):
            return judged(self, row)
        return getattr(self, f"do_{does}")(row)

    def do_abstain(self, row: VerifyRow) -> Verdict:
        return self.abstain()

    def do_half(self, row: VerifyRow) -> Verdict:
        return self.judge(0.5)

    def do_raise(self, row: VerifyRow) -> Verdict:
        raise ValueError("cannot read it")

    def do_raise_much(self, row: VerifyRow) -> Verdict:
        sys.stdout.write("\U0001f600" * 5000)
        sys.stdout.flush()
        raise ValueError("\0" * 5000)

    def do_raise_unprintable(self, row: VerifyRow) -> Verdict:
        raise UnprintableError

    def do_recurse(self, row: VerifyRow) -> Verdict:
        return self.do_recurse(row)

    def do_interrupt(self, row: VerifyRow) -> Verdict:
        raise KeyboardInterrupt

    def do_leave(self, row: VerifyRow) -> Verdict:
        sys.exit(0)

    def do_end_generator(self, row: VerifyRow) -> Verdict:
        raise GeneratorExit

    def do_doze(self, row: VerifyRow) -> Verdict:
        time.sleep(0.2)
        return self.judge(0.5)

    def do_alarm(self, row: VerifyRow) -> Verdict:
        """Bound itself with a signal, as checkers of mathematics do."""

        def stop(number: int, frame: object) -> None:
            raise TimeoutError

        before = signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            while True:
                pass
        except TimeoutError:
            return self.judge(0.0, FailureCategory.TIME_LIMIT)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def do_none(self, row: VerifyRow) -> Any:
        return None

    def do_float(self, row: VerifyRow) -> Any:
        return 1.0

    def do_text(self, row: VerifyRow) -> Any:
        return "1.0"

    def do_mapping(self, row: VerifyRow) -> Any:
        return {"score": 1.0}

    def do_class(self, row: VerifyRow) -> Any:
        return Verdict

    def do_score_nan(self, row: VerifyRow) -> Verdict:
        return self.judge(float("nan"))

    def do_score_inf(self, row: VerifyRow) -> Verdict:
        return self.judge(float("inf"))

    def do_score_minus_inf(self, row: VerifyRow) -> Verdict:
        return self.judge(float("-inf"))

    def do_score_beyond(self, row: VerifyRow) -> Verdict:
        return self.judge(1.5)

    def do_score_huge_integer(self, row: VerifyRow) -> Verdict:
        return self.judge(10**400)

    def do_score_text(self, row: VerifyRow) -> Verdict:
        return replace(self.judge(1.0), score="1.0")

    def do_score_true(self, row: VerifyRow) -> Verdict:
        return self.judge(True)

    def do_score_list(self, row: VerifyRow) -> Verdict:
        return replace(self.judge(1.0), score=[1.0])

    def do_score_decimal(self, row: VerifyRow) -> Verdict:
        return self.judge(Decimal("0.5"))

    def do_score_tensor(self, row: VerifyRow) -> Verdict:
        class Tensor(list):
            """Compares like one, and is no number."""

            def __ge__(self, other: object) -> bool:
                return True

        return self.judge(Tensor([1.0]))

    def do_score_fraction(self, row: VerifyRow) -> Verdict:
        return self.judge(Fraction(1, 4))

    def do_score_float32(self, row: VerifyRow) -> Verdict:
        import numpy as np

        return self.judge(np.float32(0.25))

    def do_score_int64(self, row: VerifyRow) -> Verdict:
        import numpy as np

        return self.judge(np.int64(1))

    def do_change_the_row(self, row: VerifyRow) -> Verdict:
        row.metadata["seen"] = True
        row.ground_truth.__dict__["does"] = "raise"
        return judged(self, row)


class OddService(Odd):
    """The same, on a thread beside others."""

    resource = Resource.IO


class Miscounting(Verifier):
    """Judges a batch, and returns the verdicts in the form that its first row names."""

    api_version = "1.0"
    GroundTruth = Truth
    resource = Resource.MODEL

    @hookimpl
    def rlvr_verify(self, batch: VerifyBatch) -> Any:
        verdicts = [judged(self, row) for row in batch]
        return getattr(self, f"as_{batch[0].ground_truth.does}")(verdicts)

    def as_tuple(self, verdicts: list[Verdict]) -> Any:
        return tuple(verdicts)

    def as_one_less(self, verdicts: list[Verdict]) -> Any:
        return verdicts[:-1]

    def as_one_more(self, verdicts: list[Verdict]) -> Any:
        return [*verdicts, verdicts[0]]

    def as_one(self, verdicts: list[Verdict]) -> Any:
        return verdicts[0]

    def as_none(self, verdicts: list[Verdict]) -> Any:
        return None

    def as_text(self, verdicts: list[Verdict]) -> Any:
        return "1" * len(verdicts)

    def as_generator(self, verdicts: list[Verdict]) -> Iterator[Verdict]:
        yield from verdicts

    def as_mapping(self, verdicts: list[Verdict]) -> Any:
        return dict(enumerate(verdicts))

    def as_scores(self, verdicts: list[Verdict]) -> Any:
        return [verdict.score for verdict in verdicts]

    def as_array(self, verdicts: list[Verdict]) -> Any:
        import numpy as np

        return np.array([verdict.score for verdict in verdicts])

    def as_huge_scores(self, verdicts: list[Verdict]) -> Any:
        return [replace(verdict, score=10**400) for verdict in verdicts]
