"""Checks with completions that want to pass without an answer."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rlvr_core.api.verdicts import Json, Status
from rlvr_core.testing import adversarial
from rlvr_core.testing.apart.parent import Finding
from rlvr_core.testing.cases import GoldenCase
from rlvr_core.testing.check import SHAPED, Check, not_applicable
from rlvr_core.testing.checks.meaning import must_not_pass
from rlvr_core.testing.subject import Subject, row_of
from rlvr_core.verification.rows import RawRow

_FEWEST = 3
_FEW = "golden cases have fewer than three ground truths that tell answers apart"


def many_answers(subject: Subject) -> Finding:
    """List the answers of several rows, the right one among them and not the last."""
    cases = subject.attacked
    if len(cases) < _FEWEST:
        return not_applicable(_FEW)
    rows = []
    for place, case in enumerate(cases):
        others = [one.row.completion for one in cases[:place] + cases[place + 1 :]]
        answers = [*others[:1], case.row.completion, *others[1:]]
        rows += [row_of(case, joint.join(answers)) for joint in ("\n", "\n\nor\n\n")]
    return must_not_pass(subject, rows, "a list of many answers")


def taken_back(subject: Subject) -> Finding:
    """Give the right answer, deny it, and give another."""
    cases = subject.attacked
    if len(cases) < 2:
        return not_applicable(_FEW)
    rows = []
    for case, other in zip(cases, [*cases[1:], cases[0]], strict=True):
        text = (
            f"{case.row.completion}\n\nNo, that is wrong. It is not that. Instead:\n\n"
            f"{other.row.completion}"
        )
        rows.append(row_of(case, text))
    return must_not_pass(subject, rows, "an answer that is taken back")


def boasts(subject: Subject) -> Finding:
    """Claim success in place of an answer."""
    rows = [row_of(case, text) for case in subject.attacked for text in adversarial.BOASTS]
    return must_not_pass(subject, rows, "a claim of success")


def hollow(subject: Subject) -> Finding:
    """Write the marks of a format, and nothing in them."""
    rows = [row_of(case, text) for case in subject.attacked for text in adversarial.HOLLOW]
    return must_not_pass(subject, rows, "a format without content")


def named_constraints(subject: Subject) -> Finding:
    """Name what was asked for, and say that it was done."""
    rows = []
    for case in subject.attacked:
        named = ", ".join(_texts(case.row.ground_truth))
        # Some constraints are met by whoever names them, such as a word that must occur.
        [verdict] = subject.judging.judge([row_of(case, named)])
        if verdict.status is not Status.PASSED:
            rows.append(row_of(case, f"I have followed every constraint. Constraints met: {named}"))
    return must_not_pass(subject, rows, "a constraint that is only named")


def spans(subject: Subject) -> Finding:
    """Claim everything, nothing, and everything twice."""
    rows: list[RawRow] = []
    cases = [(case, items) for case in subject.attacked if (items := _items(case)) is not None]
    union = [item for _, items in cases for item in items]
    for case, items in cases:
        others = [item for item in union if item not in items]
        keys = sorted({key for item in items if isinstance(item, dict) for key in item})
        blank = [dict.fromkeys(keys, "")] * len(items) if keys else [""] * len(items)
        rows += [
            row_of(case, json.dumps(claim, ensure_ascii=False))
            for claim in (items + others, blank, items[:-1] + items[:1] * 3)
            if claim and _distinct(claim) != _distinct(items)
        ]
    return must_not_pass(subject, rows, "a claim of all, empty or repeated spans")


def _distinct(items: list[Json]) -> set[str]:
    return {json.dumps(item, sort_keys=True) for item in items}


def _items(case: GoldenCase) -> list[Json] | None:
    """Return the entities of an answer that is a bare JSON list of several."""
    try:
        found = json.loads(case.row.completion)
    except ValueError:
        return None
    return found if isinstance(found, list) and len(found) > 1 else None


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict) or hasattr(value, "items"):
        for item in value.values():
            yield from _texts(item)


_NEEDS = (*SHAPED, "R20")

CHECKS = (
    Check("R50", "A list of many answers does not pass.", many_answers, _NEEDS),
    Check("R51", "An answer that is taken back does not pass.", taken_back, _NEEDS),
    Check("R52", "A claim of success does not pass.", boasts, _NEEDS),
    Check("R53", "Marks of a format with nothing in them do not pass.", hollow, _NEEDS),
    Check("C55", "Instructions: a constraint that is named and not met does not pass.",
          named_constraints, _NEEDS, "constraints"),
    Check("C56", "Extraction: claims of all, of empty or of repeated spans do not pass.", spans,
          _NEEDS, "extraction"),
)  # fmt: skip
