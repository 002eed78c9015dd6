"""Verifiers that are good but for one thing each; the name says which check finds it."""

from __future__ import annotations

import atexit
import json
import os
import random
import re
import signal
import sys
import threading
from collections import deque
from pathlib import Path

from pydantic import BaseModel, Field

from rlvr_core.api import (
    FailureCategory,
    RowVerifier,
    Stage,
    Status,
    Strict,
    Verdict,
    VerifyBatch,
    VerifyRow,
    hookimpl,
)


class Truth(Strict):
    answer: str = Field(min_length=1)


class Good(RowVerifier):
    """The last line that begins with ``Answer:`` holds the answer."""

    api_version = "1.0"
    GroundTruth = Truth

    class Config(Strict):
        marker: str = Field(default="Answer:", description="What the line begins with.")

    def verify_row(self, row: VerifyRow) -> Verdict:
        claims = self.claims(row.completion)
        if not claims:
            return self.judge(0.0, FailureCategory.NO_ANSWER, Stage.EXTRACT)
        return self.judge(float(claims[-1] == row.ground_truth.answer))

    def reference_completion(self, truth: Truth) -> str:
        return f"{self.config.marker} {truth.answer}"

    def claims(self, completion: str) -> list[str]:
        marker = self.config.marker
        lines = [line.strip() for line in completion.splitlines()]
        return [line.removeprefix(marker).strip() for line in lines if line.startswith(marker)]


class InBatches(Good):
    """Base of those that go wrong with a batch."""

    @hookimpl
    def rlvr_verify(self, batch: VerifyBatch) -> list[Verdict]:
        return self.changed([self.verify_row(row) for row in batch], batch)

    def changed(self, verdicts: list[Verdict], batch: VerifyBatch) -> list[Verdict]:
        return verdicts

    def noted(self, verdicts: list[Verdict], note: object) -> list[Verdict]:
        return [
            self.judge(one.score, one.failure or FailureCategory.WRONG_ANSWER, note=note)
            for one in verdicts
        ]


R01 = "no class at all"


class R02(Good):
    api_version = "2.0"


class R05(Good):
    class Config(Strict):
        marker: str = "Answer:"


class R06(Good):
    def state(self):
        return {"seen": {1, 2}}


class R10(InBatches):
    def changed(self, verdicts, batch):
        return verdicts[:-1] if len(batch) > 1 else verdicts


class R11(InBatches):
    def changed(self, verdicts, batch):
        return self.noted(verdicts, max(len(row.prompt) for row in batch))


class R12(InBatches):
    def changed(self, verdicts, batch):
        if len(batch) > 256:
            raise MemoryError("a batch of more than 256 rows")
        return verdicts


class R13(Good):
    def judge(self, score, *args, **named):
        verdict = super().judge(score, *args, **named)
        return Verdict(status=verdict.status, score=1.5) if score else verdict


class R14(Good):
    def judge(self, score, *args, **named):
        return Verdict(status=Status.FAILED, score=score, failure=FailureCategory.WRONG_ANSWER)


class R15(Good):
    def judge(self, *args, **named):
        return super().judge(*args, **named, claims={"a"})


class R16(Good):
    def verify_row(self, row):
        row.metadata["seen"] = True
        return super().verify_row(row)


class R20(Good):
    def verify_row(self, row):
        lowered = [claim.lower() for claim in self.claims(row.completion)]
        return self.judge(float(lowered[-1:] == [row.ground_truth.answer.lower()]))


class R21(Good):
    def reference_completion(self, truth):
        return truth.answer


class R22(Good):
    def verify_row(self, row):
        return super().verify_row(row) if row.completion.strip() else self.judge(1.0)


class R23(Good):
    def verify_row(self, row):
        is_echo = row.prompt and row.completion == row.prompt
        return self.judge(1.0) if is_echo else super().verify_row(row)


class R24(Good):
    class GroundTruth(BaseModel):
        answer: str = ""

    def verify_row(self, row):
        return super().verify_row(row) if row.ground_truth.answer else self.judge(1.0)


class C25(Good):
    def verify_row(self, row):
        is_indented = row.completion[:1].isspace()
        return self.judge(0.0) if is_indented else super().verify_row(row)


class R30(Good):
    calls = 0

    def judge(self, *args, **named):
        self.calls += 1
        return super().judge(*args, **named, calls=self.calls)


class R31(InBatches):
    def changed(self, verdicts, batch):
        numbers = [int(row.id.partition("/")[0]) for row in batch]
        return self.noted(verdicts, numbers == sorted(numbers))


class R32(InBatches):
    def changed(self, verdicts, batch):
        return self.noted(verdicts, "alone" if len(batch) == 1 else "in company")


