"""The verifier ``verifiers``: a single-turn task of the library of that name scores the reply."""

from __future__ import annotations

import asyncio
import importlib.metadata
from typing import Any, Self

from pydantic import Field, model_validator

from rlvr_core.adapters.verifiers_library import load_library, load_taskset, task_class, why_not
from rlvr_core.api.plugin import RowVerifier, Strict, VerifyRow
from rlvr_core.api.verdicts import FailureCategory, Json, Verdict


class VerifiersTask(RowVerifier):
    """Builds the task of a row, and has it score the completion as the model's only reply."""

    api_version = "1.0"

    class Config(Strict):
        """Which taskset, and what its numbers mean."""

        taskset: str = Field(min_length=1, description="Name of the taskset's package.")
        settings: dict[str, Json] = Field(
            default={}, description="Of the taskset's own configuration."
        )
        score_range: tuple[float, float] = Field(
            default=(0.0, 1.0), description="The lowest and the highest sum of weighted rewards."
        )
        pass_mark: float | None = Field(
            default=None, description="A sum at or above it passes; null: the highest."
        )

        @model_validator(mode="after")
        def _can_be_used(self) -> Self:
            lowest, highest = self.score_range
            if lowest >= highest:
                raise ValueError("`score_range` must be [lowest, highest]")
            if self.pass_mark is not None and not lowest <= self.pass_mark <= highest:
                raise ValueError("`pass_mark` must lie in `score_range`")
            load_taskset(self.taskset, self.settings)
            return self

    class GroundTruth(Strict):
        """The task."""

        data: dict[str, Json] = Field(description="The task's data, as the library writes it.")

    config: Config

    def __init__(self, config: Config, *, name: str = "") -> None:
        super().__init__(config, name=name)
        self.score_range = config.score_range  # type: ignore[misc]
        self.pass_mark = config.pass_mark
        self._library = load_library()
        self._taskset = load_taskset(config.taskset, config.settings)
        self._task_class = task_class(self._taskset)

    @classmethod
    def version_parts(cls, config: Any) -> Json:
        """Return the versions of the library and of the taskset's distribution."""
        name = config.taskset.rsplit("/", 1)[-1].partition("@")[0]
        parts = {"verifiers": importlib.metadata.version("verifiers")}
        try:
            return {**parts, name: importlib.metadata.version(name)}
        except importlib.metadata.PackageNotFoundError:
            return parts

    def verify_row(self, row: VerifyRow) -> Verdict:
        """Judge one completion."""
        data = self._task_class.data_type().model_validate(row.ground_truth.data)
        task = self._task_class(data, self._taskset.config.task)
        reason = why_not(task)
        if reason is not None:
            return self.abstain(FailureCategory.NOT_APPLICABLE, message=reason)
        trace = self._trace(task, row)
        asyncio.run(task.score(trace))
        rewards = {name: one.value for name, one in trace.rewards.items() if one is not None}
        return self.judge(float(trace.reward), rewards=rewards)

    def _trace(self, task: Any, row: VerifyRow) -> Any:
        library = self._library
        from verifiers.v1.types import AssistantMessage, SystemMessage, UserMessage

        kinds = {"system": SystemMessage, "user": UserMessage, "assistant": AssistantMessage}
        turns = [("user", row.prompt)] if isinstance(row.prompt, str) else row.prompt
        messages = [
            kinds[role](content=content)
            for role, content in (
                turn if isinstance(turn, tuple) else (turn.role, turn.content) for turn in turns
            )
        ]
        messages.append(AssistantMessage(content=row.completion))
        nodes = [
            library.MessageNode(
                parent=index - 1 if index else None,
                message=message,
                sampled=index == len(messages) - 1,
            )
            for index, message in enumerate(messages)
        ]
        return library.Trace(
            task=library.TraceTask(type=type(task).__name__, data=task.data),
            agent=library.AgentInfo(config=library.AgentConfig()),
            nodes=nodes,
        )
