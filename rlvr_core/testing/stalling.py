"""A verifier that stops at a marked row, while another one that it has built holds what it holds.

It stands in for a row on which the other verifier hangs, so that the deadline of the pool can be
tried with any verifier.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from rlvr_core.api.markers import hookimpl
from rlvr_core.api.plugin import Family, Strict, Verifier, VerifyBatch
from rlvr_core.api.verdicts import Json, Verdict
from rlvr_core.plugins.ref import PluginRef

STALL = "rlvr_core.testing.stalling: stop here"
"""The completion at which it stops."""
_FOR_EVER_S = 3600.0


class _AnyTruth(BaseModel):
    model_config = ConfigDict(extra="allow")


class Stalling(Verifier):
    """Judges as the verifier in its config does, and never ends with a row that says `STALL`."""

    api_version = "1.0"
    GroundTruth: ClassVar[type[BaseModel]] = _AnyTruth

    class Config(Strict):
        """What the other verifier is built from."""

        ref: Mapping[str, Json]

    config: Config

    def __init__(self, config: Any = None, *, name: str = "") -> None:
        """Build the other verifier, and take on its scale."""
        super().__init__(config, name=name)
        fields = self.config.ref
        ref = PluginRef(**{**fields, "family": Family(fields["family"])})
        inner: Any = ref.build()
        self._inner = inner
        vars(self).update(GroundTruth=inner.GroundTruth, score_range=inner.score_range)
        self.pass_mark = inner.pass_mark

    @hookimpl
    def rlvr_verify(self, batch: VerifyBatch) -> list[Verdict]:
        """Judge row by row."""
        verdicts: list[Verdict] = []
        for index, row in enumerate(batch):
            batch.starting(index)
            if row.completion == STALL:
                time.sleep(_FOR_EVER_S)
            verdicts += self._inner.rlvr_verify(VerifyBatch(rows=(row,), seed=batch.seed))
        return verdicts


def stalling_ref(ref: PluginRef) -> PluginRef:
    """Return the reference to a `Stalling` over another verifier."""
    config = {
        "ref": {
            "family": ref.family.value,
            "plugin": ref.plugin,
            "name": ref.name,
            "value": ref.value,
            "distribution": ref.distribution,
            "version": ref.version,
            "config": dict(ref.config),
        }
    }
    return PluginRef(
        family=Family.VERIFIERS,
        plugin="stalling",
        name="stalling",
        value=f"{__name__}:{Stalling.__name__}",
        distribution="rlvr-core",
        version=ref.version,
        config=config,
    )
