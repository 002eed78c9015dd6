"""A verifier as the reward function of OpenRLHF.

OpenRLHF, like verl, has no way to leave one completion out: NaN reaches the weights. What a reward
function raises it logs, and then it misses the reward and stops, which is loud enough.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_core.adapters.scorer import Completion, Scorer, no_verdict
from rlvr_core.api.errors import DataError, shortened
from rlvr_core.api.verdicts import Json, Status
from rlvr_core.config.models import OnTimeout

STOP_TEXTS = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "<eos>",
    "</s>",
    "<｜end▁of▁sentence｜>",
)
"""How widespread models write the end of a turn: OpenRLHF leaves it in the text."""


class OpenRlhfReward:
    """OpenRLHF's ``reward_func``."""

    def __init__(
        self, scorer: Scorer, stop_texts: Sequence[str], unjudged_score: float | None
    ) -> None:
        self.scorer = scorer
        self.__name__ = scorer.name
        self._stop_texts = tuple(stop_texts)
        self._unjudged_score = unjudged_score

    def __call__(
        self, queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any], **more: Any
    ) -> dict[str, Any]:
        """Return rewards, scores and extra logs.

        Args:
            queries: Prompt and completion in one text.
            prompts: Text.
            labels: The value of the only key that the verifier needs, or a JSON object as text.
            more: Not read.

        Returns:
            ``rewards`` and ``scores``, float32 of shape (N,), and ``extra_logs`` with the shares
            ``passed`` and ``judged``; tensors where torch was imported already, else lists and
            numbers.

        Raises:
            DataError: RLVR-D102, a query does not begin with its prompt, or there is no usable
                ground truth; RLVR-V104, a row is not this verifier's.
            PluginError: RLVR-V101, the verifier exceeded its error budget; RLVR-V104, it broke on a
                completion; or it cannot be started.
        """
        reader = self.scorer.reader
        verdicts = self.scorer.judge(
            [
                Completion(
                    text=self._completion(query, prompt),
                    ground_truth=reader.from_label(label),
                    prompt=prompt,
                )
                for query, prompt, label in zip(queries, prompts, labels, strict=True)
            ]
        )
        scores = []
        for verdict in verdicts:
            score = self._unjudged_score if verdict.score is None else verdict.score
            if score is None:
                raise no_verdict(verdict, self.scorer.name, "OpenRLHF")
            scores.append(score)
        passed = [float(verdict.status is Status.PASSED) for verdict in verdicts]
        judged = [float(verdict.is_judgement) for verdict in verdicts]
        return {
            "rewards": _tensor(scores),
            "scores": _tensor(scores),
            "extra_logs": {"passed": _tensor(_mean(passed)), "judged": _tensor(_mean(judged))},
        }

    def _completion(self, query: str, prompt: str) -> str:
        # The query was decoded from tokens, which may have put a mark before the prompt.
        at = query.find(prompt)
        if at < 0:
            raise DataError(
                "RLVR-D102",
                "a query of OpenRLHF does not hold its prompt, so the completion is not known",
                cause=f"the prompt begins with {shortened(prompt, 80)!r},\n"
                f"the query with {shortened(query, 80)!r}",
                fix="the tokenizer does not give back the text that it took; choose another form "
                "of the prompt",
            )
        completion = query[at + len(prompt) :]
        end, begin_of_stop = len(completion), len(completion)
        while end:
            stop = next((one for one in self._stop_texts if completion.endswith(one, 0, end)), "")
            if stop:
                end = begin_of_stop = end - len(stop)
            elif completion[end - 1].isspace():
                end -= 1
            else:
                break
        return completion[:begin_of_stop]


def openrlhf_reward(
    verifier: str,
    *,
    config: Mapping[str, Json] | None = None,
    stop_texts: Sequence[str] = STOP_TEXTS,
    unjudged_score: float | None = None,
    workers: int | None = None,
    timeout_s: float = 10.0,
    on_timeout: OnTimeout = "mask",
) -> OpenRlhfReward:
    """Return an installed verifier as OpenRLHF's ``reward_func``.

    Args:
        verifier: Registered name of the verifier.
        config: Its settings.
        stop_texts: What is taken off the end of a completion.
        unjudged_score: The score of a completion without a verdict. Default: it raises.
        workers: Worker processes of a verifier that computes, for each rollout process. Default:
            the cores but one.
        timeout_s: Deadline of a completion in seconds, from the moment work on it starts.
        on_timeout: What a completion is that passes its deadline twice: ``mask`` leaves it without
            a verdict, ``fail`` gives it the lowest score.

    Raises:
        StackError: No such verifier is installed, or its settings are not allowed.
        PluginError: It cannot be imported.
    """
    scorer = Scorer(verifier, config, workers=workers, timeout_s=timeout_s, on_timeout=on_timeout)
    return OpenRlhfReward(scorer, stop_texts, unjudged_score)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _tensor(values: Any) -> Any:
    # A process that serves rewards over HTTP has no torch, and answers in JSON.
    torch = sys.modules.get("torch")
    return values if torch is None else torch.tensor(values, dtype=torch.float32)
