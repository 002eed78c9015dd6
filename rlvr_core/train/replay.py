"""The border to the engine and the verifiers, where a step is recorded and answered from a record.

`ReplayingEngine` and `ReplayingVerifiers` stand in front of the real ones. While a `Tape` runs,
they look there first, and note what was said. Plugins are called as ever and see no difference.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence

from transformers import PreTrainedModel

from rlvr_core.api.verdicts import Status, Verdict
from rlvr_core.rollout.engine import Engine, Sample, SampleRequest
from rlvr_core.train.recording import Judged, Sampled, sample_key, verdict_key
from rlvr_core.verification.engine import VerifyEngine
from rlvr_core.verification.rows import RawRow


class Tape:
    """What is said over the border in one step, and what was said there when it was made before."""

    def __init__(self) -> None:
        self.is_running = False
        self.samples: list[Sampled] = []
        """Of this step so far, in the order in which they were asked for."""
        self.verdicts: list[Judged] = []
        """The same for verdicts."""
        self._known_samples: dict[bytes, Sample] = {}
        self._known_verdicts = defaultdict[bytes, deque[Verdict]](deque)

    def start(self, samples: Sequence[Sampled] = (), verdicts: Sequence[Judged] = ()) -> None:
        """Begin a step.

        Args:
            samples: To answer from.
            verdicts: To answer from. One that is an error is asked for again: a service that was
                down may be back.
        """
        self.stop()
        self.is_running = True
        self.samples, self.verdicts = [], []
        self._known_samples = {entry.key: entry.sample for entry in samples}
        for entry in verdicts:
            if entry.verdict.status is not Status.ERROR:
                self._known_verdicts[entry.key].append(entry.verdict)

    def stop(self) -> None:
        """End the step: what is said from now on goes by unseen."""
        self.is_running = False
        self._known_samples.clear()
        self._known_verdicts.clear()

    def sample(self, key: bytes) -> Sample | None:
        """Return the recorded answer to a request."""
        return self._known_samples.get(key)

    def has_verdict(self, key: bytes) -> bool:
        """Tell whether `take_verdict` would find one."""
        return bool(self._known_verdicts.get(key))

    def take_verdict(self, key: bytes) -> Verdict | None:
        """Return the recorded answer to a question; one that was asked twice has two."""
        found = self._known_verdicts.get(key)
        return found.popleft() if found else None


class ReplayingEngine:
    """Implements `Engine` with a tape in front of another engine."""

    def __init__(self, engine: Engine, tape: Tape) -> None:
        self._engine = engine
        self._tape = tape

    def sample(
        self,
        requests: Sequence[SampleRequest],
        on_finished: Callable[[int, Sample], None],
    ) -> None:
        """Sample the requests that are not on the tape. See `Engine.sample`."""
        if not self._tape.is_running:
            self._engine.sample(requests, on_finished)
            return
        keys = [sample_key(request) for request in requests]
        answers = [self._tape.sample(key) for key in keys]
        missing = [index for index, answer in enumerate(answers) if answer is None]
        for index, answer in enumerate(answers):
            if answer is not None:
                on_finished(index, answer)

        def finish(position: int, sample: Sample) -> None:
            answers[missing[position]] = sample
            on_finished(missing[position], sample)

        if missing:
            self._engine.sample([requests[index] for index in missing], finish)
        is_new = set(missing)
        for index, answer in enumerate(answers):
            if answer is not None:
                name = "/".join(str(part) for part in requests[index].key[2:])
                replayed = index not in is_new
                entry = Sampled(name=name, key=keys[index], sample=answer, is_replayed=replayed)
                self._tape.samples.append(entry)

    def push(self, model: PreTrainedModel, version: int) -> None:
        """Pass on. See `Engine.push`."""
        self._engine.push(model, version)


class ReplayingVerifiers:
    """Asks verifiers what the tape does not know. The methods are those of `VerifyEngine`."""

    def __init__(self, verifiers: VerifyEngine, tape: Tape) -> None:
        self._verifiers = verifiers
        self._tape = tape

    def submit(self, verifier: str, row: RawRow) -> None:
        """Let a worker begin, unless the verdict is known."""
        if not (self._tape.is_running and self._tape.has_verdict(verdict_key(verifier, row))):
            self._verifiers.submit(verifier, row)

    def judge(self, verifier: str, rows: Sequence[RawRow]) -> list[Verdict]:
        """Return one verdict a row, in order."""
        if not self._tape.is_running:
            return self._verifiers.judge(verifier, rows)
        keys = [verdict_key(verifier, row) for row in rows]
        known = [self._tape.take_verdict(key) for key in keys]
        missing = [row for row, verdict in zip(rows, known, strict=True) if verdict is None]
        judged = iter(self._verifiers.judge(verifier, missing) if missing else ())
        verdicts = [verdict or next(judged) for verdict in known]
        for row, key, before, verdict in zip(rows, keys, known, verdicts, strict=True):
            replayed = before is not None
            entry = Judged(name=row.id, key=key, verdict=verdict, is_replayed=replayed)
            self._tape.verdicts.append(entry)
        return verdicts

    def abandon(self) -> None:
        """Pass on."""
        self._verifiers.abandon()
