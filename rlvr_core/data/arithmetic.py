"""The demo's data: sums, products and comparisons, in four disjoint splits.

Train, dev and gate share one pool of problems a kind; transfer has other ranges and other wording.
``3 + 4`` and ``4 + 3`` are the same problem, so both orders stand in the same split. There are only
36 products of two digits: train repeats them, and the held-out splits hold what there is and
sums in place of the missing rows, since a row that stands twice would count twice in an interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rlvr_core.api.errors import StackError
from rlvr_core.api.verdicts import Json
from rlvr_core.data.splits import (
    even_counts,
    shuffled,
    split_by_hash,
    to_json_lines,
    write_once,
)

SIZES: Mapping[str, int] = {"train": 2000, "dev": 200, "transfer": 200, "gate": 200}
"""Rows of each split, unless asked otherwise."""

SHARES: Mapping[str, float] = {"dev": 0.3, "gate": 0.3, "train": 0.4}
"""How the pool of problems that is common to three splits is dealt out."""

EXAMPLES = (
    ("What is 3 + 4?", "3 + 4 = \\boxed{7}"),
    ("Which number is larger, 12 or 31?", "\\boxed{31}"),
)
"""Worked examples, shown as earlier turns. Their problems are in no split."""

SHOWN = frozenset({"sum:3,4", "comparison:12,31"})

INSTRUCTION = " Give the final answer in \\boxed{}."
"""Ends the question when there are no worked examples."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of problem over two numbers."""

    name: str
    wording: str
    answer: Callable[[int, int], int]
    left: range
    right: range

    def problems(self) -> dict[str, list[tuple[int, int]]]:
        """Return each canonical problem with the orders in which it can be asked."""
        found: dict[str, list[tuple[int, int]]] = {}
        pairs = {(a, b) for a in self.left for b in self.right}
        for a, b in sorted(pairs | {(b, a) for a, b in pairs}):
            low, high = sorted((a, b))
            if self.name == "comparison" and a == b:
                continue
            found.setdefault(f"{self.name}:{low},{high}", []).append((a, b))
        return {problem: orders for problem, orders in found.items() if problem not in SHOWN}


@dataclass(frozen=True, slots=True)
class Question:
    """One way of asking one problem."""

    kind: Kind
    a: int
    b: int

    @property
    def text(self) -> str:
        """The question, without examples or instruction."""
        return self.kind.wording.format(a=self.a, b=self.b)

    @property
    def answer(self) -> str:
        """The right answer."""
        return str(self.kind.answer(self.a, self.b))


KINDS = (
    Kind("sum", "What is {a} + {b}?", lambda a, b: a + b, range(1, 21), range(1, 21)),
    Kind("product", "What is {a} * {b}?", lambda a, b: a * b, range(2, 10), range(2, 10)),
    Kind("comparison", "Which number is larger, {a} or {b}?", max, range(10, 100), range(10, 100)),
)
_THREE_DIGITS = range(100, 1000, 9)
"""A hundred numbers are enough; all nine hundred would make 800,000 pairs to sort."""

TRANSFER_KINDS = (
    Kind("sum", "Add {a} and {b}.", lambda a, b: a + b, range(21, 41), range(21, 41)),
    Kind("product", "Multiply {a} by {b}.", lambda a, b: a * b, range(11, 20), range(2, 10)),
    Kind("comparison", "Which is smaller: {a} or {b}?", min, _THREE_DIGITS, _THREE_DIGITS),
)


