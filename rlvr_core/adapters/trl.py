"""A verifier as a reward function of TRL.

In TRL a reward function may return None for a completion, which then has no part in its group's
baseline when no other function rewards it. So whatever is no judgement becomes None there, and its
share is logged as a metric.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_core.adapters.messages import completion_text, prompt_messages
from rlvr_core.adapters.scorer import Completion, Scorer
from rlvr_core.api.verdicts import Json, Status, Verdict
from rlvr_core.config.models import OnTimeout


class TrlReward:
    """A reward function of TRL.

    TRL reads its name from ``__name__``, which may be set.
    """

    def __init__(self, scorer: Scorer, columns: Mapping[str, str] | None) -> None:
        self.scorer = scorer
        self.__name__ = scorer.name
        self._columns = columns

    def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> list[float | None]:
        """Return one reward a completion; None where there is no verdict.

        Args:
            prompts: Text, or messages.
            completions: Text, or messages.
            columns: The data set's other columns, and what else TRL hands over.

        Raises:
            DataError: RLVR-D102, there is no usable ground truth.
            PluginError: RLVR-V101, the verifier exceeded its error budget; or it cannot be started.
        """
        truths = self.scorer.reader.from_columns(columns, self._columns, len(completions))
        verdicts = self.scorer.judge(
            [
                Completion(
                    text=completion_text(completion),
                    ground_truth=truth,
                    prompt=prompt_messages(prompt),
                )
                for prompt, completion, truth in zip(prompts, completions, truths, strict=True)
            ]
        )
        log_metric = columns.get("log_metric")
        if callable(log_metric) and verdicts:
            for status in (Status.ERROR, Status.ABSTAINED):
                log_metric(f"{self.__name__}/{status.value}", _share(verdicts, status))
        return [verdict.score for verdict in verdicts]


class AsyncTrlReward:
    """A reward function of TRL that is awaited, beside others that are."""

    def __init__(self, reward: TrlReward) -> None:
        self.scorer = reward.scorer
        self.__name__ = reward.__name__
        self._reward = reward

    async def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> list[float | None]:
        """Return one reward a completion, as `TrlReward` does, without blocking the event loop."""
        return await asyncio.to_thread(self._reward, prompts, completions, **columns)


def trl_reward(
    verifier: str,
    *,
    config: Mapping[str, Json] | None = None,
    columns: Mapping[str, str] | None = None,
    workers: int | None = None,
    timeout_s: float = 10.0,
    on_timeout: OnTimeout = "mask",
) -> TrlReward:
    """Return an installed verifier as a reward function of TRL's trainers.

    Args:
        verifier: Registered name of the verifier; it is the function's ``__name__`` too.
        config: Its settings.
        columns: Key of the verifier's ground truth to column of the data set. Default: columns are
            called like the keys, or the data is rlvr's own, with a column ``verifier``.
        workers: Worker processes of a verifier that computes. Default: the cores but one, shared
            among the processes that the launcher started on this machine.
        timeout_s: Deadline of a completion in seconds, from the moment work on it starts.
        on_timeout: What a completion is that passes its deadline twice: ``mask`` leaves it without
            a reward, ``fail`` gives it the lowest score.

    Raises:
        StackError: No such verifier is installed, or its settings are not allowed.
        PluginError: It cannot be imported.
    """
    scorer = Scorer(verifier, config, workers=workers, timeout_s=timeout_s, on_timeout=on_timeout)
    return TrlReward(scorer, columns)


def trl_reward_async(
    verifier: str,
    *,
    config: Mapping[str, Json] | None = None,
    columns: Mapping[str, str] | None = None,
    workers: int | None = None,
    timeout_s: float = 10.0,
    on_timeout: OnTimeout = "mask",
) -> AsyncTrlReward:
    """Return what `trl_reward` returns, as a function that is awaited."""
    scorer = Scorer(verifier, config, workers=workers, timeout_s=timeout_s, on_timeout=on_timeout)
    return AsyncTrlReward(TrlReward(scorer, columns))


def _share(verdicts: Sequence[Verdict], status: Status) -> float:
    return sum(verdict.status is status for verdict in verdicts) / len(verdicts)
