"""Compare two values without structure: words, choices, units, numbers, expressions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction

from rlvr_plugin_math_sympy.choices import read_choice
from rlvr_plugin_math_sympy.exact import exact_value
from rlvr_plugin_math_sympy.guards import NotMathsError, TooCostlyError, is_readable
from rlvr_plugin_math_sympy.normalise import canonical
from rlvr_plugin_math_sympy.numbers import Number, literal, same_number
from rlvr_plugin_math_sympy.plain import parse
from rlvr_plugin_math_sympy.splitting import without_thousands
from rlvr_plugin_math_sympy.units import Measured, split_unit

MAX_SYMBOLIC_COMPARISONS = 40
RUNGS = ("string", "number", "structure", "symbolic")


@dataclass(slots=True)
class Ladder:
    """Which rung was reached, and how much sympy work is left for this row."""

    tolerance: float | None = None
    rung: str = "string"
    symbolic_left: int = MAX_SYMBOLIC_COMPARISONS
    unreadable: list[str] = field(default_factory=list)

    def reach(self, rung: str) -> None:
        """Note that `rung` was needed; the highest one counts."""
        if RUNGS.index(rung) > RUNGS.index(self.rung):
            self.rung = rung

    def spend(self) -> None:
        """Take one sympy comparison; raise TooCostlyError when none is left."""
        self.reach("symbolic")
        self.symbolic_left -= 1
        if self.symbolic_left < 0:
            raise TooCostlyError("too many symbolic comparisons")


_TEXT = re.compile(r"\\text\{([^{}]*)\}")
_TEXT_OR_COMMAND = re.compile(r"\\text\{[^{}]*\}|\\[A-Za-z]+")
_WORD = re.compile(r"(?<![A-Za-z\\])[A-Za-z]{4,}|[A-Za-z]{2,} [A-Za-z]{2,}|[\u4e00-\u9fff]")
_PLAIN_WORD = re.compile(r"(?:yes|no|odd|even|true|east|west|north|south|\w*[^\W\d_]{4,}\w*)")
_MATHS_WORD = re.compile(
    r"sqrt|cbrt|sinh?|cosh?|tanh?|arc\w+|asin|acos|atan|infinity|floor|ceil|alpha|beta|theta|gamma"
)


def same_leaf(answer: str, gold: str, ladder: Ladder) -> bool:
    """Return whether a single value `answer` equals a single value `gold`."""
    if canonical(answer) == canonical(gold):
        return True
    first, second = literal(answer), literal(gold)
    if first is not None and second is not None:
        ladder.reach("number")
        return same_number(first, second, ladder.tolerance)
    chosen = _same_choice(answer, gold, ladder)
    if chosen is not None:
        return chosen
    return _same_measured(answer, gold, ladder)


def _same_choice(answer: str, gold: str, ladder: Ladder) -> bool | None:
    """Compare choice letters; None when the gold is no choice or the answer gives no letter."""
    expected, given = read_choice(gold), read_choice(answer)
    if expected is None:
        return None
    if given is None:
        return same_leaf(answer, expected.content, ladder) if expected.content else None
    if given.letter != expected.letter or given.hedged:
        return False
    if not expected.content or not given.content:
        return True
    return same_leaf(given.content, expected.content, ladder)


def _same_measured(answer: str, gold: str, ladder: Ladder) -> bool:
    rest = split_unit(gold, bare_letters=False, trusted=True).value
    letters = bool(re.search(r"[A-Za-z]", _TEXT_OR_COMMAND.sub("", rest)))
    first = split_unit(answer, bare_letters=not letters)
    second = split_unit(gold, bare_letters=bool(first.unit), trusted=True)
    if letters and not first.unit:
        # `5 m^2` may be a square of m as well: either way it is `5 m2` where 5 is 5.
        spaced = [split_unit(text, bare_letters=True) for text in (answer, gold)]
        if spaced[0].unit and spaced[0].unit == spaced[1].unit:
            first, second = spaced
    if first.unit and second.unit and not _same_unit(first, second):
        return False
    if (first.value, second.value) == (answer, gold):
        return _same_unitless(answer, gold, ladder)
    if canonical(first.value) == canonical(second.value):
        return True
    one, two = literal(first.value), literal(second.value)
    if one is not None and two is not None:
        ladder.reach("number")
        return same_number(one, two, ladder.tolerance)
    return _same_unitless(first.value, second.value, ladder)


def _same_unit(first: Measured, second: Measured) -> bool:
    pounds = {"lb", "gbp"}
    ambiguous = {first.unit, second.unit} - pounds == {"pound"}
    return first.unit == second.unit or ambiguous


def _same_unitless(answer: str, gold: str, ladder: Ladder) -> bool:
    if is_wordy(answer) or is_wordy(gold):
        return word_key(answer) == word_key(gold) != ""
    if "\\ldots" in answer or "\\ldots" in gold:
        return False
    answer, gold = (without_thousands(_TEXT.sub(r"\1", text)) for text in (answer, gold))
    return _same_expression(answer, gold, ladder)


def is_wordy(text: str) -> bool:
    """Return whether `text` is words, not maths."""
    text = _TEXT.sub(r" \1 ", text)
    if text.strip().casefold() in ("yes", "no", "odd"):
        return True
    return bool(_WORD.search(_MATHS_WORD.sub("", re.sub(r"\\[A-Za-z]+", " ", text))))


def word_key(text: str) -> str:
    """Return the key that text answers are compared by: no case, no leading article."""
    text = _TEXT.sub(r"\1", text).replace("\\", "").casefold()
    text = re.sub(r"[\s~]+", " ", text).strip(" .!\"'")
    return re.sub(r"^(?:the|a|an) ", "", text)


def _same_expression(answer: str, gold: str, ladder: Ladder) -> bool:
    try:
        first, second = _number(answer), _number(gold)
    except TooCostlyError:
        return False
    if first is not None and second is not None:
        ladder.reach("number")
        return same_number(first, second, ladder.tolerance)
    if not is_readable(answer) or not is_readable(gold):
        ladder.unreadable.append(answer)
        return False
    try:
        return _same_symbolically(answer, gold, first, second, ladder)
    except NotMathsError:
        if not _is_expression(answer):
            ladder.unreadable.append(answer)
        return False
    except (TooCostlyError, RecursionError, OverflowError, MemoryError):
        return False


def _is_expression(text: str) -> bool:
    try:
        parse(text)
    except NotMathsError:
        return False
    return True


def _number(text: str) -> Number | None:
    """Return an exact number for a literal or a rational expression; None for anything else."""
    found = literal(text)
    if found is not None:
        return found
    percent = text.endswith("%")
    try:
        value = exact_value(parse(text[:-1].strip() if percent else text))
    except NotMathsError:
        return None
    return None if value is None else Number(value, percent=percent)


def _same_symbolically(
    answer: str, gold: str, first: Number | None, second: Number | None, ladder: Ladder
) -> bool:
    ladder.spend()
    from rlvr_plugin_math_sympy.symbolic import numeric_value, same_expression

    if same_expression(answer, gold):
        return True
    if first is not None and first.decimals is not None:
        value = numeric_value(gold)
        return value is not None and same_number(first, _exact(value), ladder.tolerance)
    if second is not None and (second.decimals is not None or ladder.tolerance is not None):
        value = numeric_value(answer)
        return value is not None and same_number(_exact(value), second, ladder.tolerance)
    return _within_tolerance(answer, gold, ladder)


def _within_tolerance(answer: str, gold: str, ladder: Ladder) -> bool:
    from rlvr_plugin_math_sympy.symbolic import numeric_value

    if ladder.tolerance is None:
        return False
    first, second = numeric_value(answer), numeric_value(gold)
    if first is None or second is None or _exact(second).value.denominator == 1:
        return False
    return abs(first - second) <= Fraction(ladder.tolerance)


def _exact(value: Fraction) -> Number:
    """Return a computed constant as a number; an integer to 35 digits is that integer."""
    nearest = Fraction(round(value))
    close = abs(value - nearest) <= max(abs(nearest), Fraction(1)) / 10**35
    return Number(nearest if close else value)
