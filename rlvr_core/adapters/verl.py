"""A verifier as ``compute_score`` of verl.

verl has no reward that means "leave this completion out": None is no number, and NaN makes the mean
of its group, and then the weights, NaN. So a completion without a verdict raises, unless the user
said what it is worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlvr_core.adapters.messages import prompt_messages
from rlvr_core.adapters.scorer import Completion, Scorer, no_verdict
from rlvr_core.api.verdicts import Json, Status
from rlvr_core.config.models import OnTimeout


class VerlScore:
    """verl's custom reward function."""

    def __init__(self, scorer: Scorer, unjudged_score: float | None) -> None:
        self.scorer = scorer
        self.__name__ = scorer.name
        self._unjudged_score = unjudged_score

    def __call__(
        self,
        data_source: str,
        solution_str: str,
        ground_truth: Any,
        extra_info: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> dict[str, float]:
        """Return ``score``, ``acc`` (1 when passed) and ``judged`` (0 when there was no verdict).

        Args:
            data_source: Not read.
            solution_str: The completion.
            ground_truth: The value of the only key that the verifier needs, or a mapping.
            extra_info: Its ``prompt`` is shown to the verifier, when there is one.
            more: Not read.

        Raises:
            DataError: RLVR-D102, there is no usable ground truth; RLVR-V104, it is not this
                verifier's row.
            PluginError: RLVR-V101, the verifier exceeded its error budget; RLVR-V104, it broke on
                this completion; or it cannot be started.
        """
        [verdict] = self.scorer.judge(
            [
                Completion(
                    text=solution_str,
                    ground_truth=self.scorer.reader.from_label(ground_truth),
                    prompt=prompt_messages((extra_info or {}).get("prompt")),
                )
            ]
        )
        score = self._unjudged_score if verdict.score is None else verdict.score
        if score is None:
            raise no_verdict(verdict, self.scorer.name, "verl")
        is_passed = verdict.status is Status.PASSED
        return {
            "score": score,
            "acc": float(is_passed),
            "judged": float(verdict.is_judgement),
        }


def verl_compute_score(
    verifier: str,
    *,
    config: Mapping[str, Json] | None = None,
    unjudged_score: float | None = None,
    workers: int | None = None,
    timeout_s: float = 10.0,
    on_timeout: OnTimeout = "mask",
) -> VerlScore:
    """Return an installed verifier as verl's custom reward function.

    Args:
        verifier: Registered name of the verifier.
        config: Its settings.
        unjudged_score: The score of a completion without a verdict. Default: it raises.
        workers: Worker processes of a verifier that computes, for each process of verl that
            computes rewards. Default: the cores but one.
        timeout_s: Deadline of a completion in seconds, from the moment work on it starts.
        on_timeout: What a completion is that passes its deadline twice: ``mask`` leaves it without
            a verdict, ``fail`` gives it the lowest score.

    Raises:
        StackError: No such verifier is installed, or its settings are not allowed.
        PluginError: It cannot be imported.
    """
    scorer = Scorer(verifier, config, workers=workers, timeout_s=timeout_s, on_timeout=on_timeout)
    return VerlScore(scorer, unjudged_score)
