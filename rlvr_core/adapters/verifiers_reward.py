"""A verifier as a reward of a task of the library ``verifiers``.

What a reward raises there is an error of the task: the rollout is recorded as failed and is not
trained on. So a completion without a verdict raises.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from rlvr_core.adapters.messages import prompt_messages
from rlvr_core.adapters.scorer import Completion, Scorer, no_verdict
from rlvr_core.api.verdicts import Json
from rlvr_core.config.models import OnTimeout


def verifiers_reward(
    verifier: str,
    *,
    config: Mapping[str, Json] | None = None,
    columns: Mapping[str, str] | None = None,
    workers: int | None = None,
    timeout_s: float = 10.0,
    on_timeout: OnTimeout = "mask",
) -> Callable[[Any, Any], Awaitable[float]]:
    """Return an installed verifier as a reward function of tasks of ``verifiers``.

    It is awaited with the task's data and the trace, and judges the trace's last reply.

    Args:
        verifier: Registered name of the verifier.
        config: Its settings.
        columns: Key of the verifier's ground truth to field of the task's data. Default: fields are
            called like the keys.
        workers: Worker processes of a verifier that computes. Default: the cores but one.
        timeout_s: Deadline of a completion in seconds, from the moment work on it starts.
        on_timeout: What a completion is that passes its deadline twice: ``mask`` leaves it without
            a verdict, ``fail`` gives it the lowest score.

    Raises:
        StackError: No such verifier is installed, or its settings are not allowed.
        PluginError: It cannot be imported.
    """
    scorer = Scorer(verifier, config, workers=workers, timeout_s=timeout_s, on_timeout=on_timeout)

    def judged(task: Any, trace: Any) -> float:
        fields = {key: [value] for key, value in task.model_dump(mode="json").items()}
        [truth] = scorer.reader.from_columns(fields, columns, 1)
        prompt = prompt_messages(task.prompt)
        completion = Completion(text=trace.last_reply, ground_truth=truth, prompt=prompt)
        [verdict] = scorer.judge([completion])
        if verdict.score is None:
            raise no_verdict(verdict, scorer.name, "a reward of verifiers")
        return verdict.score

    async def reward(task: Any, trace: Any) -> float:
        """Return the score of the trace's last reply."""
        return await asyncio.to_thread(judged, task, trace)

    reward.__name__ = scorer.name.replace("-", "_")
    reward.scorer = scorer  # type: ignore[attr-defined]
    return reward