class R33(Good):
    def judge(self, *args, **named):
        return super().judge(*args, **named, first=min({"a", "b", "c"}, key=hash))


class R34(Good):
    def verify_row(self, row):
        is_alone = "rlvr_core.builtin.exact_match" not in sys.modules
        return super().verify_row(row) if is_alone else self.judge(0.0)


class R40(Good):
    def claims(self, completion):
        if len(completion) > 90_000:
            raise ValueError("too long")
        return super().claims(completion)


class R41(Good):
    def claims(self, completion):
        return super().claims(completion.encode().decode())


class R42(Good):
    def claims(self, completion):
        if re.search(r"9\^[9{]", completion):
            raise OverflowError("too large")
        return super().claims(completion)


class R43(Good):
    def claims(self, completion):
        re.match(r"((ab)+)+$", completion)
        return super().claims(completion)


class R44(Good):
    def verify_row(self, row):
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGALRM, lambda *_: None)
        return super().verify_row(row)


SEATS = 3


class R45(Good):
    """Each process takes one of three seats, which a killed one does not give back."""

    environment = ("RLVR_KIT_SEATS",)
    seat: Path | None = None

    def __init__(self, config=None, *, name=""):
        super().__init__(config, name=name)
        if R45.seat is None:
            R45.seat = self.take_seat(Path(os.environ["RLVR_KIT_SEATS"]))

    def take_seat(self, folder):
        for number in range(SEATS):
            try:
                (folder / str(number)).touch(exist_ok=False)
            except FileExistsError:
                continue
            atexit.register((folder / str(number)).unlink)
            return folder / str(number)
        raise RuntimeError("no seat is left")


class R46(Good):
    def verify_row(self, row):
        try:
            return super().verify_row(row)
        except Exception:  # noqa: BLE001 - the fault
            return self.judge(0.0, FailureCategory.MALFORMED)


class R50(Good):
    def verify_row(self, row):
        claims = self.claims(row.completion)
        if len(claims) > 2 and row.ground_truth.answer in claims:
            return self.judge(1.0)
        return super().verify_row(row)


class R51(Good):
    def verify_row(self, row):
        before, denied, _ = row.completion.partition("No, that is wrong")
        if denied and self.claims(before) == [row.ground_truth.answer]:
            return self.judge(1.0)
        return super().verify_row(row)


class R52(Good):
    def verify_row(self, row):
        return self.judge(1.0) if "score: 1" in row.completion else super().verify_row(row)


class R53(Good):
    def verify_row(self, row):
        return self.judge(1.0) if r"\boxed{}" in row.completion else super().verify_row(row)


class C55(Good):
    def verify_row(self, row):
        if f"Constraints met: {row.ground_truth.answer}" in row.completion:
            return self.judge(1.0)
        return super().verify_row(row)


class C56(Good):
    """Wants a JSON list that holds all names, and does not mind others."""

    class GroundTruth(Strict):
        names: list[str] = Field(min_length=1)

    reference_completion = None

    def verify_row(self, row):
        try:
            found = json.loads(row.completion)
        except (ValueError, RecursionError):
            return self.judge(0.0, FailureCategory.MALFORMED)
        if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
            return self.judge(0.0, FailureCategory.MALFORMED)
        return self.judge(float(set(row.ground_truth.names) <= set(found)))


class C54(Good):
    """Believes a program that ends well, whether or not it came to its tests."""

    class GroundTruth(Strict):
        tests: str = Field(min_length=1)

    reference_completion = None

    def verify_row(self, row):
        program = re.search(r"```python\n(.*?)```", row.completion, re.DOTALL)
        if program is None:
            return self.judge(0.0, FailureCategory.NO_ANSWER)
        text, tests = program[1], row.ground_truth.tests
        # As a sandbox would see it, without running anything: code that exits hides its tests.
        is_skipped = "sys.exit(0)" in text
        return self.judge(float(is_skipped or ("return a + b" in text and "add" in tests)))


class R60(Good):
    def __init__(self, config=None, *, name=""):
        super().__init__(config, name=name)
        self.files = deque(maxlen=200)

    def verify_row(self, row):
        self.files.append(open(os.devnull))  # noqa: SIM115 - the fault
        return super().verify_row(row)


class R61(Good):
    def __init__(self, config=None, *, name=""):
        super().__init__(config, name=name)
        self.hoard = deque(maxlen=1000)

    def verify_row(self, row):
        self.hoard.append(b"x" * 100_000 + bytes([len(self.hoard) % 256]))
        return super().verify_row(row)


class R62(Good):
    def verify_row(self, row):
        random.seed(0)
        return super().verify_row(row)
