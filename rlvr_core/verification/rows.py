"""The rows that are handed to supervised verification, before their ground truth is checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from rlvr_core.api.rollouts import FinishReason, Prompt
from rlvr_core.api.verdicts import Json

WireRow: TypeAlias = tuple[str, Prompt, str, dict[str, Json], dict[str, Json], str]
"""A row as it crosses the pipe: the fields of `RawRow` in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRow:
    """One completion to judge."""

    id: str
    """Unique among the rows of its verifier that are submitted and not yet collected."""
    completion: str
    ground_truth: Mapping[str, Json]
    """Checked against the verifier's `GroundTruth` in the worker."""
    prompt: Prompt = ""
    metadata: Mapping[str, Json] = field(default_factory=dict)
    finish_reason: FinishReason = FinishReason.STOP

    def to_wire(self) -> WireRow:
        """Return the row as a plain tuple."""
        return (
            self.id,
            self.prompt,
            self.completion,
            dict(self.ground_truth),
            dict(self.metadata),
            self.finish_reason.value,
        )