def make_arithmetic(
    out: Path,
    seed: int = 0,
    examples: int = len(EXAMPLES),
    sizes: Mapping[str, int] = SIZES,
    verifier: str = "math-sympy",
) -> dict[str, Path]:
    """Write ``train.jsonl``, ``dev.jsonl``, ``transfer.jsonl`` and ``gate.jsonl``.

    Args:
        out: Folder of the files; made when absent.
        seed: Chooses and orders the rows. Which split a problem belongs to does not depend on it,
            so files of different seeds are disjoint too.
        examples: Worked examples before each question, 2 or 0.
        sizes: Rows of each split, by its name. Rows of the held-out splits are distinct.
        verifier: ``verifier.type`` of every row.

    Returns:
        The path of each split.

    Raises:
        StackError: RLVR-S106 when a size or the number of examples can't be had.
        DataError: RLVR-D103 when other files stand there already.
    """
    if examples not in (0, len(EXAMPLES)):
        raise StackError("RLVR-S106", f"--examples is {examples}", fix=f"give {len(EXAMPLES)} or 0")
    files = {}
    for split, questions in _questions(seed, sizes).items():
        rows = [
            _row(question, f"{split}-{number:05d}", split, examples, verifier)
            for number, question in enumerate(questions, start=1)
        ]
        files[f"{split}.jsonl"] = to_json_lines(rows)
    return {name.removesuffix(".jsonl"): path for name, path in write_once(out, files).items()}


def _questions(seed: int, sizes: Mapping[str, int]) -> dict[str, list[Question]]:
    pools: dict[str, list[list[Question]]] = {split: [] for split in SIZES}
    for kind in KINDS:
        problems = kind.problems()
        for split, dealt in split_by_hash(problems, SHARES).items():
            pools[split].append(_asked(kind, {name: problems[name] for name in dealt}))
    for kind in TRANSFER_KINDS:
        pools["transfer"].append(_asked(kind, kind.problems()))
    return {split: _chosen(split, pools[split], sizes[split], seed) for split in SIZES}


def _asked(kind: Kind, problems: Mapping[str, list[tuple[int, int]]]) -> list[Question]:
    return [Question(kind, a, b) for orders in problems.values() for a, b in orders]


def _chosen(split: str, pools: list[list[Question]], size: int, seed: int) -> list[Question]:
    """Choose `size` questions, kinds as even as they can be, and mix them."""
    capacities = [size if split == "train" else len(pool) for pool in pools]
    try:
        counts = even_counts(size, capacities)
    except ValueError as error:
        raise StackError(
            "RLVR-S106", f"--{split} {size} is too many", cause=str(error), fix="ask for fewer"
        ) from error
    chosen: list[tuple[int, Question]] = []
    for pool, count in zip(pools, counts, strict=True):
        for turn in range(-(-count // len(pool))):
            ordered = shuffled(pool, lambda question: question.text, "choose", seed, split, turn)
            chosen += [(turn, question) for question in ordered[: count - turn * len(pool)]]
    mixed = shuffled(chosen, lambda item: f"{item[0]} {item[1].text}", "mix", seed, split)
    return [question for _, question in mixed]


def _row(
    question: Question, row_id: str, split: str, examples: int, verifier: str
) -> dict[str, Json]:
    turns = []
    for asked, answered in EXAMPLES[:examples]:
        turns.append({"role": "user", "content": asked})
        turns.append({"role": "assistant", "content": answered})
    asked = question.text if examples else question.text + INSTRUCTION
    return {
        "id": row_id,
        "prompt": [*turns, {"role": "user", "content": asked}],
        "verifier": {"type": verifier, "answer": question.answer},
        "metadata": {
            "kind": question.kind.name,
            "difficulty": _difficulty(question),
            "language": "en",
            "source": "rlvr data make arithmetic",
            "split": split,
        },
    }


def _difficulty(question: Question) -> str:
    """Judge by what a person would carry in the head."""
    a, b = question.a, question.b
    if question.kind in TRANSFER_KINDS:
        return "hard"
    if question.kind.name == "comparison":
        return "easy" if a // 10 != b // 10 else "medium"
    if question.kind.name == "sum":
        return "easy" if a % 10 + b % 10 < 10 else "medium"
    return "easy" if min(a, b) <= 5 else "medium"
