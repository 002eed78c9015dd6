"""Verdicts from the same supervised pool as in training."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import count

from rlvr_core.api.plugin import Family
from rlvr_core.api.verdicts import Json, Verdict
from rlvr_core.config.models import PluginEntry, VerificationSection
from rlvr_core.plugins.index import PluginIndex
from rlvr_core.plugins.ref import PluginRef
from rlvr_core.testing.cases import GoldenCase
from rlvr_core.verification.engine import VerifyEngine
from rlvr_core.verification.rows import RawRow

_OTHER_ROW = RawRow(id="other", completion="4", ground_truth={"answer": "4"})


class Judging:
    """Judges rows with one verifier; opened when first asked.

    Args:
        ref: The verifier, with the settings of the check.
        configs: Further settings that cases ask for, beside those of `ref`.
        timeout_s: Deadline of a row.
    """

    def __init__(
        self, ref: PluginRef, configs: Iterable[Mapping[str, Json]], timeout_s: float
    ) -> None:
        self._refs = {_key({}): ref}
        for config in configs:
            merged = {**ref.config, **config}
            self._refs.setdefault(
                _key(config), replace(ref, name=f"{ref.name}.{len(self._refs)}", config=merged)
            )
        self._settings = VerificationSection(workers=1, timeout_s=timeout_s, max_error_rate=1.0)
        self._opened = ExitStack()
        self._engine: VerifyEngine | None = None
        self._serials = count()

    def close(self) -> None:
        """End the workers."""
        self._opened.close()

    def judge(
        self, rows: Sequence[RawRow], config: Mapping[str, Json] | None = None
    ) -> list[Verdict]:
        """Return the verdicts on rows, whatever their ids."""
        if self._engine is None:
            self._engine = self._open(list(self._refs.values()))
        name = self._refs[_key(config or {})].name
        unique = [replace(row, id=f"{row.id}/{next(self._serials)}") for row in rows]
        return self._engine.judge(name, unique)

    def judge_cases(self, cases: Sequence[GoldenCase]) -> list[Verdict]:
        """Return the verdicts on golden cases, each under its own settings."""
        found: dict[str, Verdict] = {}
        for key in dict.fromkeys(_key(case.config) for case in cases):
            of_config = [case for case in cases if _key(case.config) == key]
            verdicts = self.judge([case.row for case in of_config], of_config[0].config)
            found |= {case.id: one for case, one in zip(of_config, verdicts, strict=True)}
        return [found[case.id] for case in cases]

    def judge_beside_another(self, rows: Sequence[RawRow]) -> list[Verdict]:
        """Return the verdicts of a new worker in which another verifier has judged before."""
        ref = self._refs[_key({})]
        index = PluginIndex.scan()
        other = index.find(Family.VERIFIERS, "rlvr-core/exact-match", "the check").ref(
            "another", {}
        )
        with self._engine_of([other, ref]) as engine:
            engine.judge(other.name, [_OTHER_ROW])
            return engine.judge(ref.name, rows)

    def judge_around(
        self, stalling: PluginRef, rows: Sequence[RawRow], stall: RawRow, deadline_s: float
    ) -> tuple[list[Verdict], Verdict, list[Verdict]]:
        """Return verdicts from before a row that hangs, on it, and from after it."""
        settings = self._settings.model_copy(update={"timeout_s": deadline_s})
        with VerifyEngine([(stalling, _entry(stalling))], settings) as engine:
            before = engine.judge(stalling.name, rows)
            [hung] = engine.judge(stalling.name, [stall])
            return before, hung, engine.judge(stalling.name, rows)

    def _open(self, refs: Sequence[PluginRef]) -> VerifyEngine:
        return self._opened.enter_context(self._engine_of(refs))

    def _engine_of(self, refs: Sequence[PluginRef]) -> VerifyEngine:
        entries = [(ref, _entry(ref)) for ref in refs]
        return VerifyEngine(entries, self._settings)


def _entry(ref: PluginRef) -> PluginEntry:
    return PluginEntry.model_validate({"name": ref.name, "plugin": ref.plugin, "config": {}})


def _key(config: Mapping[str, Json]) -> str:
    return json.dumps(config, sort_keys=True, default=str)
