"""Look at data without training: sizes, routing, lengths, repeats, and overlap between splits."""

from __future__ import annotations

import hashlib
import statistics
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from rlvr_core.api.rollouts import Prompt, Row
from rlvr_core.api.verdicts import Json
from rlvr_core.data.load import RowProblem

_SHOWN_IDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSummary:
    """What stands in one split."""

    rows: int
    by_verifier: Mapping[str, int]
    prompt_characters: Mapping[str, int]
    """Shortest, median and longest prompt, all its messages together."""
    repeated_prompts: int
    """Rows whose prompt already stands in an earlier row of the split."""


@dataclass(slots=True)
class DataReport:
    """What `rlvr data check` says."""

    splits: dict[str, SplitSummary] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    """Each makes the check fail."""
    notes: list[str] = field(default_factory=list)
    """Worth knowing, and may be meant so."""

    @property
    def ok(self) -> bool:
        """True when there is no problem."""
        return not self.problems

    def to_json(self) -> dict[str, Json]:
        """Return the report as plain data."""
        splits = {name: asdict(summary) for name, summary in self.splits.items()}
        return {"ok": self.ok, "splits": splits, "problems": self.problems, "notes": self.notes}


def check_data(
    splits: Mapping[str, Sequence[Row]], row_problems: Sequence[RowProblem] = ()
) -> DataReport:
    """Return what there is to say about some splits.

    A prompt that stands in two splits is a problem: what is trained on can't measure. Within a
    held-out split it is one too, since the row counts twice; within train it is a note. Prompts are
    compared with their white space, case and Unicode form evened out.

    Args:
        splits: Split name to its usable rows.
        row_problems: What is wrong with the others.
    """
    report = DataReport()
    report.problems += [f"{problem.where}: {problem.message}" for problem in row_problems]
    by_prompt = {name: _by_prompt(rows) for name, rows in splits.items()}
    for name, rows in splits.items():
        if not rows:
            report.problems.append(f"{name} holds no usable rows")
            continue
        repeated = len(rows) - len(by_prompt[name])
        report.splits[name] = _summary(rows, repeated)
        if repeated:
            said = report.notes if name == "train" else report.problems
            said.append(_repeats(name, by_prompt[name], repeated))
        report.problems += _contradictions(name, by_prompt[name])
    report.problems += _overlaps(by_prompt)
    return report


def prompt_key(prompt: Prompt) -> str:
    """Return a hex digest that two prompts share when they differ in form only."""
    if isinstance(prompt, str):
        turns = [("user", prompt)]
    else:
        turns = [(turn.role, turn.content) for turn in prompt]
    text = "\x1f".join(f"{role}\x1e{_evened(content)}" for role, content in turns)
    return hashlib.sha256(text.encode()).hexdigest()


def _evened(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _by_prompt(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[prompt_key(row.prompt)].append(row)
    return found


def _summary(rows: Sequence[Row], repeated: int) -> SplitSummary:
    lengths = [_characters(row.prompt) for row in rows]
    return SplitSummary(
        rows=len(rows),
        by_verifier=dict(sorted(Counter(row.verifier for row in rows).items())),
        prompt_characters={
            "min": min(lengths),
            "median": round(statistics.median(lengths)),
            "max": max(lengths),
        },
        repeated_prompts=repeated,
    )


def _characters(prompt: Prompt) -> int:
    if isinstance(prompt, str):
        return len(prompt)
    return sum(len(turn.content) for turn in prompt)


def _repeats(name: str, by_prompt: Mapping[str, Sequence[Row]], repeated: int) -> str:
    example = max(by_prompt.values(), key=len)
    rows = "1 row repeats" if repeated == 1 else f"{repeated} rows repeat"
    return (
        f"{name}: {rows} the prompt of an earlier row; the most common stands "
        f"{len(example)} times ({_ids(example)})"
    )


def _contradictions(name: str, by_prompt: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    for rows in by_prompt.values():
        first = rows[0]
        for row in rows[1:]:
            if row.verifier == first.verifier and row.ground_truth != first.ground_truth:
                yield (
                    f"{name}: rows {first.id!r} and {row.id!r} have the same prompt and "
                    "different ground truths"
                )
                break


def _overlaps(by_prompt: Mapping[str, Mapping[str, Sequence[Row]]]) -> Iterator[str]:
    names = list(by_prompt)
    for position, left in enumerate(names):
        for right in names[position + 1 :]:
            shared = sorted(by_prompt[left].keys() & by_prompt[right].keys())
            if shared:
                rows = [row for key in shared for row in by_prompt[right][key]]
                yield (f"{left} and {right} share {len(shared)} prompts (in {right}: {_ids(rows)})")


def _ids(rows: Sequence[Row]) -> str:
    shown = ", ".join(row.id for row in rows[:_SHOWN_IDS])
    return shown + (", …" if len(rows) > _SHOWN_IDS else "")
