"""What a plugin is: one class with a config model, an API version and some hooks."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, overload

from pydantic import BaseModel, ConfigDict

from rlvr_core.api.markers import hookimpl
from rlvr_core.api.rollouts import FinishReason, Prompt
from rlvr_core.api.session import Need
from rlvr_core.api.verdicts import FailureCategory, Json, Stage, Status, Verdict

API_VERSION = "1.0"
"""Version of the plugin API: a number of its own. Majors must match, a plugin's minor may not be
newer."""

RESERVED_CONFIG_KEYS = frozenset({"plugin", "timeout_s", "on_timeout", "concurrency", "weight"})
"""Core's own words in a stack entry; a plugin's `Config` must not declare them."""

ROUTING_KEY = "type"
"""Core's own word in a row's ``verifier``, where it names the verifier; a `GroundTruth` must not
declare it."""


def normalised(name: str) -> str:
    """Return the form under which names of plugins are compared: ``-``, ``_`` and case folded."""
    return re.sub(r"[-_]+", "-", name).lower()


class Family(StrEnum):
    """The four kinds of plugin, which are sections of a stack file and entry-point groups."""

    VERIFIERS = "verifiers"
    SAMPLERS = "samplers"
    ADVANTAGE = "advantage"
    MONITORS = "monitors"

    @property
    def entry_point_group(self) -> str:
        """Name of the entry-point group that plugins of this family register in."""
        return "rlvr.advantages" if self is Family.ADVANTAGE else f"rlvr.{self.value}"


class Strict(BaseModel):
    """Base of config and ground-truth models: unknown keys are errors, instances immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Plugin:
    """Base of all plugins.

    A plugin class sets `api_version` itself, to the version it was written against, and declares
    its settings as `Config`. Core constructs it once with a validated config.
    """

    api_version: ClassVar[str]
    Config: ClassVar[type[BaseModel]] = Strict

    def __init__(self, config: Any = None, *, name: str = "") -> None:
        """Keep the validated config; `name` is the instance name in the stack."""
        self.config = config if config is not None else self.Config()
        self.name = name

    @property
    def needs(self) -> frozenset[Need]:
        """Per-token quantities that this plugin's token and loss hooks read."""
        return frozenset()

    def state(self) -> Mapping[str, Json]:
        """Return what must survive a resume, as JSON. Saved with every checkpoint."""
        return {}

    def load_state(self, state: Mapping[str, Json]) -> None:
        """Take back what `state` returned."""


class Resource(StrEnum):
    """What a verifier mostly waits for; decides how core spreads its rows."""

    CPU = "cpu"
    """Computation: rows are spread over worker processes."""
    IO = "io"
    """A service: `concurrency` rows at once (default 32)."""
    MODEL = "model"
    """A model of its own: one worker, real batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRow:
    """One completion to judge."""

    id: str
    prompt: Prompt
    completion: str
    ground_truth: Any
    """An instance of the verifier's `GroundTruth` model."""
    metadata: Mapping[str, Json] = field(default_factory=dict)
    finish_reason: FinishReason = FinishReason.STOP


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyBatch(Sequence[VerifyRow]):
    """Rows to judge, in order. Verdicts must be pure in (row, config, seed)."""

    rows: Sequence[VerifyRow]
    seed: int = 0
    on_row: Callable[[int], None] | None = None
    """Told the index of each row when work on it begins; starts that row's deadline."""

    def starting(self, index: int) -> None:
        """Announce that work on row `index` begins now."""
        if self.on_row is not None:
            self.on_row(index)

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> VerifyRow: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[VerifyRow]: ...

    def __getitem__(self, index: int | slice) -> VerifyRow | Sequence[VerifyRow]:
        return self.rows[index]

    def __iter__(self) -> Iterator[VerifyRow]:
        return iter(self.rows)


class Verifier(Plugin):
    """A plugin that implements `rlvr_verify`, in worker processes killed at the deadline."""

    GroundTruth: ClassVar[type[BaseModel]]
    """Model of what a data row must say for this verifier (`verifier.type` excepted)."""
    resource: ClassVar[Resource] = Resource.CPU
    score_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    """The lowest and the highest score. A plugin whose range depends on its settings takes it from
    one called ``score_range``, in its constructor."""
    pass_mark: float | None = None
    """A score at or above it is ``passed``. Default: the top of `score_range`. A plugin whose mark
    depends on its settings sets it in its constructor."""
    environment: ClassVar[Sequence[str]] = ()
    """Names of the environment variables it needs; no others reach its workers."""
    members_key: ClassVar[str | None] = None
    """Of a verifier that asks others: the setting that lists them, as entries of a stack.

    Core has every member judge each row, under its own model and in workers of its own. Then
    `rlvr_verify` runs in the process that asked, and each row's `ground_truth` is a mapping of the
    members' names to their verdicts, whose scores are put on a scale from 0 to 1."""

    @classmethod
    def version_parts(cls, config: Any) -> Json:
        """Return what else decides its verdicts, and so is part of their version.

        Beside source, settings and declared dependencies, which core counts: such as the digest of
        a file that a setting names, or the version of a library that is not declared.
        """
        return None

    def judge(
        self,
        score: float,
        failure: FailureCategory = FailureCategory.WRONG_ANSWER,
        stage: Stage = Stage.COMPARE,
        **diagnostics: Json,
    ) -> Verdict:
        """Return ``passed`` when `score` reaches the pass mark, else ``failed`` with `failure`."""
        mark = self.score_range[1] if self.pass_mark is None else self.pass_mark
        passed = score >= mark
        return Verdict(
            status=Status.PASSED if passed else Status.FAILED,
            score=score,
            failure=None if passed else failure,
            stage=stage,
            diagnostics=diagnostics,
        )

    def abstain(
        self,
        failure: FailureCategory = FailureCategory.NOT_APPLICABLE,
        stage: Stage | None = None,
        **diagnostics: Json,
    ) -> Verdict:
        """Return a verdict that says nothing about the completion and is masked."""
        return Verdict(
            status=Status.ABSTAINED, failure=failure, stage=stage, diagnostics=diagnostics
        )


class RowVerifier(Verifier):
    """A verifier that judges one row at a time: write `verify_row`, core does the rest."""

    # Not an ABC: core says at load which plugin lacks it, and what it may have been misspelt as.
    @abstractmethod
    def verify_row(self, row: VerifyRow) -> Verdict:
        """Judge one completion. An exception becomes status ``error`` for this row alone."""

    @hookimpl
    def rlvr_verify(self, batch: VerifyBatch) -> list[Verdict]:
        """Judge the rows one after the other, announcing each."""
        verdicts = []
        for index, row in enumerate(batch):
            batch.starting(index)
            verdicts.append(self.verify_row(row))
        return verdicts
