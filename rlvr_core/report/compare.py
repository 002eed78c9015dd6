"""Before against after, arm against arm, strict against lenient: paired by prompt.

Only evaluations made under equal conditions are subtracted; where that does not hold, the reason
stands in place of the number.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from rlvr_core.evaluate.statistics import PairedDifference, bootstrap_mean, paired_difference
from rlvr_core.report.read import Record, Run

CONDITIONS = ("temperature", "max_completion_tokens", "samples_per_prompt")
"""What must be equal before two evaluations are subtracted."""

Shares = dict[str, float | None]
"""For each prompt the share of its judged samples that passed; None when none was judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """One grader's word on one evaluation."""

    step: int
    split: str
    grader: str
    prompts: int
    verdicts: int
    passed: int
    masked: int
    accuracy: float | None
    low: float | None
    """95 % Wilson interval."""
    high: float | None
    parse_failure_rate: float | None
    length_mean: float
    truncated_rate: float
    entropy: float | None
    temperature: float | None
    samples_per_prompt: float | None
    max_completion_tokens: int | None
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """First and last evaluation of one split by one grader in one arm."""

    arm: str
    split: str
    grader: str
    before: Accuracy
    after: Accuracy
    paired: PairedDifference | None
    why_not: str | None
    """Why there is no `paired`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatShare:
    """How much of a strict grader's gain a lenient grader sees too."""

    arm: str
    split: str
    strict: str
    lenient: str
    prompts: int
    """Judged by both graders both times; the others are left out."""
    strict_gain: float
    lenient_gain: float
    """Right answers gained however they are written."""
    format_gain: float
    """`strict_gain` - `lenient_gain`: gained by writing the answer as asked."""
    low: float
    """95 % paired bootstrap interval of `format_gain`."""
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmComparison:
    """Verifier arm minus control arm on the same prompts, after equally many steps."""

    split: str
    grader: str
    step: int
    paired: PairedDifference


def accuracies(run: Run) -> list[Accuracy]:
    """Return every (evaluation, grader) of a run, in the order of its log."""
    return [
        Accuracy(
            step=record["step"],
            split=record["split"],
            grader=grader,
            prompts=record["prompts"],
            **{
                key: said.get(key)
                for key in ("verdicts", "passed", "masked", "accuracy", "low", "high")
            },
            parse_failure_rate=said.get("parse_failure_rate"),
            length_mean=record["length_mean"],
            truncated_rate=record["truncated_rate"],
            entropy=record.get("entropy"),
            temperature=record.get("temperature"),
            samples_per_prompt=record.get("samples_per_prompt"),
            max_completion_tokens=record.get("max_completion_tokens"),
            file=record["file"],
        )
        for record in run.evals
        for grader, said in record["graders"].items()
    ]


def changes(run: Run, arm: str) -> list[Change]:
    """Return first against last evaluation, for each split and grader with at least two."""
    found: list[Change] = []
    points: defaultdict[tuple[str, str], list[Accuracy]] = defaultdict(list)
    for point in accuracies(run):
        points[point.split, point.grader].append(point)
    for (split, grader), line in points.items():
        if len(line) < 2:
            continue
        first, last = _record(run, line[0]), _record(run, line[-1])
        why_not = unequal_conditions(first, last)
        paired = None
        if why_not is None:
            paired = _paired(shares(run, first, grader), shares(run, last, grader))
            why_not = None if paired else "no prompt was judged both times"
        found.append(
            Change(
                arm=arm,
                split=split,
                grader=grader,
                before=line[0],
                after=line[-1],
                paired=paired,
                why_not=why_not,
            )
        )
    return found


def format_share(run: Run, arm: str, split: str) -> FormatShare | None:
    """Split the gain on `split` into answer format and right answers.

    Needs a grader whose name holds ``flexible`` beside the one that rewards (the first), and two
    evaluations under equal conditions; None otherwise.
    """
    records = [record for record in run.evals if record["split"] == split]
    if len(records) < 2 or unequal_conditions(records[0], records[-1]):
        return None
    strict, *others = records[0]["graders"]
    lenient = next((grader for grader in others if "flexible" in grader.lower()), None)
    if lenient is None or not {strict, lenient} <= records[-1]["graders"].keys():
        return None
    rises = [
        _rises(shares(run, records[0], grader), shares(run, records[-1], grader))
        for grader in (strict, lenient)
    ]
    common = [row for row in rises[0] if row in rises[1]]
    if not common:
        return None
    strict_gain, lenient_gain = (sum(rise[row] for row in common) / len(common) for rise in rises)
    low, high = bootstrap_mean([rises[0][row] - rises[1][row] for row in common])
    return FormatShare(
        arm=arm,
        split=split,
        strict=strict,
        lenient=lenient,
        prompts=len(common),
        strict_gain=strict_gain,
        lenient_gain=lenient_gain,
        format_gain=strict_gain - lenient_gain,
        low=low,
        high=high,
    )


def compare_arms(verifier: Run, control: Run) -> list[ArmComparison]:
    """Compare the arms at the last step after which both evaluated a split."""
    found: list[ArmComparison] = []
    for split in splits(verifier):
        own = {r["step"]: r for r in verifier.evals if r["split"] == split and r["step"] > 0}
        other = {r["step"]: r for r in control.evals if r["split"] == split and r["step"] > 0}
        step = max(own.keys() & other.keys(), default=None)
        if step is None or unequal_conditions(own[step], other[step]):
            continue
        for grader in own[step]["graders"]:
            if grader not in other[step]["graders"]:
                continue
            paired = _paired(
                shares(control, other[step], grader), shares(verifier, own[step], grader)
            )
            if paired is not None:
                found.append(ArmComparison(split=split, grader=grader, step=step, paired=paired))
    return found


def splits(run: Run) -> list[str]:
    """Return the evaluated splits, in the order of their first evaluation."""
    return list(dict.fromkeys(record["split"] for record in run.evals))


def shares(run: Run, record: Record, grader: str) -> Shares:
    """Return for each prompt of an evaluation the share of judged samples that passed."""
    judged: defaultdict[str, list[bool]] = defaultdict(list)
    for row in run.evaluation(record, ["row_id", "verdicts"]):
        passes = judged[row["row_id"]]
        for verdict in row["verdicts"]:
            if verdict["grader"] == grader and verdict["status"] in ("passed", "failed"):
                passes.append(verdict["status"] == "passed")
    return {row: sum(passes) / len(passes) if passes else None for row, passes in judged.items()}


def unequal_conditions(first: Record, second: Record) -> str | None:
    """Say which condition differs between two evaluations; None when all are equal."""
    for key in CONDITIONS:
        if first.get(key) != second.get(key):
            name = key.replace("_", " ")
            return f"{name} differs: {first.get(key)} and {second.get(key)}"
    return None


def _paired(before: Shares, after: Shares) -> PairedDifference | None:
    rows = _common(before, after)
    return paired_difference([before[row] for row in rows], [after[row] for row in rows])


def _rises(before: Shares, after: Shares) -> dict[str, float]:
    rises: dict[str, float] = {}
    for row in _common(before, after):
        old, new = before[row], after[row]
        if old is not None and new is not None:
            rises[row] = new - old
    return rises


def _common(before: Shares, after: Shares) -> list[str]:
    # Sorted, so that the bootstrap does not depend on the order of a file.
    return sorted(before.keys() & after.keys())


def _record(run: Run, point: Accuracy) -> Record:
    return next(
        record
        for record in run.evals
        if record["step"] == point.step and record["split"] == point.split
    )
