"""What experiments work with: the plugin, built as core builds it, and the golden rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import ValidationError

from rlvr_core.api.plugin import Plugin, Verifier, VerifyBatch, VerifyRow
from rlvr_core.api.rollouts import FinishReason, Message, Prompt
from rlvr_core.api.verdicts import Json, Verdict
from rlvr_core.plugins.ref import PluginRef
from rlvr_core.verification.contract import check_count


class BrokenError(Exception):
    """A check does not hold; the message says what was found."""


class NotApplicableError(Exception):
    """The plugin has nothing that the check is about."""


@dataclass(frozen=True, slots=True)
class Bench:
    """One plugin on the bench."""

    ref: PluginRef
    cls: type[Plugin]
    cases: Sequence[Mapping[str, Json]] = ()
    """Golden rows that have the settings of the check, as plain JSON."""
    floor_rows_per_s: float | None = None
    signal_handlers: str = ""
    """As they were before anything was judged."""
    data: dict[str, Json] = field(default_factory=dict)
    """What experiments give the parent beside their outcome."""

    def new(self) -> Any:
        """Return a new instance."""
        return self.ref.build()

    def rows(self, verifier: Verifier) -> list[VerifyRow]:
        """Return new rows for the golden cases, without those whose ground truth is refused."""
        rows = list(self._rows(verifier))
        if not rows:
            raise NotApplicableError("there are no golden cases with a usable ground truth")
        return rows

    def _rows(self, verifier: Verifier) -> Iterator[VerifyRow]:
        for case in self.cases:
            try:
                truth = verifier.GroundTruth.model_validate(case["ground_truth"])
            except ValidationError:
                continue
            yield VerifyRow(
                id=case["id"],
                prompt=_prompt(case["prompt"]),
                completion=case["completion"],
                ground_truth=truth,
                metadata=dict(case["metadata"]),
                finish_reason=FinishReason.STOP,
            )


def verify(verifier: Any, rows: Sequence[VerifyRow]) -> list[Verdict]:
    """Call the hook itself with one batch.

    Raises:
        ContractError: It did not return one verdict a row.
        BrokenError: One of them is no verdict.
    """
    verdicts = check_count(verifier.rlvr_verify(VerifyBatch(rows=tuple(rows))), len(rows))
    for verdict in verdicts:
        if not isinstance(verdict, Verdict):
            raise BrokenError(f"returned a {type(verdict).__name__} in place of a Verdict")
    return list(verdicts)


def key_of(verdict: Verdict) -> str:
    """Return all that a verifier says, as text that can be compared."""
    said = verdict.to_json()
    said = {name: said[name] for name in ("status", "score", "failure", "stage", "diagnostics")}
    return json.dumps(said, sort_keys=True, default=repr)


def same(rows: Sequence[VerifyRow], one: Sequence[str], other: Sequence[str], what: str) -> None:
    """Raise when two lists of keys differ.

    Raises:
        BrokenError: They do; names the first row.
    """
    for row, first, second in zip(rows, one, other, strict=True):
        if first != second:
            raise BrokenError(f"{what}: case {row.id} got {first} and {second}")


def _prompt(written: Json) -> Prompt:
    if isinstance(written, str):
        return written
    return tuple(Message(*cast(list[str], message)) for message in written)
