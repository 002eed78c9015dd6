"""One verifier instance in a worker: rows in, verdicts as bytes out."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from rlvr_core.api.errors import EnvironmentFault, exception_text
from rlvr_core.api.plugin import RowVerifier, Verifier, VerifyBatch, VerifyRow
from rlvr_core.api.rollouts import FinishReason
from rlvr_core.api.verdicts import FailureCategory, Json, Status, Verdict
from rlvr_core.plugins.ref import PluginRef
from rlvr_core.verification import output
from rlvr_core.verification.contract import Contract, ContractError, check_count, encode
from rlvr_core.verification.rows import WireRow

_STDOUT = 1
_FINISH_REASONS = {reason.value: reason for reason in FinishReason}


class Grader:
    """Judges rows with one instance of a verifier; whatever goes wrong becomes a verdict."""

    def __init__(self, ref: PluginRef, seed: int) -> None:
        # The parent asks workers for verifiers only.
        plugin = cast(Verifier, ref.build())
        self._verifier: Any = plugin
        self._contract = Contract(plugin)
        self._seed = seed
        self._is_row_verifier = (
            isinstance(plugin, RowVerifier) and type(plugin).rlvr_verify is RowVerifier.rlvr_verify
        )

    def judge(
        self, rows: Sequence[WireRow], announce: Callable[[int], None]
    ) -> Iterator[tuple[int, bytes]]:
        """Yield (index, verdict) for every row, as soon as each is known.

        Args:
            rows: What to judge.
            announce: Told the index of each row when work on it begins.
        """
        if self._is_row_verifier:
            for index, row in enumerate(rows):
                announce(index)
                yield index, self._judge_one(row)
        else:
            yield from self._judge_batch(rows, announce)

    def _judge_one(self, wire: WireRow) -> bytes:
        printed = output.size_bytes(_STDOUT)
        started_s = time.perf_counter()
        try:
            row = self._built(wire)
            if isinstance(row, bytes):
                return row
            if self._is_row_verifier:
                verdict = self._verifier.verify_row(row)
            else:
                batch = VerifyBatch(rows=(row,), seed=self._seed)
                (verdict,) = check_count(self._verifier.rlvr_verify(batch), 1)
            return self._contract.encode(verdict, time.perf_counter() - started_s)
        except BaseException as exc:  # noqa: BLE001 - also SystemExit: a row must not end the worker
            return _broken(exc, time.perf_counter() - started_s, output.tail(_STDOUT, printed))

    def _judge_batch(
        self, wires: Sequence[WireRow], announce: Callable[[int], None]
    ) -> Iterator[tuple[int, bytes]]:
        rows: list[VerifyRow] = []
        places: list[int] = []
        for index, wire in enumerate(wires):
            row = self._built(wire)
            if isinstance(row, bytes):
                yield index, row
            else:
                rows.append(row)
                places.append(index)
        if not rows:
            return
        started_s = time.perf_counter()
        batch = VerifyBatch(
            rows=tuple(rows), seed=self._seed, on_row=lambda at: announce(places[at])
        )
        try:
            verdicts = self._verifier.rlvr_verify(batch)
        except BaseException:  # noqa: BLE001 - which row is at fault shows when each goes alone
            for index in places:
                announce(index)
                yield index, self._judge_one(wires[index])
            return
        latency_s = (time.perf_counter() - started_s) / len(rows)
        yield from zip(places, self._encoded(verdicts, len(rows), latency_s), strict=True)

    def _encoded(self, verdicts: Any, count: int, latency_s: float) -> list[bytes]:
        try:
            checked = check_count(verdicts, count)
        except ContractError as exc:
            return [_broken(exc, latency_s, "")] * count
        encoded = []
        for verdict in checked:
            try:
                encoded.append(self._contract.encode(verdict, latency_s))
            except Exception as exc:  # noqa: BLE001 - what a verifier returned may break when read
                encoded.append(_broken(exc, latency_s, ""))
        return encoded

    def _built(self, wire: WireRow) -> VerifyRow | bytes:
        """Return the row, or the verdict on it when its ground truth is unusable."""
        identifier, prompt, completion, ground_truth, metadata, finish_reason = wire
        try:
            truth = self._verifier.GroundTruth.model_validate(ground_truth)
        except ValidationError as exc:
            return encode(
                Status.ABSTAINED,
                None,
                FailureCategory.BAD_GROUND_TRUTH,
                None,
                {"message": _problems(exc, self._verifier.GroundTruth)},
                0.0,
            )
        return VerifyRow(
            id=identifier,
            prompt=prompt,
            completion=completion,
            ground_truth=truth,
            metadata=metadata,
            finish_reason=_FINISH_REASONS[finish_reason],
        )


def error_verdict(
    failure: FailureCategory, message: str, printed: str = "", latency_s: float = 0.0
) -> Verdict:
    """Return the verdict that says that the verifier broke."""
    diagnostics: dict[str, Json] = {"message": _cut(message, 1000)}
    if printed:
        diagnostics["output"] = _cut(printed, 1500)
    return Verdict(
        status=Status.ERROR, failure=failure, diagnostics=diagnostics, latency_s=latency_s
    )


def _broken(exc: BaseException, latency_s: float, printed: str) -> bytes:
    if isinstance(exc, ContractError):
        failure, message = FailureCategory.CONTRACT_VIOLATION, str(exc)
    elif isinstance(exc, EnvironmentFault):
        failure, message = FailureCategory.BACKEND_UNAVAILABLE, exc.message
    else:
        failure, message = FailureCategory.VERIFIER_EXCEPTION, exception_text(exc)
    verdict = error_verdict(failure, message, printed)
    diagnostics = dict(verdict.diagnostics)
    if failure is FailureCategory.VERIFIER_EXCEPTION:
        frames = traceback.extract_tb(exc.__traceback__)[-4:]
        diagnostics["traceback"] = [
            _cut(f"{frame.filename}:{frame.lineno} in {frame.name}", 200) for frame in frames
        ]
    return encode(Status.ERROR, None, failure, None, diagnostics, latency_s)


def _problems(exc: ValidationError, model: type[BaseModel]) -> str:
    # Here and not above: it imports readers of stack files, which few workers ever need.
    from rlvr_core.config.wording import problems_of, said_of

    return _cut("; ".join(said_of(problems_of(exc, model), "ground truth")), 900)


def _cut(text: str, most_bytes: int) -> str:
    """Return the beginning of `text` that takes at most so many bytes as JSON.

    A NUL takes six bytes there and an emoji four: together the parts must fit the contract.
    """
    shown = text[:most_bytes]
    while (size_bytes := len(_as_json(shown))) > most_bytes:
        shown = shown[: len(shown) * most_bytes // size_bytes]
    return shown if shown == text else f"{shown[:-1]}…"


def _as_json(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass")
