"""Checks of the stack's verifiers, on the stack's own rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from rlvr_core.api.errors import listed, shortened
from rlvr_core.api.plugin import Resource, Verifier
from rlvr_core.api.rollouts import Row
from rlvr_core.api.verdicts import Json, Status, Verdict
from rlvr_core.plugins.members import ground_truth_model
from rlvr_core.plugins.resolve import LoadedPlugin
from rlvr_core.rl.keyed_random import keyed_generator
from rlvr_core.selfcheck.bench import Bench
from rlvr_core.selfcheck.result import Found, failed, not_applicable, ok
from rlvr_core.verification.engine import VerifyEngine
from rlvr_core.verification.rows import RawRow

ROWS = 3
"""Of each verifier, for completions of every kind."""
BLANK_ROWS = 12
"""Of each verifier, for blank completions."""
ANSWERS = 2
"""Values of a row's ground truth that are tried as completions."""
BLANK = ("", " \n\t ")
ODD = ("\0", "\\boxed{{{", "I do not know.")
"""Completions that have broken verifiers."""
CHARACTERS_A_TOKEN = 4
SHOWN_CHARACTERS = 60

Verdicts = dict[tuple[str, str], Verdict]
"""By instance name and id of the row."""


@dataclass(frozen=True, slots=True)
class _Questions:
    """One verifier, and what it is asked."""

    loaded: LoadedPlugin
    verifier: Verifier
    rows: Sequence[RawRow]


def verdicts(bench: Bench) -> Found:
    """Ask every verifier about the same completions three times, in other orders and workers."""
    longest = CHARACTERS_A_TOKEN * bench.prepared.resolved.stack.rollout.max_completion_tokens
    asked = list(_questions(bench, ROWS, lambda row: _completions(row, longest)))
    first = _judged(bench.verify_engine, asked, list)
    judged = [verdict for verdict in first.values() if verdict.is_judgement]
    rounds = {"in another order": _judged(bench.verify_engine, asked, _shuffled)}
    on_cpu = [one for one in asked if one.verifier.resource is Resource.CPU]
    if on_cpu:
        settings = bench.prepared.resolved.stack.verification.model_copy(
            update={"workers": 2, "max_error_rate": 1.0}
        )
        refs = [(one.loaded.ref, one.loaded.entry) for one in on_cpu]
        seed = bench.prepared.resolved.stack.seed
        with VerifyEngine(refs, settings, seed=seed) as two_workers:
            rounds["of two workers"] = _judged(two_workers, on_cpu, _shuffled)
    rows = {(one.loaded.name, row.id): row for one in asked for row in one.rows}
    for key, verdict in first.items():
        where = f"{key[0]}: {_named(rows[key])}"
        if verdict.status is Status.ERROR:
            message = verdict.diagnostics.get("message") or verdict.failure
            return failed(f"{where}: could not judge it: {message}", culprit=key[0])
        for when, found in rounds.items():
            if key in found and _facts(found[key]) != _facts(verdict):
                said = f"{_shown(verdict)} at first, {_shown(found[key])} {when}"
                return failed(f"{where}: {said}", culprit=key[0])
    if not judged:
        return not_applicable("the verifiers abstained from every completion that was tried")
    passed = sum(verdict.status is Status.PASSED for verdict in judged)
    names = listed(one.loaded.name for one in asked)
    return ok(
        f"{len(first)} completions for {names}, {passed} of them passed, judged again "
        f"{' and '.join(rounds)}"
    )


def blank(bench: Bench) -> Found:
    """Ask every verifier that rewards rows about completions that say nothing."""
    rewarding = {row.verifier for row in bench.prepared.splits["train"]}
    asked = [
        one
        for one in _questions(bench, BLANK_ROWS, lambda row: BLANK)
        if one.loaded.name in rewarding and one.loaded.entry.weight > 0
    ]
    found = _judged(bench.verify_engine, asked, list)
    for one in asked:
        lowest = max(one.verifier.score_range[0], 0.0)
        for row in one.rows:
            verdict = found[one.loaded.name, row.id]
            if verdict.score is not None and verdict.score > lowest:
                return failed(
                    f"{one.loaded.name}: {_named(row)}: {_shown(verdict)}", culprit=one.loaded.name
                )
    judged = sum(verdict.is_judgement for verdict in found.values())
    if not judged:
        return not_applicable("no verifier judged a blank completion")
    return ok(f"{judged} blank completions, none of them paid")


def _questions(
    bench: Bench, count: int, completions: Callable[[Row], Sequence[str]]
) -> Iterator[_Questions]:
    for loaded in bench.prepared.resolved.verifiers.values():
        if not isinstance(loaded.plugin, Verifier):
            continue
        rows = _rows_of(loaded, bench.prepared.splits["train"])[:count]
        asked = [
            RawRow(
                id=f"selfcheck/{row.id}/{number}",
                prompt=row.prompt,
                completion=completion,
                ground_truth=row.ground_truth,
                metadata=row.metadata,
            )
            for row in rows
            for number, completion in enumerate(completions(row))
        ]
        if asked:
            yield _Questions(loaded, loaded.plugin, asked)


def _rows_of(loaded: LoadedPlugin, rows: Sequence[Row]) -> list[Row]:
    """Return the rows that are routed to a verifier; for one without any, all that it understands.

    Such a verifier only grades evaluations, of rows that were written for another.
    """
    own = [row for row in rows if row.verifier == loaded.name]
    return own or [row for row in rows[:BLANK_ROWS] if _understands(loaded, row)]


def _understands(loaded: LoadedPlugin, row: Row) -> bool:
    try:
        ground_truth_model(loaded.ref).model_validate(dict(row.ground_truth))
    except ValidationError:
        return False
    return True


def _completions(row: Row, longest: int) -> list[str]:
    """Return completions of every kind: blank, odd, as long as can be, and some maybe right."""
    answers = list(dict.fromkeys(_texts(dict(row.ground_truth))))[:ANSWERS]
    tried = [text for answer in answers for text in (answer, f"The answer is \\boxed{{{answer}}}")]
    return [*BLANK, *ODD, "a" * longest, *tried]


def _texts(value: Json) -> Iterator[str]:
    """Yield the texts and numbers of a ground truth."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif value is not None:
        yield str(value)


def _judged(
    engine: VerifyEngine,
    asked: Sequence[_Questions],
    order: Callable[[Sequence[RawRow]], Sequence[RawRow]],
) -> Verdicts:
    found: Verdicts = {}
    for one in asked:
        rows = order(one.rows)
        answers = engine.judge(one.loaded.name, rows)
        found.update(
            ((one.loaded.name, row.id), verdict) for row, verdict in zip(rows, answers, strict=True)
        )
    return found


def _shuffled(rows: Sequence[RawRow]) -> Sequence[RawRow]:
    shuffled = list(rows)
    keyed_generator("selfcheck", "order").shuffle(shuffled)
    return shuffled


def _facts(verdict: Verdict) -> tuple[object, ...]:
    """Return what must not change; diagnostics may hold measured times."""
    return verdict.status, verdict.score, verdict.failure, verdict.stage


def _named(row: RawRow) -> str:
    shown = shortened(repr(row.completion), SHOWN_CHARACTERS)
    return f"row {row.id.split('/', 1)[1].rsplit('/', 1)[0]!r}, completion {shown}"


def _shown(verdict: Verdict) -> str:
    score = "" if verdict.score is None else f" with score {verdict.score:g}"
    return f"{verdict.status.value}{score}"
