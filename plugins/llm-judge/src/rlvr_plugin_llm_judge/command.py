"""``rlvr-llm-judge``: compare a judge with labels, and write down how far it agrees."""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from rlvr_core.api import EnvironmentFault, RlvrError, StackError, Status, VerifyRow
from rlvr_plugin_llm_judge.calibration import (
    Agreement,
    Calibration,
    JudgeFacts,
    config_sha256,
    unproven,
)
from rlvr_plugin_llm_judge.canaries import WrongAnswer
from rlvr_plugin_llm_judge.figures import PROVEN, Counts, counted, wilson
from rlvr_plugin_llm_judge.labels import Labelled, read_labelled, read_settings
from rlvr_plugin_llm_judge.prompt import prompt_sha256
from rlvr_plugin_llm_judge.verifier import Examination, LlmJudge, Settings

MOST_WRONG = 32
"""Labelled wrong answers that are kept as canaries."""
NOT_PROVEN, NOT_ENOUGH = 1, 5
"""Exit codes: the judge agrees too rarely; or often enough, on too few rows to prove it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    given = _parser().parse_args(arguments)
    try:
        return _calibrate(
            given.settings, given.labelled, given.out, given.verifier, given.concurrency
        )
    except RlvrError as error:
        print(error.render(), file=sys.stderr)  # noqa: T201 - this is a command
        return error.exit_code


def calibrate(
    settings: Settings, rows: Sequence[Labelled], labels_sha256: str, concurrency: int
) -> tuple[Calibration, str | None]:
    """Judge labelled answers, and return how the verdicts agree with the labels.

    Args:
        settings: Of the judge.
        rows: The labelled answers.
        labels_sha256: Of their file.
        concurrency: Answers judged at the same time.

    Returns:
        The calibration, and what was wrong with the first row that got no verdict.

    Raises:
        StackError: RLVR-S102, an endpoint answered as several models.
    """
    verifier = LlmJudge(settings, name="llm-judge")
    with ThreadPoolExecutor(concurrency) as threads:
        examined = list(threads.map(lambda one: _examined(verifier, *one), enumerate(rows)))
    results = list(zip(rows, examined, strict=True))
    judged = [(row, one) for row, one in results if one.verdict.is_judgement]
    pairs = [
        (one.verdict.status is Status.PASSED, row.expected >= settings.pass_mark)
        for row, one in judged
    ]
    statuses = [one.verdict.status for one in examined]
    wrong = [
        WrongAnswer(prompt=row.prompt, completion=row.completion, **row.ground_truth.model_dump())
        for (row, one), (passed, is_right) in zip(judged, pairs, strict=True)
        if not passed and not is_right and one.decision is not None and isinstance(row.prompt, str)
    ]
    broken = [one.verdict for one in examined if one.verdict.status is Status.ERROR]
    made = Calibration(
        schema_version=1,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        judges=_judges(settings, examined),
        prompt_sha256=prompt_sha256(settings.criteria),
        config_sha256=config_sha256(settings.of_the_verdict()),
        labels_sha256=labels_sha256,
        counts=counted(pairs),
        abstained=statuses.count(Status.ABSTAINED),
        errors=statuses.count(Status.ERROR),
        criteria={
            criterion.name: _agreement(criterion.name, judged) for criterion in settings.criteria
        },
        wrong=tuple(wrong[:MOST_WRONG]),
    )
    return made, str(broken[0].diagnostics["message"]) if broken else None


def _calibrate(
    settings_path: Path, labelled: Path, out: Path, name: str | None, concurrency: int
) -> int:
    settings = read_settings(settings_path, name)
    rows = read_labelled(labelled, settings.criteria)
    digest = hashlib.sha256(labelled.read_bytes()).hexdigest()
    made, problem = calibrate(settings, rows, digest, concurrency)
    try:
        out.write_text(made.model_dump_json(indent=2) + "\n", "utf-8")
    except OSError as error:
        raise EnvironmentFault("RLVR-D103", f"{out} cannot be written", cause=str(error)) from error
    reasons = unproven(made, settings.criteria)
    lines = [*_table(made), *([f"first error: {problem}"] if problem else []), ""]
    lines += [f"It may not train: {reason}." for reason in reasons]
    if not reasons:
        lines.append(f"It may train: at least {PROVEN:.0%} agreement is proven.")
    lines.append(f"Written to {out}; name it in the stack as `calibration`.")
    print("\n".join(lines))  # noqa: T201 - this is a command
    if not reasons:
        return 0
    if not made.counts.total:
        return EnvironmentFault.exit_code
    return NOT_ENOUGH if _agrees_often(made) else NOT_PROVEN


def _examined(verifier: LlmJudge, index: int, row: Labelled) -> Examination:
    return verifier.examine(
        VerifyRow(
            id=str(index),
            prompt=row.as_prompt(),
            completion=row.completion,
            ground_truth=row.ground_truth,
        )
    )


def _judges(settings: Settings, examined: Sequence[Examination]) -> tuple[JudgeFacts, ...]:
    """Return what each judge is, as its endpoint says.

    Raises:
        StackError: RLVR-S102, one answered as several models.
    """
    decisions = [one.decision for one in examined if one.decision is not None]
    facts = []
    for index, judge in enumerate(settings.judges):
        reported = {decision.opinions[index].model for decision in decisions} or {""}
        if len(reported) > 1:
            raise StackError(
                "RLVR-S102",
                f"{judge.base_url} answered as several models: {', '.join(sorted(reported))}",
                fix="name one model, so that a calibration can hold for it",
            )
        [model] = reported
        facts.append(JudgeFacts(base_url=judge.base_url, model=judge.model, reported=model))
    return tuple(facts)


def _agreement(name: str, judged: Sequence[tuple[Labelled, Examination]]) -> Agreement:
    """Return how often a criterion got the mark of its label. What was gated got the mark 0."""
    pairs = []
    for row, one in judged:
        if row.criteria is not None and name in row.criteria:
            mark = 0 if one.decision is None else one.decision.marks[name]
            if mark is not None:
                pairs.append((mark, int(row.criteria[name])))
    return Agreement(agreeing=sum(mark == label for mark, label in pairs), total=len(pairs))


def _agrees_often(made: Calibration) -> bool:
    """Return whether more rows could prove what these did not."""
    shares = [(made.counts.agreeing, made.counts.total)]
    shares += [(one.agreeing, one.total) for one in made.criteria.values() if one.total]
    return all(agreeing >= PROVEN * total for agreeing, total in shares)


def _table(made: Calibration) -> list[str]:
    counts: Counts = made.counts
    kappa = "not defined" if counts.kappa is None else f"{counts.kappa:.2f}"
    lines = [
        "                   labelled passed   labelled failed",
        f"judged passed      {counts.passed_right:>15}   {counts.passed_wrong:>15}",
        f"judged failed      {counts.failed_wrong:>15}   {counts.failed_right:>15}",
        f"not judged: {made.abstained} abstained, {made.errors} errors",
        f"agreement: {_share(counts.agreeing, counts.total)}",
        f"Cohen's kappa: {kappa}",
    ]
    lines += [
        f"criterion {name}: {_share(one.agreeing, one.total)}"
        for name, one in made.criteria.items()
        if one.total
    ]
    return lines


def _share(agreeing: int, total: int) -> str:
    if not total:
        return "no rows"
    low, high = wilson(agreeing, total)
    return f"{agreeing} of {total}, {agreeing / total:.1%} (95 % interval {low:.1%} to {high:.1%})"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rlvr-llm-judge")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    one = commands.add_parser(
        "calibrate",
        help="compare a judge with labelled answers",
        description="Exit codes: 0 the judge may train, 1 it agrees too rarely, 2 the settings or "
        "the rows are at fault, 4 it does not answer, 5 too few rows to prove what it seems to do.",
    )
    one.add_argument("settings", type=Path, metavar="STACK_OR_CONFIG", help="YAML or JSON")
    one.add_argument("labelled", type=Path, metavar="LABELLED.jsonl", help="answers with labels")
    one.add_argument("--out", type=Path, required=True, help="the calibration file to write")
    one.add_argument("--verifier", metavar="NAME", help="which judge, where a stack has several")
    one.add_argument(
        "--concurrency",
        type=int,
        default=8,
        choices=range(1, 257),
        metavar="N",
        help="answers judged at the same time [8]",
    )
    return parser
