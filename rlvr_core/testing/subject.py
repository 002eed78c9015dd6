"""A plugin under check, and the evidence about it: each part made once, when first needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.metadata import distribution
from typing import Literal

from packaging.requirements import Requirement

from rlvr_core.api.plugin import Plugin
from rlvr_core.api.rollouts import Message
from rlvr_core.api.verdicts import Json, Status, Verdict
from rlvr_core.plugins.hooks import answers
from rlvr_core.plugins.index import InstalledPlugin
from rlvr_core.plugins.stages import VERIFY
from rlvr_core.testing.adversarial import NEUTRAL
from rlvr_core.testing.apart.importing import must_not_import_torch
from rlvr_core.testing.apart.parent import Finding, Request, find
from rlvr_core.testing.cases import GoldenCase
from rlvr_core.testing.judging import Judging
from rlvr_core.testing.project import Project
from rlvr_core.testing.report import Outcome
from rlvr_core.verification.rows import RawRow

Level = Literal["basic", "listed"]

BENCH_ROWS = 24
"""Golden cases that experiments use; the pool judges all."""
ATTACKED_TRUTHS = 4
MOST_TRUTHS = 24
_HASH_SEEDS = (1, 2)


class Subject:
    """One plugin under check.

    Args:
        plugin: What is installed.
        project: Its own files.
        cases: Golden cases of a verifier.
        level: How many golden cases it must bring.
        timeout_s: Deadline of a row; an experiment gets six times as long.
        numbers: The checks that will be made, so that one process makes all experiments.
    """

    def __init__(
        self,
        plugin: InstalledPlugin,
        project: Project,
        cases: Sequence[GoldenCase],
        level: Level,
        timeout_s: float,
        numbers: Sequence[str],
    ) -> None:
        self.plugin = plugin
        self.project = project
        self.cases = cases
        self.level = level
        self.ref = plugin.ref(plugin.name, dict(project.settings.config))
        self.timeout_s = timeout_s
        self.judging = Judging(self.ref, [case.config for case in cases], timeout_s)
        self._numbers = numbers

    @property
    def requirements(self) -> list[Requirement]:
        """What its distribution requires, extras left out."""
        found = [
            Requirement(text) for text in distribution(self.plugin.distribution).requires or ()
        ]
        return [one for one in found if one.marker is None or one.marker.evaluate({"extra": ""})]

    @cached_property
    def cls(self) -> type[Plugin]:
        """The class; import it here only after a process of its own has."""
        return self.ref.load_class()

    def experiment(self, number: str) -> Finding:
        """Return what an experiment found."""
        lost = Finding(Outcome.SKIPPED, "the process did not get that far")
        return self._experiments.get(number, lost)

    @cached_property
    def _experiments(self) -> Mapping[str, Finding]:
        from rlvr_core.testing.apart.child import EXPERIMENTS

        numbers = [number for number in self._numbers if number in EXPERIMENTS]
        return find(self._request, numbers, _HASH_SEEDS[0])

    @property
    def _request(self) -> Request:
        names = [one.name for one in self.requirements]
        return Request(
            ref=self.ref,
            cases=[_as_json(case.row) for case in self.bench_cases],
            may_import_torch=not must_not_import_torch(self.plugin.family, names),
            floor_rows_per_s=self.project.settings.rows_per_s,
            timeout_s=6 * self.timeout_s,
        )

    def keys_under_another_hash_seed(self) -> Finding:
        """Return the verdicts of another new process."""
        return find(self._request, ["R33"], _HASH_SEEDS[1])["R33"]

    @cached_property
    def plain_cases(self) -> list[GoldenCase]:
        """Golden cases that ask for no settings of their own."""
        return [case for case in self.cases if not case.config]

    @cached_property
    def bench_cases(self) -> list[GoldenCase]:
        """A spread of the plain cases."""
        step = max(1, len(self.plain_cases) // BENCH_ROWS)
        return self.plain_cases[::step][:BENCH_ROWS]

    @cached_property
    def golden_verdicts(self) -> dict[str, Verdict]:
        """Case id -> verdict of the pool."""
        verdicts = self.judging.judge_cases(self.cases)
        return {case.id: verdict for case, verdict in zip(self.cases, verdicts, strict=True)}

    @cached_property
    def answered(self) -> list[GoldenCase]:
        """Plain cases that passed, one for each ground truth that tells answers apart.

        A ground truth that is met by a text about nothing has no wrong answers to try.
        """
        by_truth: dict[str, GoldenCase] = {}
        for case in self.plain_cases:
            if self.golden_verdicts[case.id].status is Status.PASSED:
                by_truth.setdefault(repr(sorted(case.row.ground_truth.items())), case)
        cases = list(by_truth.values())
        cases = cases[:: max(1, len(cases) // MOST_TRUTHS)]
        rows = [row_of(case, text) for case in cases for text in NEUTRAL]
        verdicts = iter(self.judging.judge(rows))
        found = []
        for case in cases:
            of_case = [next(verdicts) for _ in NEUTRAL]
            if all(verdict.status is Status.FAILED for verdict in of_case):
                found.append(case)
        return found

    @cached_property
    def attacked(self) -> list[GoldenCase]:
        """A few of `answered`, no answer of which passes for another."""
        chosen: list[GoldenCase] = []
        for case in self.answered:
            if len(chosen) == ATTACKED_TRUTHS:
                break
            rows = [row_of(other, case.row.completion) for other in chosen]
            rows += [row_of(case, other.row.completion) for other in chosen]
            if all(one.status is not Status.PASSED for one in self.judging.judge(rows)):
                chosen.append(case)
        return chosen

    @cached_property
    def judges(self) -> bool:
        """True when it judges completions, as some plugins of a stack's verifiers do not."""
        return answers(self.cls, VERIFY)

    def close(self) -> None:
        """End the workers."""
        self.judging.close()


def row_of(case: GoldenCase, completion: str) -> RawRow:
    """Return the row of a case with another completion."""
    row = case.row
    return RawRow(
        id=row.id,
        prompt=row.prompt,
        completion=completion,
        ground_truth=row.ground_truth,
        metadata=row.metadata,
    )


def _as_json(row: RawRow) -> dict[str, Json]:
    prompt = row.prompt
    return {
        "id": row.id,
        "prompt": prompt if isinstance(prompt, str) else [_pair(one) for one in prompt],
        "completion": row.completion,
        "ground_truth": dict(row.ground_truth),
        "metadata": dict(row.metadata),
    }


def _pair(message: Message) -> list[str]:
    return [message.role, message.content]
